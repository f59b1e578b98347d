"""Replay: the last entries of a topic, sent to a callback once more."""

from __future__ import annotations

from typing import Protocol

from hub.delivery.notifications import Document
from hub.services.errors import NotReadable, TooManyWaiting
from hub.services.retrieval import Page, RetrievalService, SelectedTopic, Selection
from hub.services.tokens import Principal
from hub.services.topics import read_topic
from protocols.errors import InvalidValue
from protocols.live.messages import BodyFormat
from storage.interface import Storage
from storage.packing import unpack_bytes
from storage.records import Format, Subscription, SubscriptionState


class Redelivering(Protocol):
    """What is needed of `hub.delivery.redelivery.Redeliveries`."""

    async def send(self, subscription: Subscription, document: Document) -> str: ...

    def send_later(self, subscription: Subscription, document: Document) -> bool: ...


class ReplayService:
    def __init__(
        self,
        storage: Storage,
        retrieval: RetrievalService,
        redeliveries: Redelivering,
    ) -> None:
        self._storage = storage
        self._retrieval = retrieval
        self._redeliveries = redeliveries

    async def replay(
        self,
        principal: Principal,
        topic: str,
        callback: str,
        count: int,
        *,
        waits: bool,
    ) -> None:
        """Return when the callback has taken it; at once if nobody ``waits``.

        Raises `NotReadable` without such a subscription, `InvalidValue` if the callback
        does not take it, and `TooManyWaiting`.
        """
        url = read_topic("hub.topic", topic).url
        account = principal.account.id
        found = await self._storage.subscriptions.find(account, url, callback)
        if found is None or found.state is not SubscriptionState.ACTIVE:
            raise NotReadable("hub.topic", "no such subscription of this account")
        document = await self._document(found, count)
        if not waits:
            if not self._redeliveries.send_later(found, document):
                raise TooManyWaiting("too many replays are to be sent; try again later")
            return
        reason = await self._redeliveries.send(found, document)
        if reason:
            expected = f"a callback that takes the notification, but {reason}"
            raise InvalidValue("hub.callback", expected)

    async def _document(self, subscription: Subscription, count: int) -> Document:
        """In the subscription's format; as it is the document has all its entries."""
        format = BodyFormat.ATOM
        if subscription.format is Format.AS_IS:
            body = await self._storage.log.body(subscription.feed_id)
            if body is not None:
                return Document(body.content_type, unpack_bytes(body.body))
        else:
            format = BodyFormat(subscription.format.value)
        selection = Selection(
            name=subscription.topic,
            topics=(SelectedTopic(subscription.topic, subscription.feed_id),),
            is_merged=False,
        )
        collected = await self._retrieval.collect(selection, Page(count=count))
        return await self._retrieval.render(collected, format)
