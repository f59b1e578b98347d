"""The result of a fetch, packed as rows for ``commit_news`` and ``commit_quiet``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from psycopg import AsyncConnection

from storage.packing import pack_bytes
from storage.postgres.connections import Row, storable
from storage.postgres.packed_rows import (
    Column,
    FirstColumns,
    PackedRows,
    column_of_bytes,
    column_of_int4,
    column_of_int8,
    column_of_json,
    column_of_text,
    pack_place,
    pack_row,
    pack_rows,
)
from storage.postgres.polling_state import fetch_state_of
from storage.postgres.rows import news_of
from storage.records import (
    ClaimTerms,
    DocumentWrite,
    FeedId,
    FetchCommit,
    RecordKind,
    SiteWrite,
    pace_of,
)
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.event_queue import encode_event
from storage.sqlite.fetch_commits import PlainValues
from storage.sqlite.polling_state import encode_cold
from storage.sqlite.polls import pack_poll
from storage.sqlite.rows import encode_push, hash_key
from storage.subscription_filter import DOCUMENT_KINDS, superseded

_NUL: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_ANY_QUERIES: Final = 2**63 - 1
"""The version of a commit that no query can make stale."""
_COMMIT: Final = FirstColumns(
    32,
    *(Column.INT8, Column.INT8, Column.INT8, Column.INT2, Column.INT4),
    *(Column.FLOAT8, Column.FLOAT8, Column.FLOAT8, Column.INT4),
    *(Column.BOOLEAN, Column.BOOLEAN, Column.INT8, Column.BOOLEAN, Column.BOOLEAN),
)
_ENTRY: Final = FirstColumns(
    12,
    *(Column.INT8, Column.INT8, Column.INT4, Column.INT4),
    *(Column.BOOLEAN, Column.BOOLEAN, Column.HASH),
)
_RECORD: Final = FirstColumns(9, Column.INT8, Column.INT8, Column.INT8, Column.BOOLEAN)
_NO_MORE: Final = b"".join(
    (
        *(column_of_bytes(None), column_of_bytes(None), column_of_bytes(None)),
        *(column_of_text(None), column_of_bytes(None)),
        *(column_of_text(None), column_of_bytes(None)),
        *(column_of_int4(None), column_of_json(None)),
    )
)
"""The columns from ``slices`` to ``more`` of a commit that has none of these."""
_MORE: Final = (
    *("slices", "head", "inventory", "raw", "body", "title", "format"),
    *("state", "condition", "push", "site", "events"),
)
_more_of: Final = attrgetter(*_MORE)
_NOTHING: Final = (*(None for _ in _MORE[:-1]), ())
_encode: Final = msgspec.json.Encoder().encode


class RowTypes(NamedTuple):
    """The numbers of the types of rows in this database."""

    commit: int
    entry: int
    record: int


_ROW_TYPES: Final = (
    "SELECT 'fetch_commit'::regtype::oid::bigint, 'fetch_entry'::regtype::oid::bigint,"
    " 'fetch_record'::regtype::oid::bigint"
)


async def read_row_types(connection: AsyncConnection[Row]) -> RowTypes:
    """Raises `psycopg.Error`."""
    (row,) = await (await connection.execute(_ROW_TYPES)).fetchall()
    return RowTypes(*row)


class PackedFetch(NamedTuple):
    """A commit as rows, without their places in the call that will take them.
    ``terms``: to claim chunks with it."""

    feed_id: FeedId
    commit: bytes
    deletions: Sequence[bytes] = ()
    entries: Sequence[bytes] = ()
    named: Sequence[bytes] = ()
    records: Sequence[bytes] = ()
    terms: ClaimTerms | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        rows = (*self.deletions, *self.entries, *self.named, *self.records)
        return len(self.commit) + sum(map(len, rows))


def to_jsonb(value: object) -> bytes:
    """JSON that PostgreSQL accepts: its texts cannot have the character NUL."""
    encoded = _encode(value)
    return _NUL.sub(rb"\1\\ufffd", encoded) if b"\\u0000" in encoded else encoded


# --- the rows of a commit ---


def pack_quiet(fetch: FetchCommit) -> PackedFetch:
    """Pack a commit without news."""
    return PackedFetch(fetch.feed_id, _commit(fetch, None))


def pack_news(fetch: FetchCommit, values: PlainValues) -> PackedFetch:
    """Pack a commit, and its encoded ``values``."""
    at = to_milliseconds(fetch.at)
    stored = {each.key for each in fetch.entries}
    mentions, named = _mentions(fetch, stored.union(e.key for e in fetch.deletions))
    deletions = [
        _entry(
            *(fetch.feed_id, at, each.key, pack_bytes(plain)),
            mention=_NOT_NAMED if each.key in stored else mentions.get(each.key),
        )
        for each, plain in zip(fetch.deletions, values.deletions, strict=True)
    ]
    entries = [
        _entry(
            *(fetch.feed_id, at, each.key, pack_bytes(plain)),
            mention=mentions.get(each.key),
            is_unlisted=each.unlisted,
            dated=each.published or each.updated,
        )
        for each, plain in zip(fetch.entries, values.entries, strict=True)
    ]
    return PackedFetch(
        fetch.feed_id,
        _commit(fetch, _more(fetch, values)),
        deletions,
        entries,
        [_entry(fetch.feed_id, at, key, None, mention=each) for key, each in named],
        [*_records(fetch, at)],
    )


def _commit(fetch: FetchCommit, more: bytes | None) -> bytes:
    polling, matched = fetch.polling, fetch.matched
    state = fetch_state_of(polling)
    queries = matched.version if matched and fetch.records else _ANY_QUERIES
    first = _COMMIT.pack(
        *(fetch.feed_id, to_milliseconds(fetch.at), to_milliseconds(fetch.next_fetch)),
        *(pace_of(polling.period), state.fresh_for),
        *(state.period, state.price, state.velocity, state.unchanged),
        *(polling.unlisted, fetch.body is None and _document(fetch) > 0),
        queries,
        bool(matched and matched.matches),
        more is not None,
    )
    return pack_row(
        *(first, column_of_int8(fetch.version), column_of_int8(state.last_fetch)),
        column_of_bytes(state.outcome),
        column_of_bytes(None if fetch.poll is None else pack_poll(fetch.poll)),
        column_of_bytes(encode_cold(polling) if fetch.changes_cold else None),
        column_of_text(storable(polling.fetch_url)),
        column_of_bytes(fetch.seen),
        _NO_MORE if more is None else more,
    )


def _document(fetch: FetchCommit) -> int:
    """The number of the last record that is news of the document; 0: there is none."""
    numbers = [
        number
        for number, record in enumerate(fetch.records, 1)
        if record.kind in DOCUMENT_KINDS
    ]
    return numbers[-1] if numbers else 0


def _more(fetch: FetchCommit, values: PlainValues) -> bytes | None:
    """The columns of what few commits have; None: it has none of that."""
    if _more_of(fetch) == _NOTHING:
        return None
    head = None if values.head is None else pack_bytes(values.head)
    return b"".join(
        (
            *map(column_of_bytes, (fetch.slices, head, fetch.inventory)),
            *(*_columns_of(fetch.raw), *_columns_of(fetch.body)),
            column_of_int4(_document(fetch) or None),
            column_of_json(to_jsonb(_members(fetch))),
        )
    )


def _columns_of(document: DocumentWrite | None) -> tuple[bytes, bytes]:
    if document is None:
        return column_of_text(None), column_of_bytes(None)
    return (
        column_of_text(storable(document.content_type)),
        column_of_bytes(pack_bytes(document.body)),
    )


def _members(fetch: FetchCommit) -> dict[str, object]:
    """What few commits have, as members of a JSON object."""
    push = fetch.push
    found = {
        "title": fetch.title,
        "format": fetch.format,
        "state": fetch.state,
        "condition": fetch.condition,
        "events": [*map(encode_event, fetch.events)] or None,
        "push": push and {**encode_push(push), "counted": push.counted},
        "site": fetch.site and _site(fetch.site),
    }
    return {name: each for name, each in found.items() if each is not None}


def _site(site: SiteWrite) -> dict[str, Any]:
    return {
        "state": site.state,
        "walk": site.walk,
        "listed": [hash_key(key) for key in site.listed],
        "pages": [
            {"hash": hash_key(each.key), **msgspec.structs.asdict(each)}
            for each in site.pages
        ],
    }


class _Mention(NamedTuple):
    """Where a record names an entry."""

    record: int  # its number among the commit's; 0: no record does
    number: int  # among the entries of that record
    is_fresh: bool


_NOT_NAMED: Final = _Mention(0, 0, False)


def _mentions(
    fetch: FetchCommit, stored: AbstractSet[str]
) -> tuple[dict[str, _Mention], list[tuple[str, _Mention]]]:
    """How records name the entries that are ``stored``; and all mentions of others, and
    of an entry that was named before."""
    first: dict[str, _Mention] = {}
    named: list[tuple[str, _Mention]] = []
    for record, entries in enumerate(_named_entries(fetch), 1):
        for number, (key, is_fresh) in enumerate(entries):
            mention = _Mention(record, number, is_fresh)
            if key in first or key not in stored:
                named.append((key, mention))
            else:
                first[key] = mention
    return first, named


def _named_entries(fetch: FetchCommit) -> Iterator[Sequence[tuple[str, bool]]]:
    """The keys that each record names, and whether an entry is fresh."""
    for record in fetch.records:
        yield record.entries
    for match in fetch.matched.matches if fetch.matched else ():
        yield [(key, True) for key in match.keys]


def _entry(
    feed_id: FeedId,
    at: int,
    key: str,
    body: bytes | None,
    *,
    mention: _Mention | None,
    is_unlisted: bool = False,
    dated: datetime | None = None,
) -> bytes:
    """A date in the future counts as now: it must not stay the latest for years."""
    record, number, is_fresh = mention or _NOT_NAMED
    return pack_row(
        _ENTRY.pack(feed_id, at, record, number, is_fresh, is_unlisted, hash_key(key)),
        column_of_text(storable(key)),
        column_of_bytes(body),
        column_of_int8(None if dated is None else min(to_milliseconds(dated), at)),
    )


def _records(fetch: FetchCommit, at: int) -> Iterator[bytes]:
    """The records of the feed, then those of the queries that it matches."""
    kinds = [record.kind for record in fetch.records]
    for record, is_superseded in zip(fetch.records, superseded(kinds), strict=True):
        any_fresh = any(fresh for _, fresh in record.entries)
        news = news_of(record.kind, any_fresh=any_fresh, is_superseded=is_superseded)
        yield pack_row(
            _RECORD.pack(fetch.feed_id, at, news, is_superseded),
            column_of_text(record.kind),
            column_of_bytes(_encode(record.status)),
            column_of_int8(None),
        )
    if fetch.matched is None:
        return
    news = news_of(RecordKind.ENTRIES, any_fresh=True, is_superseded=False)
    for match in fetch.matched.matches:
        yield pack_row(
            _RECORD.pack(match.feed_id, at, news, False),
            column_of_text(RecordKind.ENTRIES),
            column_of_bytes(_encode(fetch.records[-1].status)),
            column_of_int8(fetch.feed_id),
        )


# --- the arguments of a call ---


class PackedCall(NamedTuple):
    """The rows that ``commit_news`` takes: commits by their feeds, and what belongs to
    them by their places. ``commit_quiet`` takes the first of these."""

    commits: PackedRows
    deletions: PackedRows
    entries: PackedRows
    named: PackedRows
    records: PackedRows
    fetches: Sequence[PackedFetch]


def pack_call(types: RowTypes, fetches: Sequence[PackedFetch]) -> PackedCall:
    commits: list[tuple[FeedId, bytes, bytes]] = []
    deletions: list[bytes] = []
    entries: list[bytes] = []
    named: list[bytes] = []
    records: list[bytes] = []
    for place, fetch in enumerate(fetches, 1):
        end = pack_place(place, len(records) // 2)
        commits.append((fetch.feed_id, fetch.commit, end))
        for rows, given in (
            (deletions, fetch.deletions),
            (entries, fetch.entries),
            (named, fetch.named),
            (records, fetch.records),
        ):
            for row in given:
                rows += (row, end)
    commits.sort()
    return PackedCall(
        pack_rows(types.commit, [part for _, *row in commits for part in row]),
        pack_rows(types.entry, deletions),
        pack_rows(types.entry, entries),
        pack_rows(types.entry, named),
        pack_rows(types.record, records),
        fetches,
    )
