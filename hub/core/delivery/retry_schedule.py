"""When a delivery that failed is retried."""

from __future__ import annotations

SCHEDULE = (
    *(5.0, 15.0, 45.0, 120.0, 300.0),
    *(1_800.0, 7_200.0, 18_000.0, 36_000.0, 36_000.0),
)
"""Seconds to wait after the first failure, the second, …; then the hub gives up. The
first waits suit a subscriber that restarts, the last ones a subscriber that is down for
a day."""

FAILURES_ALLOWED = len(SCHEDULE)
"""After so many failures the next one is the last. An exhausted subscription has
reached this number."""

SPREAD = 0.2
"""Each wait is up to this share shorter or longer, so that failed deliveries are not
all retried at once."""

NEWS_PAUSE = 10.0
"""Seconds after a failure before news causes an extra try, beside the schedule."""

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds. A callback may postpone its next delivery by a day, not by a year."""


def retry_delay(
    failures: int, *, jitter: float, retry_after: float | None = None
) -> float | None:
    """Seconds to the next try after so many failures in a row; None: give up.

    ``jitter`` is a random number from 0 to 1. ``retry_after`` is what a 429 or 503
    asked for, in seconds: it makes the wait longer, up to `LONGEST_RETRY_AFTER`, and
    never shorter than the schedule says. Only requests that were made count as
    failures, not those that the hub's own limits held back.
    """
    if failures > FAILURES_ALLOWED:
        return None
    wait = SCHEDULE[failures - 1] * (1 - SPREAD + 2 * SPREAD * jitter)
    return max(wait, min(retry_after or 0.0, LONGEST_RETRY_AFTER))


def news_pause(retry_after: float | None = None) -> float:
    """Seconds after a failure in which a new record is no reason to try at once.

    ``retry_after`` is as for `retry_delay`.
    """
    return max(NEWS_PAUSE, min(retry_after or 0.0, LONGEST_RETRY_AFTER))
