"""States of a part of a resource: each that differs from the last one is news.

There is one part, and its states have no names. So each gets an id of its own when it
is seen first, and one that returns after another is news again.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from protocols.identity import content_hash
from protocols.model import Entry, ParsedFeed


def state_of(document: ParsedFeed) -> str:
    """What a part says, whatever its markup does to white space and counters."""
    return content_hash(document.entries[0])


def as_news(document: ParsedFeed, at: datetime) -> ParsedFeed:
    """A part in a state that was first seen at a time."""
    return replace(document, entries=(_dated(document.entries[0], at),))


def _dated(entry: Entry, at: datetime) -> Entry:
    id = f"{entry.id}:{at:%Y%m%dT%H%M%S%f}"
    return replace(entry, key=id, id=id, published=at, updated=at)
