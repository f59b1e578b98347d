"""What polls have cost lately, and when all feeds post: the inputs of planning.

Both are kept in memory only. Each feed's state holds the price at which its last poll
was planned, from which a hub that starts takes its price.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from hub.core.schedule.budget import Budget, Spending, after_poll
from hub.core.schedule.poll_period import EVEN, PlanningContext
from hub.core.schedule.posting_profile import Prior, prior_of, read_habits, watched_days
from hub.limits.token_bucket import Rate, TokenBucket
from hub.runtime.clock import Clock
from storage.contract import FeedStore
from storage.records import StoredFeed

SAMPLE = 500
"""Feeds in a sample, which stands for all feeds."""
EVERY = 600.0
"""Seconds between two samples; profiles change over weeks."""


class CommonProfile:
    """The hours and weekdays at which all feeds post, estimated from a sample.
    ``prior`` is used for a feed that has no profile of its own yet."""

    def __init__(self, feeds: FeedStore, clock: Clock) -> None:
        self._feeds = feeds
        self._clock = clock
        self._next_look = 0.0
        self.prior: Prior = EVEN

    async def look(self) -> bool:
        """Take a sample, if it is time to; returns whether one was taken. Raises
        `StorageError`."""
        now = self._clock.monotonic()
        if now < self._next_look:
            return False
        at = self._clock.now()
        self.prior = prior_of(
            (read_habits(posting.habits), watched_days(posting, at))
            for posting in await self._feeds.postings(SAMPLE)
        )
        self._next_look = now + EVERY
        return True


class PollBudget:
    """Counts polls and steers their price.

    Each feed's state holds the price at which it was planned, so the first feed visited
    after a start shows what the price was before.
    """

    def __init__(self, budget: Budget, first_price: float) -> None:
        self._budget = budget
        self._context = PlanningContext(price=first_price)
        self._spending: Spending | None = None
        self._is_resumed = False

    def planning_context(self) -> PlanningContext:
        """The price and profile that polls are planned with now."""
        return self._context

    def expect_profile(self, prior: Prior) -> None:
        """Use this profile of all feeds for planning from now on."""
        self._context = replace(self._context, prior=prior)

    def resume(self, price: float) -> None:
        """Take over the price at which a feed was planned before the restart. Only the
        first call has an effect."""
        if price and not self._is_resumed:
            self._context = replace(self._context, price=price)
            self._is_resumed = True

    def count(self, feed: StoredFeed, now: datetime) -> None:
        """Count a poll of a feed, given in its state before the poll. The first fetch
        is not counted, nor are the polls by which a new feed settles in.

        The time for which the feed was overdue is not counted either: otherwise a hub
        that stood still would make up for that time with polls that are of no use any
        more.
        """
        last_fetch = feed.polling.last_fetch
        if last_fetch is None or feed.polling.settling_since is not None:
            return
        self._is_resumed = True
        spending = self._spending or Spending(price=self._context.price, at=now)
        watched = min(now, feed.next_fetch) - last_fetch
        gap = max(0.0, watched.total_seconds())
        self._spending = after_poll(spending, self._budget, gap, now)
        self._context = replace(self._context, price=self._spending.price)


HEADROOM = 1.1
"""The rate at which polls are saved up, as a multiple of the budget. At 1, slightly
less than the budget would be spent on average, and the price would sink for ever."""
SAVED = 4 * 3_600.0
"""Seconds for which unused polls are saved, enough to move polls within a day."""
AT_FIRST = 10.0
"""Seconds' worth of polls that may begin right after a start."""


def poll_tokens(budget: Budget, now: float) -> TokenBucket | None:
    """A bucket of the polls that may begin now; None if the budget is not a rate.

    The price keeps spending at the budget on average, over days. But a hub that was
    down for a while finds every feed overdue, whatever the price. So polls are taken
    from a bucket that is almost empty at the start. While the price keeps the average,
    the bucket is mostly full, and polls saved in quiet hours serve the busy ones.
    ``now`` is in monotonic seconds.
    """
    per_second = budget.polls_per_second
    if not per_second:
        return None
    saved = Rate(per_second=HEADROOM * per_second, burst=max(1.0, SAVED * per_second))
    return TokenBucket(saved, now, left=max(1.0, AT_FIRST * per_second))
