"""Where in the log a subscription begins, and whether it missed something before."""

from __future__ import annotations

from dataclasses import dataclass

from protocols.cursor import read_cursor
from storage.interface import LogStore
from storage.records import Cursor, FeedId, Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """``cursor``: what comes after it is sent. ``last``: the topic's record before
    that, 0 if there is none. ``is_reset``: records it asked for are gone."""

    cursor: Cursor
    last: Position
    is_reset: bool


async def find_beginning(
    log: LogStore, feed_id: FeedId, asked: str | None
) -> Beginning:
    """``asked`` None: from now on.

    It is a reset only if records of that very feed were trimmed, or the cursor is of
    another epoch: then nobody knows, and it begins now. Raises `InvalidValue`.
    """
    head = await log.head()
    start, is_foreign = head, False
    if asked is not None:
        epoch, position = read_cursor(asked)
        is_foreign = epoch != head.epoch
        if not is_foreign and position < head.position:
            start = Cursor(head.epoch, Position(position))
    trail = await log.trail(feed_id, start.position)
    is_trimmed = trail.trimmed > start.position
    return Beginning(cursor=start, last=trail.last, is_reset=is_foreign or is_trimmed)
