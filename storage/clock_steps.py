"""How stored times are corrected after the clock went back.

A hub whose clock was ahead of the true time has stored when it asked, when it asks
again and how long things last by that clock. Uncorrected, nothing would be done until
then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import msgspec

from storage.records import Polling

State = TypeVar("State", bound=msgspec.Struct)

NOTICED: Final = timedelta(seconds=5)
"""Clocks are corrected by less all the time, and nobody waits long for it."""
LONGEST_RETRY_AFTER: Final = timedelta(days=7)
LONGEST_FRESHNESS: Final = timedelta(days=1)
LONGEST_WAIT: Final = timedelta(days=42)
"""Of a feed for its next fetch: the longest period that can be set, Retry-After and
skipDays together."""

_AHEAD: Final[Mapping[str, timedelta]] = {
    "retry_after": LONGEST_RETRY_AFTER,
    "fresh_until": LONGEST_FRESHNESS,
}
"""Times of a feed's state that may lie ahead, by so much; all others have been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedTimes:
    """What decides when a feed is fetched next."""

    polling: Polling
    created_at: datetime
    next_fetch: datetime


def correct_times(feed: FeedTimes, now: datetime, back: timedelta) -> FeedTimes:
    """The feed as if the clock had been right; ``back`` is how far it went back.

    A feed that was asked, or added, at a time to come waits as long as it would have
    from now. Of the others it is not known by which clock their next fetch was planned:
    it comes earlier, but not before the time that their server asked for.
    """
    polling = feed.polling
    last = max(feed.created_at, polling.last_fetch or feed.created_at)
    if last > now:
        back, asked_for = last - now, now
    else:
        waits = (polling.retry_after, polling.fresh_until)
        asked_for = max([now, *(each for each in waits if each)])
    earlier = max(feed.next_fetch - back, min(feed.next_fetch, asked_for))
    return FeedTimes(
        polling=capped_times(polling, now, max(last - now, timedelta(0))),
        created_at=feed.created_at,
        next_fetch=min(earlier, now + LONGEST_WAIT),
    )


def capped_times(state: State, now: datetime, back: timedelta) -> State:
    """A state all of whose times to come lie so much earlier: none of what has been
    after ``now``, and none of what is to come farther ahead than it may."""
    changes: dict[str, Any] = {}
    for name in state.__struct_fields__:
        found = getattr(state, name)
        if isinstance(found, datetime) and found > now:
            latest = now + _AHEAD.get(name, timedelta(0))
            changes[name] = min(found - back, latest)
        elif isinstance(found, msgspec.Struct):
            part = capped_times(found, now, back)
            changes |= {name: part} if part is not found else {}
    return msgspec.structs.replace(state, **changes) if changes else state
