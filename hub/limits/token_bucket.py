"""How often something may be done: a burst, and a rate.

Pure: the caller gives the time, in monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hub.runtime.caching import BoundedDict

BURST_SECONDS: Final = 10.0
"""Seconds' worth of its rate that may be used at once after a quiet time."""

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """``burst`` at once, and ``per_second`` in the long run."""

    per_second: float
    burst: float


def per_minute(requests: int) -> Rate:
    per_second = requests / 60
    return Rate(per_second=per_second, burst=max(1.0, per_second * BURST_SECONDS))


class TokenBucket:
    """Fills by the rate, up to its burst; begins full, or with ``left`` in it."""

    __slots__ = ("_at", "_left", "rate")

    def __init__(self, rate: Rate, now: float, left: float | None = None) -> None:
        self.rate = rate
        self._left = rate.burst if left is None else left
        self._at = now

    def left(self, now: float) -> float:
        """The number of tokens in the bucket; below 0 if more are reserved than there
        were."""
        more = max(0.0, now - self._at) * self.rate.per_second
        self._left = min(self.rate.burst, self._left + more)
        self._at = now
        return self._left

    def wait(self, now: float, wanted: float = 1.0) -> float:
        """Seconds until ``wanted`` tokens are in the bucket; 0.0 if they are."""
        return max(0.0, (wanted - self.left(now)) / self.rate.per_second)

    def take(self, now: float, wanted: float = 1.0) -> float:
        """Take ``wanted`` tokens if they are there and return 0.0; else return the
        seconds until they will be.

        If more are wanted than the bucket can hold, a full bucket is enough.
        """
        wanted = min(wanted, self.rate.burst)
        wait = self.wait(now, wanted)
        if not wait:
            self._left -= wanted
        return wait

    def reserve(self, now: float) -> float:
        """Take one token now, even in advance; returns the seconds until it is really
        there."""
        wait = self.wait(now)
        self._left -= 1.0
        return wait


class TokenBuckets(Generic[_Key]):
    """One bucket for each key. Beyond ``capacity`` keys the least recently seen one is
    forgotten, which makes its bucket full again."""

    def __init__(self, capacity: int) -> None:
        self._buckets: BoundedDict[_Key, TokenBucket] = BoundedDict(capacity)

    def __len__(self) -> int:
        return len(self._buckets)

    def of(self, key: _Key, rate: Rate, now: float) -> TokenBucket:
        """The key's bucket, with this rate from now on."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(rate, now)
        else:
            self._buckets.move_to_end(key)
            bucket.rate = rate
        return bucket
