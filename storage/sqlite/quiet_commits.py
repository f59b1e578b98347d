"""Fetches that found nothing new, many of them in one unit of work.

Nine of ten fetches change nothing but when and how the feed was asked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec.structs import fields

from storage.records import FetchCommit, Pace, Position, pace_of
from storage.sqlite.columns import pack_ids, to_milliseconds

PAUSE = 0.01
"""Seconds between two batches: nobody waits for what such a fetch found."""

QuietCommit = tuple[bytes, str, int, Pace, int]
"""The polling, where the next request goes, when and at what pace, and the feed."""

_changes = [each for each in fields(FetchCommit) if not each.required]
_found = attrgetter(*(each.name for each in _changes))
_NOTHING = tuple(each.default for each in _changes)


def is_quiet(fetch: FetchCommit) -> bool:
    """Whether it changes nothing but what every fetch does."""
    return bool(_found(fetch) == _NOTHING)


def encode_quiet(fetch: FetchCommit) -> QuietCommit:
    return (
        msgspec.json.encode(fetch.polling),
        fetch.polling.fetch_url,
        to_milliseconds(fetch.next_fetch),
        pace_of(fetch.polling.period),
        fetch.feed_id,
    )


def apply_quiet(
    commits: Sequence[QuietCommit], connection: sqlite3.Connection
) -> list[tuple[Position, ...] | None]:
    """For each that it has no records; None if the feed was removed meanwhile."""
    ids = [feed_id for *_, feed_id in commits]
    rows = connection.execute(
        "SELECT f.id FROM json_each(?) asked CROSS JOIN feeds f ON f.id = asked.value"
        " WHERE f.state <> 'removed'",
        (pack_ids(ids),),
    )
    present = {feed_id for (feed_id,) in rows}
    wanted = [each for each in commits if each[-1] in present]
    connection.executemany(
        "UPDATE feeds SET polling = ?1, fetch_url = ?2 WHERE id = ?5", wanted
    )
    connection.executemany(
        "UPDATE schedule SET next_fetch = ?3, pace = ?4 WHERE feed_id = ?5", wanted
    )
    return [() if feed_id in present else None for feed_id in ids]
