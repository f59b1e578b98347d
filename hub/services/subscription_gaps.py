"""What a subscription did not get: since it ended, or before it began anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hub.core.status.subscription_explanation import SubscriptionGap
from storage.contract import Storage
from storage.records import (
    AttemptRange,
    AttemptReason,
    Position,
    Record,
    Subscription,
    SubscriptionState,
)
from storage.subscription_filter import is_due

MOST_COUNTED: Final = 100
"""Records of a gap that are counted."""
PAGE: Final = 100
"""Records of the feed that are read at once."""
MOST_PAGES: Final = 10
"""Pages that are read: of some feeds a subscription gets only few records."""
MOST_LOOKED_THROUGH: Final = 2_000
"""Requests that are read to see whether records were sent again."""


class SubscriptionGaps:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def of(self, subscription: Subscription) -> SubscriptionGap | None:
        """What came since the last request that its callback accepted: until now if the
        subscription has ended, else until it began anew.

        None if there is nothing, if no such request is kept, and once any of it was
        sent again.
        """
        is_active = subscription.state is SubscriptionState.ACTIVE
        if subscription.state is SubscriptionState.PENDING:
            return None
        began = subscription.created_at if is_active else None  # a renewal keeps it
        accepted = await self._storage.deliveries.attempts(
            subscription.id, 1, AttemptRange(is_delivered=True, until=began)
        )
        if not accepted:
            return None
        after, feed_id = accepted[0].position, subscription.feed_id
        if began is None:
            return await self._missed(subscription, after, None)
        last = await self._storage.log.last_before(feed_id, began)
        gap = await self._missed(subscription, after, last)
        if gap is None or await self._was_sent_again(subscription, last):
            return None
        return replace(gap, until=began)

    async def _missed(
        self, subscription: Subscription, after: Position, last: Position | None
    ) -> SubscriptionGap | None:
        """The records above ``after``, up to ``last`` or the log's end, that are due to
        the subscription."""
        due, has_more = list[Record](), True
        for _ in range(MOST_PAGES):
            page = await self._storage.log.records(
                after=after, limit=PAGE, feed_id=subscription.feed_id
            )
            read = [each for each in page if last is None or each.position <= last]
            due += [each for each in read if is_due(each, subscription)]
            has_more = len(read) == PAGE
            if not has_more or len(due) > MOST_COUNTED:
                break
            after = read[-1].position
        if not due:
            return None
        return SubscriptionGap(
            records=min(len(due), MOST_COUNTED),
            first=due[0].position,
            oldest=due[0].at,
            has_more=has_more or len(due) > MOST_COUNTED,
        )

    async def _was_sent_again(self, subscription: Subscription, last: Position) -> bool:
        """Whether records up to ``last`` are or were sent since the subscription began;
        also if that is not known, as it was sent too much since."""
        deliveries, whose = self._storage.deliveries, subscription.id
        retrying = await deliveries.retrying_subscription(whose)
        if retrying is not None and retrying.position < last:
            return True
        since = AttemptRange(since=subscription.created_at)
        sent = await deliveries.attempts(whose, MOST_LOOKED_THROUGH, since)
        if len(sent) == MOST_LOOKED_THROUGH:
            return True
        return any(
            each.position <= last or each.reason is AttemptReason.SENT_AGAIN
            for each in sent
        )
