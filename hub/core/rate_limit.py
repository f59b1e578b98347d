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


def take(bucket: Bucket | None, rate: Rate, now: float) -> tuple[Bucket, float]:
    """Take one request out of the bucket; ``None`` is a full one.

    The second value is 0.0 if it was there, or else the seconds until it will be:
    then nothing was taken.
    """
    if bucket is None:
        return Bucket(rate.burst - 1.0, now), 0.0
    filled = bucket.left + max(0.0, now - bucket.at) * rate.per_second
    left = min(rate.burst, filled)
    if left < 1.0:
        return Bucket(left, now), (1.0 - left) / rate.per_second
    return Bucket(left - 1.0, now), 0.0
