"""Replay: the last entries of a topic, sent to a callback once more."""

from __future__ import annotations

from typing import Protocol

from hub.delivery.notifications import Document
from hub.services.errors import NotReadable, TooManyWaiting
from hub.services.retrieval import RetrievalService
from hub.services.superfeedr import is_null_device
from hub.services.tokens import Principal
from hub.services.topics import read_topic
from protocols.errors import InvalidValue
from storage.contract import Storage
from storage.records import Subscription, SubscriptionState


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
        public_url: str,
    ) -> None:
        self._public_url = public_url
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
        if is_null_device(callback, self._public_url):
            return
        document = await self._retrieval.document(found, count)
        if not waits:
            if not self._redeliveries.send_later(found, document):
                raise TooManyWaiting("too many replays are to be sent; try again later")
            return
        reason = await self._redeliveries.send(found, document)
        if reason:
            expected = f"a callback that takes the notification, but {reason}"
            raise InvalidValue("hub.callback", expected)
