"""What a straggler is sent next: the log from where it stands, request by request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hub.core.delivery.catch_up import NOT_KEPT, NOT_RENDERABLE, CatchUpProgress
from hub.delivery.notifications import (
    NotificationBody,
    Notifications,
    NotRenderable,
    is_sent_as_is,
)
from protocols.urls import selector_of
from storage.contract import LogStore
from storage.records import Format, Position, Record, Subscription
from storage.subscription_filter import wants

PAGE = 100
"""Records read at once; also the most that share one request."""

SHORT_PAGE = 2
"""Records read first where each is sent on its own: most often the next one is wanted.
While none is, four times as many are read each time, up to a page."""

BATCH_BYTES = 2**20
"""A batch larger than this is sent in smaller ones, down to single records."""


@dataclass(frozen=True, slots=True)
class CatchUpRequest:
    """A document and the last position it brings its subscriber up to.

    Without a document there is nothing (more) to send up to there; unless it
    there is a reason why it is ``missing``, though wanted.
    """

    last: Position
    document: NotificationBody | None
    missing: str = ""


class CatchUpRequests:
    def __init__(self, log: LogStore, notifications: Notifications) -> None:
        self._log = log
        self._notifications = notifications

    async def next(self, catch_up: CatchUpProgress) -> CatchUpRequest:
        """The next request of a catch-up, or the end of what the log has for it.

        An opted-in ``batch`` subscription gets several records in one, an as-is one
        only the latest document, the others one record. A batch that was tried before
        does not grow: what came since waits for the next one.
        """
        subscription = catch_up.subscription
        wanted, end = await self._wanted(catch_up)
        if not wanted:
            return CatchUpRequest(end, None)
        if _gets_latest(subscription):
            return await self._whole(wanted[-1:], subscription)
        is_single = any(is_sent_as_is(subscription, each) for each in wanted)
        if is_single or not subscription.batch:
            return await self._whole(wanted[:1], subscription)
        tried_to = catch_up.tried_to or 0
        tried = [each for each in wanted if each.position <= tried_to]
        if tried:
            return await self._whole(tried, subscription)
        return await self._pack(wanted, subscription)

    async def _wanted(self, catch_up: CatchUpProgress) -> tuple[list[Record], Position]:
        """The next wanted records, and up to where the log was read for them."""
        subscription = catch_up.subscription
        is_latest_asked = _gets_latest(subscription)
        limit = PAGE if is_latest_asked or subscription.batch else SHORT_PAGE
        wanted: list[Record] = []
        end = catch_up.position
        while True:
            page = await self._log.records(
                after=end, limit=limit, feed_id=subscription.feed_id
            )
            found = [each for each in page if _is_due(each, catch_up)]
            wanted = found or wanted
            end = page[-1].position if page else end
            if len(page) < limit or (wanted and not is_latest_asked):
                return wanted, end
            limit = min(4 * limit, PAGE)

    async def _pack(
        self, records: Sequence[Record], subscription: Subscription
    ) -> CatchUpRequest:
        """As many of the records as make a document that is not too large."""
        while True:
            request = await self._whole(records, subscription)
            document = request.document
            is_small = document is None or len(document.body) <= BATCH_BYTES
            if (is_small and not request.missing) or len(records) == 1:
                return request
            records = records[: len(records) // 2]

    async def _whole(
        self, records: Sequence[Record], subscription: Subscription
    ) -> CatchUpRequest:
        last = records[-1].position
        try:
            document = await self._notifications.document(records, subscription)
        except NotRenderable:
            return CatchUpRequest(last, None, NOT_RENDERABLE)
        if document is not None:
            return CatchUpRequest(max(last, document.position), document)
        is_as_is = is_sent_as_is(subscription, records[-1])
        return CatchUpRequest(last, None, NOT_KEPT if is_as_is else "")


def _gets_latest(subscription: Subscription) -> bool:
    """Whether one document makes up for all records of the topic."""
    is_by_topic = subscription.format is Format.BY_TOPIC
    is_part = is_by_topic and bool(selector_of(subscription.topic))
    return is_part or subscription.format is Format.AS_IS


def _is_due(record: Record, catch_up: CatchUpProgress) -> bool:
    subscription = catch_up.subscription
    any_fresh = any(ref.fresh for ref in record.entries)
    return not catch_up.skips(record.position) and wants(
        subscription.format,
        subscription.updates,
        record.kind,
        any_fresh,
        record.is_superseded,
    )
