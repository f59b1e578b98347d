"""Where in the log subscriptions begin, and whether they missed something before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hub.live.pages import Pages
from hub.live.subscriptions import Interest
from protocols.cursor import read_cursor_of
from storage.records import Cursor, Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """``position``: what comes after it is sent. ``last``: the topic's record before

    that, 0 if there is none. ``cursor`` is the same for all that begin together, if
    they asked for the same. ``is_reset``: records it asked for are gone.
    """

    cursor: str
    position: Position
    last: Position
    is_reset: bool


async def find_beginnings(
    pages: Pages, interests: Sequence[Interest], head: Cursor
) -> list[Beginning]:
    """Where they begin who begin together. Raises `InvalidValue`."""
    return [await _find_beginning(pages, each, head) for each in interests]


async def _find_beginning(pages: Pages, interest: Interest, head: Cursor) -> Beginning:
    """It is a reset only if records of that very feed were trimmed, or the cursor is

    none that this log has given out, being of another epoch or beyond its end: then
    nobody knows, and it begins now.
    """
    cursor, position, is_unknown = str(head), head.position, False
    if interest.cursor is not None:
        epoch, asked = read_cursor_of(interest.key.topic, interest.cursor)
        is_unknown = epoch != head.epoch or asked > head.position
        if not is_unknown:
            cursor, position = interest.cursor, Position(asked)
    trail = await pages.trail(interest.key.feed_id, position)
    return Beginning(
        cursor=cursor,
        position=position,
        last=trail.last,
        is_reset=is_unknown or trail.trimmed > position,
    )
