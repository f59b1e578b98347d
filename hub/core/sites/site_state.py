"""The stored state of a site's reading, around the state of its walk.

The walk's own state is opaque bytes to everything else; the walk describes it to people
(`ReadingFacts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from storage.packing import pack, unpack

_VERSION = 1


class SiteState(msgspec.Struct, frozen=True, array_like=True):
    """``walk`` is the state of the walk of that ``format``; no other walk reads it."""

    version: int = _VERSION
    format: str = ""
    walk: bytes = b""
    is_read: bool = False  # whether the site was read whole once
    pages: int = 0  # pages that exist, without deleted ones
    day: int = 0  # the day of the next count, in days since 1970
    entries_of_day: int = 0  # entries that were new or changed on that day
    feed_until: float = 0.0  # seconds since 1970: until then it was a feed; 0: never


def begin_anew(state: SiteState, format: str, feed_until: float = 0.0) -> SiteState:
    """The state of a new walk, for a source that was something else in between."""
    return msgspec.structs.replace(
        state, format=format, walk=b"", is_read=False, feed_until=feed_until
    )


def read_state(packed: bytes, format: str) -> SiteState:
    """The state for a walk of a format; of another's, only pages and limits count.

    A state of a later version counts as none: the site is read anew, and nothing of
    what is known of its pages is lost.
    """
    try:
        state = unpack(packed, SiteState) if packed else SiteState()
    except (msgspec.DecodeError, msgspec.ValidationError):
        state = SiteState()
    if state.version != _VERSION:
        state = SiteState()
    if state.format != format:
        return begin_anew(state, format)
    return state


def pack_state(state: SiteState) -> bytes:
    return pack(state)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingFacts:
    """``phase`` says what is under way, "" between visits; ``cursor`` from where
    changes are asked for. ``walked_at`` is the last full walk, ``reread_at`` the last
    time that every page was read."""

    phase: str = ""
    cursor: str = ""
    walked_at: datetime | None = None
    reread_at: datetime | None = None
