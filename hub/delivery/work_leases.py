"""Leases on chunks and retries: a random id, and an end that renewal postpones."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random

from hub.runtime.clock import Clock
from storage.records import ClaimTerms

LEASE_SECONDS = 60.0
"""Three times the longest request, so that progress renews a lease in time."""

RENEWAL_SECONDS = LEASE_SECONDS / 3


class WorkLeases:
    """``has_term``: whether this node is still a member as far as it can know; if not,
    its leases may have been given to others."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        has_term: Callable[[], bool] = lambda: True,
    ) -> None:
        self._clock = clock
        self._random = random
        self.are_trusted = has_term

    def new_id(self) -> int:
        """A new random id; never 0, which stands for no lease."""
        return self._random.getrandbits(62) | 1

    def terms(self, limit: int) -> ClaimTerms:
        """The terms on which up to ``limit`` pieces of work are claimed now."""
        return ClaimTerms(
            lease_id=self.new_id(),
            seconds=LEASE_SECONDS,
            now=self._clock.now(),
            limit=limit,
        )

    def until(self) -> datetime:
        """When a lease ends that is taken or renewed now."""
        return self._clock.now() + timedelta(seconds=LEASE_SECONDS)

    def expiry(self) -> float:
        """The same end in monotonic seconds, which no clock change moves.

        Call this before the lease is taken: by the engine's clock the lease ends no
        earlier.
        """
        return self._clock.monotonic() + LEASE_SECONDS
