"""How stored times are corrected after the clock went back.

A hub whose clock was ahead of the true time has stored by that clock when it made
requests, when it makes the next ones, and how long things last. Uncorrected, nothing
would be done until then.
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
"""Smaller corrections are ignored: clocks make them all the time, and they delay
little."""
LONGEST_RETRY_AFTER: Final = timedelta(days=7)
LONGEST_FRESHNESS: Final = timedelta(days=1)
LONGEST_WAIT: Final = timedelta(days=42)
"""The longest a feed waits for its next fetch: the longest period that can be set,
Retry-After and skipDays together."""

_AHEAD: Final[Mapping[str, timedelta]] = {
    "retry_after": LONGEST_RETRY_AFTER,
    "fresh_until": LONGEST_FRESHNESS,
}
"""Times of a feed's state that may lie ahead, and by how much; all others are past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedTimes:
    """The times that decide when a feed is fetched next."""

    polling: Polling
    created_at: datetime
    next_fetch: datetime


def correct_times(feed: FeedTimes, now: datetime, back: timedelta) -> FeedTimes:
    """The feed as if the clock had been right; ``back`` is how far it went back.

    A feed whose last request or addition lies in the future waits as long as it would
    have from now. For other feeds it is not known by which clock their next fetch was
    planned: it is moved earlier, but not before the time that their server asked for.
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
    """The state with all its future times moved back by ``back``. Times that must be
    past are not after ``now``; the others lie no farther ahead than they may."""
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
