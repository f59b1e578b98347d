"""When the log reaches its limit and the disk is full, at the rate of the last day.

The rate is the median of the slopes between all pairs of samples (Theil and Sen): one
import, or a snapshot that comes and goes, is no growth.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import combinations
from statistics import median
from typing import Final

import msgspec

from hub.core.byte_sizes import byte_size
from hub.core.durations import duration
from storage.records import DiskSample

MEASURED: Final = timedelta(hours=24)
"""How far back samples count."""
LEAST_MEASURED: Final = timedelta(hours=6)
"""If samples span less, no rate is computed."""
FARTHEST: Final = timedelta(days=3_650)
"""Nothing farther ahead than this is forecast."""
NEAR: Final = 0.02
"""Within this share of its limit, the log is trimmed as fast as it grows."""
_DAY: Final = timedelta(days=1)


class DiskForecast(msgspec.Struct, frozen=True, kw_only=True):
    """``growth`` of the database and ``loss`` of the disk's free space, in bytes a day.
    ``limit_at``: when the log is at its limit; ``full_at``: when the disk is full;
    None: not foreseen."""

    growth: float
    loss: float
    limit_at: datetime | None
    full_at: datetime | None


def forecast_disk(samples: Sequence[DiskSample], limit: int) -> DiskForecast | None:
    """A forecast from samples of the last day, the latest last.

    None if they span too little time. At its ``limit`` the database stops growing,
    unless it has grown beyond it.
    """
    if measured_for(samples) < LEAST_MEASURED:
        return None
    last = samples[-1]
    growth = _rate([(each.at, each.used_bytes) for each in samples])
    loss = -_rate([(each.at, each.free_bytes) for each in samples])
    to_limit = _days_until_gone(limit - last.used_bytes, growth)
    to_end = _days_until_gone(last.free_bytes, loss)
    if to_end is not None and to_limit is not None and to_limit < to_end:
        to_end = _days_until_full(last, limit, growth, loss, to_limit)
    return DiskForecast(
        growth=growth,
        loss=loss,
        limit_at=_moment(last.at, to_limit),
        full_at=_moment(last.at, to_end),
    )


def measured_for(samples: Sequence[DiskSample]) -> timedelta:
    return samples[-1].at - samples[0].at if samples else timedelta(0)


def _rate(points: Sequence[tuple[datetime, int]]) -> float:
    """The rate in bytes a day."""
    slopes = [
        (after - before) / ((later - earlier) / _DAY)
        for (earlier, before), (later, after) in combinations(points, 2)
        if later > earlier
    ]
    return median(slopes)


def _days_until_gone(room: float, rate: float) -> float | None:
    if room <= 0:
        return 0.0
    return room / rate if rate > 0 else None


def _days_until_full(
    last: DiskSample, limit: int, growth: float, loss: float, to_limit: float
) -> float | None:
    """Days until the disk is full if the log reaches its limit first; None if never."""
    if last.used_bytes > limit * (1 + NEAR):
        return last.free_bytes / loss
    left = last.free_bytes - to_limit * loss
    beyond = _days_until_gone(left, loss - max(growth, 0.0))
    return None if beyond is None else to_limit + beyond


def _moment(now: datetime, days: float | None) -> datetime | None:
    if days is None or days > FARTHEST / _DAY:
        return None
    return now + timedelta(days=days)


def forecast_words(
    forecast: DiskForecast | None, samples: Sequence[DiskSample], limit: int
) -> str:
    """Sentences for people. ``samples`` are those of the forecast."""
    if forecast is None:
        left = LEAST_MEASURED - measured_for(samples)
        return (
            "Not known yet: growth has to be measured for another"
            f" {duration(left.total_seconds())}."
        )
    last = samples[-1]
    sentences = _limit_words(forecast, last, limit), _end_words(forecast, last.at)
    return " ".join(filter(None, sentences))


def _limit_words(forecast: DiskForecast, last: DiskSample, limit: int) -> str:
    growth, allowed = byte_size(forecast.growth), byte_size(limit)
    if last.used_bytes > limit * (1 + NEAR):
        return (
            f"The database is larger than its limit of {allowed}:"
            " entries of the last day stay, however many."
        )
    if last.used_bytes >= limit * (1 - NEAR):
        return (
            f"The log is at its limit of {allowed}:"
            " the oldest entries are deleted as new ones come."
        )
    if forecast.limit_at is None or _is_earlier(forecast.full_at, forecast.limit_at):
        grows = f"grows by {growth} a day" if forecast.growth > 0 else "does not grow"
        return f"The database {grows}; its limit is {allowed}."
    return (
        f"At this rate ({growth} a day) the log reaches its limit of {allowed}"
        f" in {span(forecast.limit_at - last.at)}; then the oldest entries are deleted."
    )


def _end_words(forecast: DiskForecast, now: datetime) -> str:
    if forecast.full_at is None:
        return ""
    loss = byte_size(forecast.loss)
    return (
        f"At this rate (free space shrinks by {loss} a day) the disk is full"
        f" in {span(forecast.full_at - now)}."
    )


def _is_earlier(first: datetime | None, second: datetime) -> bool:
    return first is not None and first < second


def span(time: timedelta) -> str:
    """``6 days``, ``30 h``; less than a day as `duration` says it."""
    if time < _DAY:
        return duration(time.total_seconds())
    if time < 2 * _DAY:
        return f"{time / timedelta(hours=1):.0f} h"
    return f"{time / _DAY:.0f} days"
