"""The hours and weekdays at which all feeds post, as of a sample of them.

Each feed's state has its own habits, so there is nothing else to store: a start knows
what the hub knew before.
"""

from __future__ import annotations

from hub.core.habits import Prior, prior_of, read_habits
from hub.core.outlook import EVEN
from hub.core.posting import watched_days
from hub.runtime.clock import Clock
from storage.interface import FeedStore

SAMPLE = 500
"""Feeds that stand for all."""
EVERY = 600.0
"""Seconds between two samples; habits change over weeks."""


class CommonHabits:
    """``prior`` is what all feeds' habits count for before a feed's own."""

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
