"""How often the whole of a site is read again, beside what it reports by itself."""

from __future__ import annotations

from typing import Final

from hub.core.sites.openfeeder.state import OpenFeederState
from protocols.openfeeder.read.places import LIMIT

SHARE: Final = 0.1
"""Of the time, at a request a second, that may go into reading what has not changed."""


def needs_walk(state: OpenFeederState, now: float, every: float) -> bool:
    """Whether the index is to be looked at. Where the site reports all changes by
    itself that is every so many seconds, else at each visit; a long one less often."""
    interval = every if reports_all(state) else 0.0
    return now - state.walked_at >= max(interval, state.total_pages / SHARE - 60.0)


def is_long(state: OpenFeederState) -> bool:
    """Whether the index is too long to be looked at in each visit."""
    return state.total_pages / SHARE > 60.0


def needs_reread(state: OpenFeederState, now: float, every: float) -> bool:
    """Whether every page is to be read again, lest edits that show in no index are
    never seen."""
    if reports_all(state):
        return False
    interval = max(every, state.total_pages * LIMIT / SHARE)
    return now - state.reread_at >= interval


def reports_all(state: OpenFeederState) -> bool:
    """As far as is known."""
    is_differential = state.gives_changes and bool(state.cursor)
    return is_differential and state.tracks_deletions
