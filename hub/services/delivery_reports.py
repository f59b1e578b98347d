"""The report of one failed delivery: where it failed, the answer, and what was sent.

The request is not stored but rendered again, from the present entries, and signed
again. Its size and checksum say whether that is what was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from hub.delivery.notifications import Notifications, NotRenderable
from hub.delivery.webhook import delivery_of, request_of
from hub.http import Request
from hub.http.network_errors import NetworkError
from hub.http.request_head import target_of
from protocols.websub.delivery import notification_id
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import (
    AccountId,
    FailedAttempt,
    FeedId,
    FeedState,
    Position,
    Record,
    SentRequest,
    Subscription,
    SubscriptionState,
)

PAGE = 100
"""Records read at once; no request tells of more."""
NOT_KEPT = "requests are kept only for the latest failures of each subscription"
TRIMMED = "the log no longer has its records"
NOTHING_LEFT = "its entries have been deleted"
NOT_OPEN = "the subscription has ended, or its account may no longer read the feed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedRequest:
    """``is_same``: the body is byte for byte what was sent."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes
    is_same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """``request`` None: ``reason`` says why it cannot be shown."""

    failed: FailedAttempt
    request: RenderedRequest | None = None
    reason: str = ""


class DeliveryReportService:
    def __init__(self, storage: Storage, hub_url: str) -> None:
        self._storage = storage
        self._hub_url = hub_url
        self._notifications = Notifications(storage.log, hub_url)

    async def get(
        self, attempt_id: int, *, account: AccountId | None = None
    ) -> DeliveryReport:
        """Raises `NotFound`, also for one of another account than the given one."""
        failed = await self._storage.deliveries.failed_attempt(attempt_id)
        if failed is None:
            raise NotFound("failed delivery", attempt_id)
        whose = failed.attempt.subscription_id
        subscription = await self._storage.subscriptions.get(whose)
        if subscription is None or account not in (None, subscription.account):
            raise NotFound("failed delivery", attempt_id)
        if account is not None and not await self._is_open(subscription):
            return DeliveryReport(failed=failed, reason=NOT_OPEN)
        return await self._report(failed, subscription)

    async def _is_open(self, subscription: Subscription) -> bool:
        """Whether its account may still be shown what the feed says: a request is
        rendered from the entries as they are now."""
        feed = await self._storage.feeds.get(subscription.feed_id)
        if feed is None or feed.has_credentials or feed.state is FeedState.REMOVED:
            return False
        return subscription.state is SubscriptionState.ACTIVE

    async def _report(
        self, failed: FailedAttempt, subscription: Subscription
    ) -> DeliveryReport:
        details = failed.attempt.details
        if details is None:
            return DeliveryReport(failed=failed, reason=NOT_KEPT)
        sent = details.request
        records = await self._records(subscription.feed_id, sent.records)
        if len(records) < len(sent.records):
            return DeliveryReport(failed=failed, reason=TRIMMED)
        position = failed.attempt.position
        request = await self._render(records, subscription, position, sent)
        reason = "" if request else NOTHING_LEFT
        return DeliveryReport(failed=failed, request=request, reason=reason)

    async def _records(
        self, feed_id: FeedId, positions: Sequence[Position]
    ) -> list[Record]:
        """Those of them that the log still has."""
        wanted, found = set(positions), list[Record]()
        after = Position(min(positions) - 1)
        while True:
            page = await self._storage.log.records(
                after=after, limit=PAGE, feed_id=feed_id
            )
            found += [each for each in page if each.position in wanted]
            if len(page) < PAGE or page[-1].position >= max(positions):
                return found
            after = page[-1].position

    async def _render(
        self,
        records: Sequence[Record],
        subscription: Subscription,
        position: Position,
        sent: SentRequest,
    ) -> RenderedRequest | None:
        try:
            document = await self._notifications.document(records, subscription)
        except NotRenderable:
            return None
        if document is None:
            return None
        epoch = (await self._storage.log.end()).epoch
        delivery = delivery_of(
            subscription,
            document,
            sent.credits,
            id=notification_id(epoch, position, subscription.id),
            at=sent.at,
            hub_url=self._hub_url,
            retries=sent.retries,
            missed=sent.missed,
        )
        body = delivery.body
        is_same = (len(body), crc32(body)) == (sent.size, sent.checksum)
        return rendered_request(await request_of(delivery), is_same=is_same)


def rendered_request(request: Request, *, is_same: bool) -> RenderedRequest:
    return RenderedRequest(
        method=request.method,
        url=request.url,
        headers={**_authority(request.url), **request.headers},
        body=request.body or b"",
        is_same=is_same,
    )


def _authority(url: str) -> dict[str, str]:
    try:
        return {"Host": target_of(url).authority}
    except NetworkError:  # it is no URL that can be asked for
        return {}
