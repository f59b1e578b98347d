"""What a fetch found, encoded outside the writer and applied by it as one unit."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import msgspec

from protocols.quick import quick_init
from storage.errors import DocumentWanted, QueriesWanted, WriteFailed
from storage.records import (
    EntryWrite,
    FetchCommit,
    Matched,
    MatchWrite,
    Position,
    RecordKind,
    RecordWrite,
    SiteWrite,
    StoredBody,
    pace_of,
)
from storage.wanted import DOCUMENT_KINDS, superseded

from .id_lists import pack_ids
from .log_rows import hash_key, pack_refs
from .sites import put_site
from .times import to_milliseconds, to_milliseconds_or_none

_Entry = tuple[int, int]
"""Id and revision of an entry."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedEntry:
    key: str
    key_hash: bytes
    body: bytes
    published: int | None
    deleted: bool
    unlisted: bool
    last_record: int | None  # index of the last record that names it


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecord:
    kind: str
    is_superseded: bool
    status: bytes
    entries: tuple[tuple[str, bool], ...]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedCommit:
    feed_id: int
    at: int
    feed: dict[str, object]  # parameters of the feed's own rows
    entries: tuple[EncodedEntry, ...]
    records: tuple[EncodedRecord, ...]
    seen: bytes | None
    slices: bytes | None
    head: bytes | None
    inventory: bytes | None
    raw: StoredBody | None
    site: SiteWrite | None
    body: StoredBody | None
    matched: Matched | None
    match_status: bytes  # of the records of track queries


def encode_commit(fetch: FetchCommit) -> EncodedCommit:
    at = to_milliseconds(fetch.at)
    last_records = {
        key: index
        for index, record in enumerate(fetch.records)
        for key, _fresh in record.entries
    }
    return EncodedCommit(
        feed_id=fetch.feed_id,
        at=at,
        feed={
            "id": fetch.feed_id,
            "next_fetch": to_milliseconds(fetch.next_fetch),
            "pace": pace_of(fetch.polling.period),
            "polling": msgspec.json.encode(fetch.polling),
            "fetch_url": fetch.polling.fetch_url,
            "unlisted": fetch.polling.unlisted,
            "state": fetch.state,
            "title": fetch.title,
            "format": fetch.format,
            "removed_at": at if fetch.state == "removed" else None,
        },
        entries=tuple(
            _encode_entry(entry, at, last_records.get(entry.key))
            for entry in fetch.entries
        ),
        records=tuple(map(_encode_record, fetch.records, _superseded(fetch))),
        seen=fetch.seen,
        slices=fetch.slices,
        head=fetch.head,
        inventory=fetch.inventory,
        raw=fetch.raw,
        site=fetch.site,
        body=fetch.body,
        matched=fetch.matched,
        match_status=msgspec.json.encode(fetch.records[-1].status)
        if fetch.matched and fetch.matched.matches
        else b"",
    )


def _encode_entry(entry: EntryWrite, at: int, last_record: int | None) -> EncodedEntry:
    """A date in the future counts as now: it must not stay the latest for years."""
    published = to_milliseconds_or_none(entry.published)
    return EncodedEntry(
        key=entry.key,
        key_hash=hash_key(entry.key),
        body=entry.body,
        published=None if published is None else min(published, at),
        deleted=entry.deleted,
        unlisted=entry.unlisted,
        last_record=last_record,
    )


def _superseded(fetch: FetchCommit) -> list[bool]:
    return superseded([record.kind for record in fetch.records])


def _encode_record(record: RecordWrite, is_superseded: bool) -> EncodedRecord:
    return EncodedRecord(
        kind=record.kind,
        is_superseded=is_superseded,
        status=msgspec.json.encode(record.status),
        entries=record.entries,
    )


# --- the unit of work ---


def apply_commit(
    commit: EncodedCommit, connection: sqlite3.Connection
) -> tuple[Position, ...] | None:
    """The positions of its records, those of track queries included.

    None if the feed was removed meanwhile. Raises `DocumentWanted`, `QueriesWanted`.
    """
    updated = connection.execute(
        "UPDATE feeds SET polling = :polling, fetch_url = :fetch_url,"
        " unlisted = :unlisted,"
        " state = coalesce(:state, state), title = coalesce(:title, title),"
        " format = coalesce(:format, format), removed_at = :removed_at"
        " WHERE id = :id AND state <> 'removed'",
        commit.feed,
    )
    if not updated.rowcount:
        return None
    connection.execute(
        "UPDATE schedule SET next_fetch = :next_fetch, pace = :pace"
        " WHERE feed_id = :id",
        commit.feed,
    )
    _require_document(commit, connection)
    matches = _matches(commit, connection)
    count = len(commit.records) + len(matches)
    last_position = _assign_positions(count, commit.matched, connection)
    first_position = last_position - count + 1
    _put_documents(commit, first_position, connection)
    known = {
        entry.key: _put_entry(entry, commit, first_position, connection)
        for entry in commit.entries
    }
    for position, record in enumerate(commit.records, first_position):
        _append(position, record, commit, known, connection)
    first_match = first_position + len(commit.records)
    for position, match in enumerate(matches, first_match):
        _append_match(position, match, commit, known, connection)
    return tuple(map(Position, range(first_position, last_position + 1)))


def _require_document(commit: EncodedCommit, connection: sqlite3.Connection) -> None:
    """Subscriptions may have begun since the fetch was told whether to keep it."""
    if commit.body is not None or not any(
        record.kind in DOCUMENT_KINDS for record in commit.records
    ):
        return
    (count,) = connection.execute(
        "SELECT as_is_subscribers FROM feeds WHERE id = ?", (commit.feed_id,)
    ).fetchone()
    if count:
        raise DocumentWanted(f"feed {commit.feed_id} has as-is subscriptions")


def _put_documents(
    commit: EncodedCommit, first_position: int, connection: sqlite3.Connection
) -> None:
    if commit.seen is not None:
        connection.execute(
            "INSERT INTO seen_sets VALUES (?, ?)"
            " ON CONFLICT (feed_id) DO UPDATE SET seen = excluded.seen",
            (commit.feed_id, commit.seen),
        )
    if commit.slices is not None:
        connection.execute(
            "INSERT INTO slices VALUES (?, ?)"
            " ON CONFLICT (feed_id) DO UPDATE SET slices = excluded.slices",
            (commit.feed_id, commit.slices),
        )
    if commit.head is not None:
        connection.execute(
            "INSERT INTO feed_heads VALUES (?, ?)"
            " ON CONFLICT (feed_id) DO UPDATE SET head = excluded.head",
            (commit.feed_id, commit.head),
        )
    if commit.inventory is not None:
        connection.execute(
            "INSERT INTO inventories VALUES (?, ?)"
            " ON CONFLICT (feed_id) DO UPDATE SET inventory = excluded.inventory",
            (commit.feed_id, commit.inventory),
        )
    if commit.raw is not None:
        connection.execute(
            "INSERT INTO raw_documents VALUES (?, ?, ?) ON CONFLICT (feed_id) DO UPDATE"
            " SET content_type = excluded.content_type, body = excluded.body",
            (commit.feed_id, commit.raw.content_type, commit.raw.body),
        )
    if commit.site is not None:
        put_site(commit.feed_id, commit.site, connection)
    if commit.body is not None:
        connection.execute(
            "INSERT INTO bodies (feed_id, content_type, body, position)"
            " SELECT id, ?, ?, ? FROM feeds WHERE id = ? AND as_is_subscribers > 0"
            " ON CONFLICT (feed_id) DO UPDATE"
            " SET content_type = excluded.content_type, body = excluded.body,"
            " position = max(position, excluded.position)",
            (
                *(commit.body.content_type, commit.body.body),
                *(_document_position(commit, first_position), commit.feed_id),
            ),
        )


def _document_position(commit: EncodedCommit, first_position: int) -> int:
    """Of the last record that is news of the document; 0 if none is."""
    return max(
        (
            position
            for position, record in enumerate(commit.records, first_position)
            if record.kind in DOCUMENT_KINDS
        ),
        default=0,
    )


def _assign_positions(
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


def _matches(commit: EncodedCommit, connection: sqlite3.Connection) -> list[MatchWrite]:
    """Those of queries that are still there, unless the feed became private."""
    if commit.matched is None or not commit.matched.matches:
        return []
    found = connection.execute(
        "SELECT id FROM feeds WHERE id IN (SELECT value FROM json_each(?))"
        " AND state = 'track'"
        " AND NOT (SELECT private FROM feeds WHERE id = ?)",
        (pack_ids([each.feed_id for each in commit.matched.matches]), commit.feed_id),
    )
    there = {feed_id for (feed_id,) in found}
    return [each for each in commit.matched.matches if each.feed_id in there]


def _put_entry(
    entry: EncodedEntry,
    commit: EncodedCommit,
    first_position: int,
    connection: sqlite3.Connection,
) -> _Entry:
    """A deletion keeps the last body and the entry's date."""
    is_named = entry.last_record is not None
    ((entry_id, revision),) = connection.execute(
        "INSERT INTO entries (feed_id, key_hash, key, revision, deleted, sorted_at,"
        " last_position, body, unlisted) VALUES (:feed_id, :key_hash, :key, 1,"
        " :deleted, coalesce(:published, :at), :position, :body, :unlisted)"
        " ON CONFLICT (feed_id, key_hash) DO UPDATE SET revision = revision + 1,"
        " deleted = excluded.deleted,"
        " sorted_at = iif(excluded.deleted, sorted_at,"
        "  coalesce(:published, sorted_at)),"
        " last_position = max(last_position, excluded.last_position),"
        " body = iif(excluded.deleted, body, excluded.body),"
        " unlisted = iif(excluded.deleted, unlisted, excluded.unlisted)"
        " RETURNING id, revision",
        {
            "feed_id": commit.feed_id,
            "key_hash": entry.key_hash,
            "key": entry.key,
            "deleted": entry.deleted,
            "published": entry.published,
            "at": commit.at,
            "position": first_position + (entry.last_record or 0) if is_named else 0,
            "body": entry.body,
            "unlisted": entry.unlisted,
        },
    ).fetchall()
    return entry_id, revision


def _append(
    position: int,
    record: EncodedRecord,
    commit: EncodedCommit,
    known: dict[str, _Entry],
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
    if record.kind != RecordKind.BASELINE:
        _fan_out(position, commit.feed_id, connection)


def _append_match(
    position: int,
    match: MatchWrite,
    commit: EncodedCommit,
    known: dict[str, _Entry],
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
    connection.execute(
        "INSERT INTO fanouts SELECT :position, :feed_id, 0,"
        " NOT EXISTS (SELECT 1 FROM fanouts WHERE feed_id = :feed_id)",
        {"position": position, "feed_id": feed_id},
    )


def _refer(
    key: str, feed_id: int, position: int, connection: sqlite3.Connection
) -> _Entry:
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
