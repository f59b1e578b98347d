"""What a document says about how often to ask for it: ttl, sy:*, skipHours, skipDays.

These are wishes, not floors: a feed's own posting may contradict them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from protocols.model import Hints

LONGEST_TTL = 3_600.0
IGNORED_ABOVE = 3.0
"""A wish for more than so many times the period that posting asks for is ignored."""

_MINUTE = 60.0
_HOUR = timedelta(hours=1)
_HOURS_A_WEEK = 7 * 24
_SECONDS = {
    "hourly": 3_600.0,
    "daily": 86_400.0,
    "weekly": 7 * 86_400.0,
    "monthly": 30 * 86_400.0,
    "yearly": 365 * 86_400.0,
}


def ttl_seconds(hints: Hints) -> float:
    """RSS ``ttl``, at most an hour; 0 when there is none."""
    if not hints.ttl_minutes:
        return 0.0
    return min(max(hints.ttl_minutes, 0) * _MINUTE, LONGEST_TTL)


def update_period_seconds(hints: Hints) -> float:
    """``sy:updatePeriod`` over ``sy:updateFrequency``; 0 when there is none.

    Hourly, once, is what WordPress writes whatever the truth, and says nothing.
    """
    if not hints.update_period:
        return 0.0
    unit = _SECONDS.get(hints.update_period.strip().lower(), 0.0)
    seconds = unit / max(hints.update_frequency or 1, 1)
    return 0.0 if seconds == _SECONDS["hourly"] else seconds


def is_believed(wish: float, wanted: float) -> bool:
    """Whether a wish is one that the feed's own posting does not contradict."""
    return 0 < wish <= IGNORED_ABOVE * wanted


def after_skipped(hints: Hints, moment: datetime) -> datetime:
    """The moment, or the end of the ``skipHours`` and ``skipDays`` it falls in.

    Hints that skip the whole week are ignored.
    """
    if not hints.skip_hours and not hints.skip_days:
        return moment
    skipped = moment
    for _ in range(_HOURS_A_WEEK):
        if not _is_skipped(hints, skipped):
            return skipped
        skipped = skipped.replace(minute=0, second=0, microsecond=0) + _HOUR
    return moment


def _is_skipped(hints: Hints, moment: datetime) -> bool:
    return moment.hour in hints.skip_hours or moment.weekday() in hints.skip_days
