"""The records that a commit appends to the log, and those of the queries it matches."""

from __future__ import annotations

import sqlite3

from storage.errors import QueriesWanted, WriteFailed
from storage.records import Matched, MatchWrite, RecordKind
from storage.sqlite.columns import pack_ids
from storage.sqlite.commit_encoding import EncodedCommit, EncodedRecord
from storage.sqlite.feed_access import OWNER, may_read
from storage.sqlite.log_rows import hash_key, pack_refs

KnownEntry = tuple[int, int]
"""Id and revision of an entry."""

FEW_SUBSCRIBERS = 20
"""Of so many a commit asks each whether it wants a record; more are asked when the
fan-out is split."""

_FAN_OUT = """
INSERT INTO fanouts (position, feed_id, after_id, is_next)
SELECT r.position, f.id, 0, NOT EXISTS (SELECT 1 FROM fanouts WHERE feed_id = f.id)
FROM records r CROSS JOIN feeds f
WHERE r.position = :position AND f.id = :feed_id AND f.subscribers > 0
    AND (f.subscribers > :few OR EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.feed_id = f.id AND s.state = 'active' AND s.from_position < r.position
        AND EXISTS (SELECT 1 FROM temp.wanted w
            WHERE w.taker = s.format || '/' || s.updates AND w.news = r.news)))
"""


def assign_positions(
    count: int, matched: Matched | None, connection: sqlite3.Connection
) -> int:
    """The last of so many new positions; dense, since a rollback returns them."""
    if not count:
        return 0
    ((head, queries),) = connection.execute(
        "UPDATE meta SET head = head + ? RETURNING head, queries", (count,)
    ).fetchall()
    if matched is not None and matched.version < queries:
        raise QueriesWanted(f"there are queries of version {queries}")
    return int(head)


def matches_of(
    commit: EncodedCommit, connection: sqlite3.Connection
) -> list[MatchWrite]:
    """Those of queries that are still there, whose owners may read the feed now."""
    if commit.matched is None or not commit.matched.matches:
        return []
    found = connection.execute(
        "SELECT t.id FROM json_each(?) asked CROSS JOIN feeds t ON t.id = asked.value"
        " CROSS JOIN feeds f ON f.id = ?"
        f" WHERE t.state = 'track' AND {may_read(OWNER.format('t.id'))}",
        (pack_ids([each.feed_id for each in commit.matched.matches]), commit.feed_id),
    )
    there = {feed_id for (feed_id,) in found}
    return [each for each in commit.matched.matches if each.feed_id in there]


def append_record(
    position: int,
    record: EncodedRecord,
    commit: EncodedCommit,
    known: dict[str, KnownEntry],
    connection: sqlite3.Connection,
) -> None:
    refs = [
        (*(known.get(key) or _refer(key, commit.feed_id, position, connection)), fresh)
        for key, fresh in record.entries
    ]
    any_fresh = any(fresh for _, fresh in record.entries)
    connection.execute(
        "INSERT INTO records (position, at, feed_id, kind, any_fresh, status, refs,"
        " is_superseded) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(position, commit.at, commit.feed_id, record.kind, any_fresh),
            *(record.status, pack_refs(refs), record.is_superseded),
        ),
    )
    if record.kind == RecordKind.ERROR:
        connection.execute(
            "DELETE FROM awaited_errors WHERE feed_id = ?", (commit.feed_id,)
        )
    if record.kind != RecordKind.BASELINE:
        _fan_out(position, commit.feed_id, connection)


def append_match(
    position: int,
    match: MatchWrite,
    commit: EncodedCommit,
    known: dict[str, KnownEntry],
    connection: sqlite3.Connection,
) -> None:
    """A record of a track query; its entries are kept as long as it is."""
    entries = [known[key] for key in match.keys]
    connection.execute(
        "INSERT INTO records (position, at, feed_id, kind, any_fresh, status, refs,"
        " is_superseded, source_id) VALUES (?, ?, ?, ?, TRUE, ?, ?, FALSE, ?)",
        (
            *(position, commit.at, match.feed_id, RecordKind.ENTRIES),
            *(commit.match_status, pack_refs([(*each, True) for each in entries])),
            commit.feed_id,
        ),
    )
    connection.execute(
        "UPDATE entries SET last_position = ?"
        " WHERE id IN (SELECT value FROM json_each(?))",
        (position, pack_ids([entry_id for entry_id, _ in entries])),
    )
    _fan_out(position, match.feed_id, connection)


def _fan_out(position: int, feed_id: int, connection: sqlite3.Connection) -> None:
    """If anybody receives it: who subscribes from here on stands above the record, for
    units of work come one after the other."""
    connection.execute(
        _FAN_OUT, {"position": position, "feed_id": feed_id, "few": FEW_SUBSCRIBERS}
    )


def _refer(
    key: str, feed_id: int, position: int, connection: sqlite3.Connection
) -> KnownEntry:
    """An entry that the commit names but does not change."""
    found = connection.execute(
        "UPDATE entries SET last_position = ? WHERE feed_id = ? AND key_hash = ?"
        " RETURNING id, revision",
        (position, feed_id, hash_key(key)),
    ).fetchall()
    if not found:
        raise WriteFailed(f"feed {feed_id} has no entry {key!r} for its record")
    entry_id, revision = found[0]
    return entry_id, revision
