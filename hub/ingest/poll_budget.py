"""What polls have cost lately, and when all feeds post: the inputs of planning.

Both are kept in memory only. Each feed's state has the price at which it was planned,
and its own posting profile, so a hub that starts knows what it knew before.
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
"""Feeds that stand for all."""
EVERY = 600.0
"""Seconds between two samples; profiles change over weeks."""


class CommonProfile:
    """The hours and weekdays at which all feeds post, as of a sample of them: ``prior``
    is what counts for a feed before its own profile."""

    def __init__(self, feeds: FeedStore, clock: Clock) -> None:
        self._feeds = feeds
        self._clock = clock
        self._next_look = 0.0
        self.prior: Prior = EVEN

    async def look(self) -> bool:
        """Take a sample, if it is time to; whether it was. Raises `StorageError`."""
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

    Each feed's state has the price at which it was planned, so the first feed visited
    after a start tells where the price was.
    """

    def __init__(self, budget: Budget, first_price: float) -> None:
        self._budget = budget
        self._context = PlanningContext(price=first_price)
        self._spending: Spending | None = None
        self._is_resumed = False

    def planning_context(self) -> PlanningContext:
        """What polls are planned with now."""
        return self._context

    def expect_profile(self, prior: Prior) -> None:
        """Plan with this profile of all feeds from now on."""
        self._context = replace(self._context, prior=prior)

    def resume(self, price: float) -> None:
        """Take over the price that a feed was planned with before the restart; the
        first one counts."""
        if price and not self._is_resumed:
            self._context = replace(self._context, price=price)
            self._is_resumed = True

    def count(self, feed: StoredFeed, now: datetime) -> None:
        """Count a poll of a feed, given as it was before. A first fetch does not count,
        nor do those by which a new feed settles in.

        The time in which the feed was overdue does not count either: else a hub that
        stood still would make up for it with polls that nobody misses any more.
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
"""Times the budget of polls a second: what may be spent where all that could be saved
is used up. Were it 1, less than the budget would be spent in the mean, and the price
sink for ever."""
SAVED = 4 * 3_600.0
"""Seconds for which polls not taken are saved; a day's rhythm moves that many."""
AT_FIRST = 10.0
"""Seconds' worth of polls that a start begins with."""


def poll_tokens(budget: Budget, now: float) -> TokenBucket | None:
    """Polls that may begin now, where the budget is so many a second; None: any.

    The price keeps what is spent at the budget in the mean, over days; a hub that comes
    back after a while finds everything overdue, whatever the price. So polls are taken
    from a bucket that begins all but empty. For as long as the price holds the mean it
    is mostly full, and what was saved in quiet hours serves the busy ones. ``now`` is
    in monotonic seconds.
    """
    per_second = budget.polls_per_second
    if not per_second:
        return None
    saved = Rate(per_second=HEADROOM * per_second, burst=max(1.0, SAVED * per_second))
    return TokenBucket(saved, now, left=max(1.0, AT_FIRST * per_second))
