"""How many requests somebody may make: a token bucket, as a value."""

from __future__ import annotations

from dataclasses import dataclass

BURST_SECONDS = 10.0
"""So much of its rate somebody who was quiet may use at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """``burst`` at once, and ``per_second`` in the long run."""

    per_second: float
    burst: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """What was left at a time; a new one is full."""

    left: float
    at: float  # seconds, monotonic


def per_minute(requests: int) -> Rate:
    per_second = requests / 60
    return Rate(per_second=per_second, burst=max(1.0, per_second * BURST_SECONDS))


def take(
    bucket: Bucket | None, rate: Rate, now: float, requests: float = 1.0
) -> tuple[Bucket, float]:
    """Take so many requests out of the bucket; ``None`` is a full one.

    What is more than a full bucket takes all of one. The second value is 0.0 if it
    was there, or else the seconds until it will be: then nothing was taken.
    """
    wanted = min(requests, rate.burst)
    if bucket is None:
        return Bucket(rate.burst - wanted, now), 0.0
    filled = bucket.left + max(0.0, now - bucket.at) * rate.per_second
    left = min(rate.burst, filled)
    if left < wanted:
        return Bucket(left, now), (wanted - left) / rate.per_second
    return Bucket(left - wanted, now), 0.0
