"""`storage.contract.EventStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from protocols.model import Status
from protocols.operational_events import takes
from storage.records import (
    OperationalEvent,
    Position,
    RecordKind,
    StoredFeed,
)
from storage.sqlite.columns import pack_ids, to_milliseconds
from storage.sqlite.delivery_chunks import CommitClaims
from storage.sqlite.event_queue import are_wanted, encode_event, queue_events
from storage.sqlite.log_appends import assign_positions, fan_out
from storage.sqlite.log_end import LogEnd
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import decode_event, hash_key, read_feed
from storage.sqlite.tracking import insert_unpolled
from storage.sqlite.writer import Writer

MOST_WAITING: Final = 50
"""The most records of events that may wait to be split; further events stay queued."""
MOST_WITH_HUB: Final = 2 * MOST_WAITING
"""The same limit if the next event is one of the hub itself."""
_STATUS: Final = msgspec.json.encode(Status())


class _Published(NamedTuple):
    """How many events were dealt with, and the records of those that were appended."""

    events: int
    positions: tuple[Position, ...] = ()


class SqliteEvents:
    def __init__(
        self, writer: Writer, readers: Readers, log_end: LogEnd, claims: CommitClaims
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._log_end = log_end
        self._claims = claims

    async def topic(self, name: str, now: datetime) -> StoredFeed:
        unit = partial(_ensure_topic, name, to_milliseconds(now))
        return read_feed(await self._writer.submit(unit))

    async def publish(self, now: datetime, limit: int) -> int:
        if await self._readers.first("SELECT 1 FROM event_queue LIMIT 1") is None:
            return 0
        publishing = self._writer.submit(
            partial(_publish, limit, to_milliseconds(now)),
            then=lambda published: self._log_end.advance(published.positions),
        )
        self._claims.follow()
        return (await publishing).events

    async def note_conditions(
        self, holding: Sequence[OperationalEvent], now: datetime
    ) -> None:
        by_name = {each.condition: each for each in holding}
        rows = await self._readers.all("SELECT name FROM hub_conditions")
        if by_name.keys() != {name for (name,) in rows}:
            unit = partial(_note_conditions, by_name, now)
            await self._writer.submit(unit)


# --- units of work ---


def _ensure_topic(name: str, now: int, connection: sqlite3.Connection) -> Row:
    found = connection.execute(
        "SELECT id FROM feeds WHERE resource_hash = ? AND url = ?",
        (hash_key(name), name),
    ).fetchone()
    feed_id = found[0] if found else insert_unpolled(name, "events", now, connection)
    connection.execute(
        "UPDATE feeds SET state = 'events', removed_at = NULL"
        " WHERE id = ? AND state <> 'events'",
        (feed_id,),
    )
    row: Row = connection.execute(
        "SELECT * FROM stored_feeds WHERE id = ?", (feed_id,)
    ).fetchone()
    return row


def _publish(limit: int, now: int, connection: sqlite3.Connection) -> _Published:
    topics = connection.execute(
        "SELECT f.id, f.url FROM feeds f CROSS JOIN feed_audience a ON a.feed_id = f.id"
        " WHERE f.state = 'events' AND a.subscribers > 0 ORDER BY f.id"
    ).fetchall()
    ((waiting,),) = connection.execute(
        "SELECT count(*) FROM fanouts"
        " WHERE feed_id IN (SELECT value FROM json_each(?))",
        (pack_ids([feed_id for feed_id, _ in topics]),),
    ).fetchall()
    queued = _next_events(limit, waiting, connection)
    if not queued:
        return _Published(0)
    positions = [
        _append(encoded, feed_id, now, connection)
        for _, encoded in queued
        for feed_id, topic in topics
        if takes(topic, decode_event(encoded).type)
    ]
    connection.execute(
        "DELETE FROM event_queue WHERE id IN (SELECT value FROM json_each(?))",
        (pack_ids([number for number, _ in queued]),),
    )
    return _Published(len(queued), tuple(positions))


_OF_HUB: Final = """
SELECT id, event FROM event_queue INDEXED BY event_queue_of_hub
WHERE event ->> '$.condition' IS NOT NULL ORDER BY id LIMIT ?
"""


def _next_events(
    limit: int, waiting: int, connection: sqlite3.Connection
) -> list[tuple[int, str]]:
    """The next events: those of the hub first, so that a flood of others does not delay
    them, but at most half of the ``limit``, so that they do not delay others for long;
    then by age."""
    room = max(0, min((limit + 1) // 2, MOST_WITH_HUB - waiting))
    of_hub = connection.execute(_OF_HUB, (room,)).fetchall()
    room = max(0, min(limit, MOST_WAITING - waiting) - len(of_hub))
    others = connection.execute(
        "SELECT id, event FROM event_queue"
        " WHERE id NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?",
        (pack_ids([number for number, _ in of_hub]), room),
    ).fetchall()
    return [*of_hub, *others]


def _append(
    encoded: str, feed_id: int, now: int, connection: sqlite3.Connection
) -> Position:
    position, _ = assign_positions(1, connection)
    connection.execute(
        "INSERT INTO records (position, at, feed_id, kind, any_fresh, status, refs,"
        " is_superseded, event) VALUES (?, ?, ?, ?, FALSE, ?, x'', FALSE, ?)",
        (
            *(position, now, feed_id),
            *(RecordKind.EVENT, _STATUS, encoded),
        ),
    )
    fan_out(position, feed_id, connection)
    return Position(position)


def _note_conditions(
    holding: Mapping[str, OperationalEvent],
    now: datetime,
    connection: sqlite3.Connection,
) -> None:
    rows = connection.execute("SELECT name, event FROM hub_conditions ORDER BY name")
    known = {name: decode_event(event) for name, event in rows.fetchall()}
    begun = [each for name, each in sorted(holding.items()) if name not in known]
    over = [
        replace(each, at=now, is_over=True)
        for name, each in known.items()
        if name not in holding
    ]
    is_wanted = are_wanted(connection)
    if is_wanted:
        queue_events(map(encode_event, (*over, *begun)), connection)
        connection.executemany(
            "INSERT INTO hub_conditions VALUES (?, ?)",
            [(each.condition, encode_event(each)) for each in begun],
        )
    connection.executemany(
        "DELETE FROM hub_conditions WHERE name = ?",
        [(each.condition,) for each in over],
    )
