"""How far ahead of the clock stored times may lie: like SQLite's, table by table.

Times ahead are brought within their limit when a hub opens the database, and when its
clock has gone back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Final

import msgspec

from storage.clock_steps import NOTICED, FeedTimes, capped_times, correct_times
from storage.postgres.connections import Connections
from storage.postgres.polling_state import fetch_state_of
from storage.records import Polling, PushRecord
from storage.sqlite.columns import from_milliseconds, to_milliseconds
from storage.sqlite.polling_state import encode_cold
from storage.sqlite.time_columns import TIME_COLUMNS

_MILLISECOND: Final = timedelta(milliseconds=1)
_TABLES: Final[Mapping[str, Sequence[str]]] = {
    "dead": ("dead_letters",),
    "meta": ("hub",),
    "schedule": ("schedule", "feed_hot"),
    "standings": ("feed_statistics",),
    "stragglers": ("retries",),
}
"""Tables that have another name than in SQLite, or a second one."""
_OF_SERVER: Final = frozenset({("chunks", "due"), ("claims", "until")})
"""Times of the server's clock, which no hub's clock moves."""
_PUT_FEEDS: Final = (
    "SELECT correct_feeds(%s::bigint[], %s::bytea[], %s::bigint[], %s::bigint[],"
    " %s::bytea[], %s::bigint[])"
)
_PUT_PUSHES: Final = (
    "UPDATE pushes p SET record = g.record"
    " FROM unnest(%s::bigint[], %s::bytea[]) g (id, record) WHERE p.feed_id = g.id"
)
_pollings = msgspec.json.Decoder(Polling)
_push_records = msgspec.json.Decoder(PushRecord)


async def note_time(
    now: datetime, connections: Connections, *, is_first: bool
) -> timedelta:
    """Note the time; returns how far the clock went back since the last note.

    If it did, all waiting times are moved back with it. ``is_first``: at an opening,
    where limits are applied in any case.
    """
    row = await connections.first("SELECT seen_at FROM hub")
    seen = from_milliseconds(row[0] if row else 0)
    back = seen - now if seen - now >= NOTICED else timedelta(0)
    if back or to_milliseconds(seen) == 0:
        await _correct_feeds(now, back, connections)
        await _correct_pushes(now, connections)
    statements = [*_statements(now, back)] if back or is_first else []
    await connections.write(
        "SELECT hold_times(%s::text[], %s, %s, %s)",
        (statements, now, back // _MILLISECOND, now if back else max(seen, now)),
    )
    return back


def _statements(now: datetime, back: timedelta) -> Iterator[str]:
    """SQL that corrects times; ``$1``: the time, ``$2``: milliseconds it went back."""
    for name, columns in TIME_COLUMNS.items():
        for table, (column, limit) in product(
            _TABLES.get(name, (name,)), columns.items()
        ):
            if (table, column) in _OF_SERVER:
                continue
            if limit is None or (limit.is_sought and not back):
                continue
            if limit.is_wait and back:
                yield (
                    f"UPDATE {table} SET {column} = greatest($1, {column} - $2)"
                    f" WHERE {column} > $1"
                )
            latest = (to_milliseconds(now) * _MILLISECOND + limit.ahead) // limit.unit
            among = limit.among.replace(":latest", str(latest))
            yield (
                f"UPDATE {table} SET {column} = {latest}"
                f" WHERE {column} > {latest} AND {among}"
            )


async def _correct_feeds(
    now: datetime, back: timedelta, connections: Connections
) -> None:
    changed = []
    for feed_id, polling, created_at, next_fetch in await connections.all(
        "SELECT id, polling, created_at, next_fetch FROM stored_feeds ORDER BY id"
    ):
        found = FeedTimes(
            polling=_pollings.decode(polling) if polling else Polling(),
            created_at=from_milliseconds(created_at),
            next_fetch=from_milliseconds(next_fetch),
        )
        right = correct_times(found, now, back)
        if right != found:
            changed.append(_correction(feed_id, found, right))
    if changed:
        columns = [list(each) for each in zip(*changed, strict=True)]
        await connections.write(_PUT_FEEDS, columns)


def _correction(feed_id: int, found: FeedTimes, right: FeedTimes) -> tuple[object, ...]:
    """Parameters of ``correct_feeds`` for one feed."""
    if right.polling == found.polling:
        return feed_id, None, None, None, None, right.next_fetch
    state = fetch_state_of(right.polling)
    return (
        *(feed_id, state.outcome, state.last_fetch, state.fresh_for),
        *(encode_cold(right.polling), right.next_fetch),
    )


async def _correct_pushes(now: datetime, connections: Connections) -> None:
    changed = []
    for feed_id, record in await connections.all("SELECT feed_id, record FROM pushes"):
        found = _push_records.decode(record)
        right = capped_times(found, now, timedelta(0))
        if right != found:
            changed.append((feed_id, msgspec.json.encode(right)))
    if changed:
        ids, records = ([each[n] for each in changed] for n in (0, 1))
        await connections.write(_PUT_PUSHES, (ids, records))
