"""The result of a fetch: encoded and packed outside the writer, applied as one unit.

The unit writes the feed's state, its documents (one row each, overwritten every time),
its entries, and the records of the log, including those of matching track queries. Nine
of ten fetches find nothing new and change only the polling state and the next request:
many of these form one unit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from protocols.model import Entry
from storage.errors import BodyRequired, StaleQueries, WriteFailed
from storage.packing import pack_bytes
from storage.records import (
    CommitOutcome,
    DocumentWrite,
    FetchCommit,
    Matched,
    MatchWrite,
    NotStored,
    Pace,
    Position,
    RecordKind,
    RecordWrite,
    SiteWrite,
    Stored,
    StoredBody,
    pace_of,
)
from storage.sqlite.columns import pack_ids, to_milliseconds, to_milliseconds_or_none
from storage.sqlite.event_queue import are_wanted, encode_event, queue_events
from storage.sqlite.feed_access import OWNER, may_read
from storage.sqlite.log_appends import assign_positions, fan_out
from storage.sqlite.polling_state import encode_cold, encode_hot
from storage.sqlite.polls import APPENDED, pack_poll
from storage.sqlite.pushes import EncodedPush, put_push
from storage.sqlite.rows import encode_push, hash_key, pack_refs
from storage.sqlite.sites import put_site
from storage.subscription_filter import DOCUMENT_KINDS, superseded

# --- encoding ---


class EncodedEntry(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    key_hash: bytes
    body: bytes
    published: int | None
    deleted: bool
    unlisted: bool
    last_record: int | None  # index of the last record that names it


class EncodedRecord(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    is_superseded: bool
    status: bytes
    entries: tuple[tuple[str, bool], ...]


class EncodedCommit(msgspec.Struct, frozen=True, kw_only=True):
    feed_id: int
    at: int
    feed: dict[str, object]  # parameters of the feed's own rows
    turn: dict[str, object] | None  # its state and health; None: unchanged
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
    push: EncodedPush | None
    events: tuple[str, ...]


class PlainValues(msgspec.Struct, frozen=True, kw_only=True):
    """The encoded values of a commit, not yet packed: deletions before entries."""

    deletions: list[bytes]
    entries: list[bytes]
    head: bytes | None
    documents: int  # bytes of the documents, which are packed as they are

    @property
    def size(self) -> int:
        encoded = map(len, (*self.deletions, *self.entries, self.head or b""))
        return sum(encoded) + self.documents


def encode_values(fetch: FetchCommit) -> PlainValues:
    """Encode the values of a commit, before they are packed.

    The body of a deletion is only used if the entry is unknown: a known entry keeps its
    last body.
    """
    encode = msgspec.json.encode
    documents = [len(each.body) for each in (fetch.raw, fetch.body) if each is not None]
    return PlainValues(
        deletions=[encode(Entry(key=e.key, id=e.id)) for e in fetch.deletions],
        entries=[encode(entry) for entry in fetch.entries],
        head=None if fetch.head is None else encode(fetch.head),
        documents=sum(documents),
    )


def encode_commit(fetch: FetchCommit, values: PlainValues) -> EncodedCommit:
    """Encode a commit, and pack its ``values``."""
    at = to_milliseconds(fetch.at)
    last_records = {
        key: index
        for index, record in enumerate(fetch.records)
        for key, _fresh in record.entries
    }
    kinds = [record.kind for record in fetch.records]
    turn: dict[str, object] = {
        "id": fetch.feed_id,
        "at": at,
        "state": fetch.state,
        "condition": fetch.condition,
    }
    return EncodedCommit(
        feed_id=fetch.feed_id,
        at=at,
        feed={
            "id": fetch.feed_id,
            "version": fetch.version,
            "next_fetch": to_milliseconds(fetch.next_fetch),
            "pace": pace_of(fetch.polling.period),
            "hot": encode_hot(fetch.polling),
            "cold": encode_cold(fetch.polling) if fetch.changes_cold else None,
            "fetch_url": fetch.polling.fetch_url,
            "poll": None if fetch.poll is None else pack_poll(fetch.poll),
            "unlisted": fetch.polling.unlisted,
            "title": fetch.title,
            "format": fetch.format,
        },
        turn=None if fetch.state is None and fetch.condition is None else turn,
        entries=tuple(_encode_entries(fetch, values, at, last_records)),
        records=tuple(map(_encode_record, fetch.records, superseded(kinds))),
        seen=fetch.seen,
        slices=fetch.slices,
        head=None if values.head is None else pack_bytes(values.head),
        inventory=fetch.inventory,
        raw=_pack_document(fetch.raw),
        site=fetch.site,
        body=_pack_document(fetch.body),
        matched=fetch.matched,
        match_status=msgspec.json.encode(fetch.records[-1].status)
        if fetch.matched and fetch.matched.matches
        else b"",
        push=EncodedPush(row=encode_push(fetch.push), counted=fetch.push.counted)
        if fetch.push
        else None,
        events=tuple(map(encode_event, fetch.events)),
    )


def _encode_entries(
    fetch: FetchCommit, values: PlainValues, at: int, last_records: dict[str, int]
) -> Iterator[EncodedEntry]:
    """Encode deletions, then entries. A date in the future counts as now: it must not
    stay the latest for years."""
    for deletion, plain in zip(fetch.deletions, values.deletions, strict=True):
        yield EncodedEntry(
            key=deletion.key,
            key_hash=hash_key(deletion.key),
            body=pack_bytes(plain),
            published=None,
            deleted=True,
            unlisted=False,
            last_record=last_records.get(deletion.key),
        )
    for entry, plain in zip(fetch.entries, values.entries, strict=True):
        published = to_milliseconds_or_none(entry.published or entry.updated)
        yield EncodedEntry(
            key=entry.key,
            key_hash=hash_key(entry.key),
            body=pack_bytes(plain),
            published=None if published is None else min(published, at),
            deleted=False,
            unlisted=entry.unlisted,
            last_record=last_records.get(entry.key),
        )


def _pack_document(document: DocumentWrite | None) -> StoredBody | None:
    if document is None:
        return None
    body = pack_bytes(document.body)
    return StoredBody(content_type=document.content_type, body=body)


def _encode_record(record: RecordWrite, is_superseded: bool) -> EncodedRecord:
    return EncodedRecord(
        kind=record.kind,
        is_superseded=is_superseded,
        status=msgspec.json.encode(record.status),
        entries=record.entries,
    )


# --- documents ---


def _upsert(table: str, column: str) -> str:
    return (
        f"INSERT INTO {table} (feed_id, {column}) VALUES (?, ?)"
        f" ON CONFLICT (feed_id) DO UPDATE SET {column} = excluded.{column}"
    )


_SEEN: Final = _upsert("seen_sets", "seen")
_SLICES: Final = _upsert("slices", "slices")
_HEAD: Final = _upsert("feed_heads", "head")
_INVENTORY: Final = _upsert("inventories", "inventory")
_OF_KEEPER: Final = (
    "FROM feeds f CROSS JOIN feed_audience a ON a.feed_id = f.id WHERE f.id = ?"
    " AND (a.as_is > 0 OR (a.by_topic > 0 AND f.format IN ('', 'part')))"
)
"""A feed, if an active subscription is sent the document itself."""
_KEEPS_DOCUMENT: Final = f"SELECT 1 {_OF_KEEPER}"


def require_document(commit: EncodedCommit, connection: sqlite3.Connection) -> None:
    """Refuse a commit that lacks a document which subscriptions are waiting for.

    These may have begun after the fetch was told whether to keep the document. Raises
    `BodyRequired`.
    """
    if commit.body is not None or not any(
        record.kind in DOCUMENT_KINDS for record in commit.records
    ):
        return
    if connection.execute(_KEEPS_DOCUMENT, (commit.feed_id,)).fetchone():
        raise BodyRequired(f"feed {commit.feed_id} has as-is subscriptions")


def put_documents(
    commit: EncodedCommit, first_position: int, connection: sqlite3.Connection
) -> None:
    for upsert, packed in (
        (_SEEN, commit.seen),
        (_SLICES, commit.slices),
        (_HEAD, commit.head),
        (_INVENTORY, commit.inventory),
    ):
        if packed is not None:
            connection.execute(upsert, (commit.feed_id, packed))
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
            f" SELECT id, ?, ?, ? {_OF_KEEPER}"
            " ON CONFLICT (feed_id) DO UPDATE"
            " SET content_type = excluded.content_type, body = excluded.body,"
            " position = max(position, excluded.position)",
            (
                *(commit.body.content_type, commit.body.body),
                *(_document_position(commit, first_position), commit.feed_id),
            ),
        )


def _document_position(commit: EncodedCommit, first_position: int) -> int:
    """The position of the last record that is news of the document; 0 if none is."""
    return max(
        (
            position
            for position, record in enumerate(commit.records, first_position)
            if record.kind in DOCUMENT_KINDS
        ),
        default=0,
    )


KnownEntry = tuple[int, int]
"""Id and revision of an entry."""

# --- records ---


def _assign_positions(
    count: int, matched: Matched | None, connection: sqlite3.Connection
) -> int:
    """Assign ``count`` new positions; returns the last, 0 if there are none. Raises
    `StaleQueries`."""
    if not count:
        return 0
    last, queries = assign_positions(count, connection)
    if matched is not None and matched.version < queries:
        raise StaleQueries(f"there are queries of version {queries}")
    return last


def matches_of(
    feed_id: int, matches: Sequence[MatchWrite], connection: sqlite3.Connection
) -> list[MatchWrite]:
    """Matches of queries that still exist and whose owners may read the feed now."""
    found = connection.execute(
        "SELECT t.id FROM json_each(?) asked CROSS JOIN feeds t ON t.id = asked.value"
        " CROSS JOIN feeds f ON f.id = ?"
        f" WHERE t.state = 'track' AND {may_read(OWNER.format('t.id'))}",
        (pack_ids([each.feed_id for each in matches]), feed_id),
    )
    there = {query_id for (query_id,) in found}
    return [each for each in matches if each.feed_id in there]


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
        fan_out(position, commit.feed_id, connection)


def append_match(
    position: int,
    match: MatchWrite,
    commit: EncodedCommit,
    known: dict[str, KnownEntry],
    connection: sqlite3.Connection,
) -> None:
    """Append a record of a track query; its entries are kept for as long as the
    record."""
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
    fan_out(position, match.feed_id, connection)


def _refer(
    key: str, feed_id: int, position: int, connection: sqlite3.Connection
) -> KnownEntry:
    """Id and revision of an entry that the commit names but does not change."""
    found = connection.execute(
        "UPDATE entries SET last_position = ? WHERE feed_id = ? AND key_hash = ?"
        " RETURNING id, revision",
        (position, feed_id, hash_key(key)),
    ).fetchall()
    if not found:
        raise WriteFailed(f"feed {feed_id} has no entry {key!r} for its record")
    entry_id, revision = found[0]
    return entry_id, revision


# --- the unit of work ---

_TURN: Final = """
UPDATE feeds SET
    turned_at = iif(state = coalesce(:state, state), turned_at, :at),
    removed_at = iif(:state = 'removed', :at, removed_at),
    state = coalesce(:state, state),
    condition_since = iif(condition = coalesce(:condition, condition),
        condition_since, :at),
    condition = coalesce(:condition, condition)
WHERE id = :id
"""


def apply_commit(
    commit: EncodedCommit, connection: sqlite3.Connection
) -> CommitOutcome:
    """Apply a commit. Raises `BodyRequired`, `StaleQueries`."""
    updated = connection.execute(
        "UPDATE feeds SET polling = coalesce(:cold, polling),"
        " fetch_url = :fetch_url, unlisted = :unlisted,"
        # The name given to the feed is used while it has no title of its own.
        " title = CASE :title WHEN '' THEN coalesce("
        "(SELECT title FROM given_names WHERE feed_id = :id), '')"
        " ELSE coalesce(:title, title) END,"
        " format = coalesce(:format, format), version = version + 1"
        " WHERE id = :id AND state <> 'removed'"
        " AND version = coalesce(:version, version) RETURNING version",
        commit.feed,
    ).fetchall()
    if not updated:
        return _why_not(commit.feed_id, connection)
    if commit.turn is not None:  # separate: its columns are in many indexes
        connection.execute(_TURN, commit.turn)
    if commit.events and are_wanted(connection):
        queue_events(commit.events, connection)
    connection.execute(
        "UPDATE feed_hot SET polling = :hot,"
        f" recent_polls = {APPENDED.format(':poll')} WHERE feed_id = :id",
        commit.feed,
    )
    connection.execute(
        "UPDATE schedule SET next_fetch = :next_fetch, pace = :pace"
        " WHERE feed_id = :id",
        commit.feed,
    )
    require_document(commit, connection)
    if commit.push is not None:
        put_push(commit.feed_id, commit.at, commit.push, connection)
    matches: list[MatchWrite] = []
    if commit.matched is not None and commit.matched.matches:
        matches = matches_of(commit.feed_id, commit.matched.matches, connection)
    count = len(commit.records) + len(matches)
    last_position = _assign_positions(count, commit.matched, connection)
    first_position = last_position - count + 1
    put_documents(commit, first_position, connection)
    known = {
        entry.key: _put_entry(entry, commit, first_position, connection)
        for entry in commit.entries
    }
    for position, record in enumerate(commit.records, first_position):
        append_record(position, record, commit, known, connection)
    first_match = first_position + len(commit.records)
    for position, match in enumerate(matches, first_match):
        append_match(position, match, commit, known, connection)
    ((version,),) = updated
    positions = tuple(map(Position, range(first_position, last_position + 1)))
    return Stored(positions, version)


def _why_not(feed_id: int, connection: sqlite3.Connection) -> NotStored:
    found = connection.execute(
        "SELECT 1 FROM feeds WHERE id = ? AND state <> 'removed'", (feed_id,)
    ).fetchone()
    return NotStored.GONE if found is None else NotStored.STALE


def _put_entry(
    entry: EncodedEntry,
    commit: EncodedCommit,
    first_position: int,
    connection: sqlite3.Connection,
) -> KnownEntry:
    """Store an entry. A deletion keeps the last body and the entry's date."""
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


# --- commits without news ---

PAUSE = 0.01
"""Seconds between two batches: nobody waits for the result of such a fetch."""

QuietCommit = tuple[bytes, bytes | None, str, int, Pace, bytes | None, int, int | None]
"""The hot part of the polling state, and the cold part if it has changed; the next
request's URL, time and pace; the poll for the history; the feed; and the version the
commit was decided on."""


def encode_quiet(fetch: FetchCommit) -> QuietCommit:
    return (
        encode_hot(fetch.polling),
        encode_cold(fetch.polling) if fetch.changes_cold else None,
        fetch.polling.fetch_url,
        to_milliseconds(fetch.next_fetch),
        pace_of(fetch.polling.period),
        None if fetch.poll is None else pack_poll(fetch.poll),
        fetch.feed_id,
        fetch.version,
    )


def apply_quiet(
    commits: Sequence[QuietCommit], connection: sqlite3.Connection
) -> list[CommitOutcome]:
    """Apply commits that have found nothing; several of one feed must be in order."""
    ids = [feed_id for *_, feed_id, _version in commits]
    versions: dict[int, int] = dict(
        connection.execute(
            "SELECT f.id, f.version FROM json_each(?) asked"
            " CROSS JOIN feeds f ON f.id = asked.value WHERE f.state <> 'removed'",
            (pack_ids(ids),),
        )
    )
    outcomes: list[CommitOutcome] = []
    stored: list[tuple[object, ...]] = []
    changed: list[tuple[object, ...]] = []
    for commit in commits:
        outcome = _outcome_of(commit, versions)
        outcomes.append(outcome)
        if isinstance(outcome, Stored):
            versions[commit[-2]] = outcome.version
            stored.append(commit[:-1])
            if commit[1] is not None:
                changed.append(commit[:-1])
    connection.executemany(
        "UPDATE feed_hot SET polling = ?1,"
        f" recent_polls = {APPENDED.format('?6')} WHERE feed_id = ?7",
        stored,
    )
    connection.executemany(
        "UPDATE feeds SET polling = ?2, fetch_url = ?3, version = version + 1"
        " WHERE id = ?7",
        changed,
    )
    connection.executemany(
        "UPDATE schedule SET next_fetch = ?4, pace = ?5 WHERE feed_id = ?7", stored
    )
    return outcomes


def _outcome_of(commit: QuietCommit, versions: Mapping[int, int]) -> CommitOutcome:
    _, cold, *_, feed_id, decided_on = commit
    version = versions.get(feed_id)
    if version is None:
        return NotStored.GONE
    if decided_on not in (None, version):
        return NotStored.STALE
    return Stored((), version + (cold is not None))
