"""What a copy takes from one database to the other: each table, column by column.

A value is the same whatever engine it comes from: a text, a number, bytes, a list of
whole numbers. So the same rows have the same checksum on both sides. What an engine
derives from these tables (counters, listings, indexes) is made anew in the copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeAlias

import msgspec

from storage.records import Polling
from storage.sqlite.polling_state import encode_hot

Value: TypeAlias = Any
"""None, bool, int, float, str, bytes or a list of int."""
Values: TypeAlias = tuple[Value, ...]
"""A row, in the order of its table's columns."""


class ValueKind(StrEnum):
    INTEGER = "int"
    NUMBER = "number"
    BOOLEAN = "bool"
    TEXT = "text"
    BYTES = "bytes"
    IDS = "ids"
    """Of subscriptions, ascending."""
    REFERENCES = "refs"
    """To entries: pairs of 64-bit integers, the most significant byte first."""
    FETCH_STATE = "state"
    """What a fetch writes of a polling state: JSON of all `HOT_FIELDS`, in their order;
    empty before the first."""
    LATEST_POLLS = "polls"
    """Each of 14 bytes, the latest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedColumn:
    """A column with the name that it has in PostgreSQL, and ``sqlite``, its name
    there."""

    name: str
    kind: ValueKind
    sqlite: str


@dataclass(frozen=True, kw_only=True)
class CopiedTable:
    """A table with the name that it has in PostgreSQL.

    ``key`` orders its rows. ``sqlite`` and ``postgres`` are what it is read from there,
    with a condition where only some rows are meant. ``sqlite_write`` is the statement
    that writes a row, where it is no plain insertion. ``seeds`` is the condition for
    rows that every new database has. ``is_numbered``: ids are given, none twice.
    """

    name: str
    key: tuple[str, ...]
    columns: tuple[CopiedColumn, ...]
    sqlite: str
    postgres: str
    sqlite_write: str = ""
    seeds: str = ""
    is_numbered: bool = False

    @cached_property
    def key_places(self) -> tuple[int, ...]:
        names = [each.name for each in self.columns]
        return tuple(names.index(each) for each in self.key)


def _table(
    name: str,
    key: str,
    columns: str,
    *,
    sqlite: str = "",
    postgres: str = "",
    sqlite_write: str = "",
    seeds: str = "",
    is_numbered: bool = False,
) -> CopiedTable:
    """``columns``: ``name kind``, and behind ``=`` its name in SQLite."""
    return CopiedTable(
        name=name,
        key=tuple(key.split()),
        columns=tuple(_column(each.strip()) for each in columns.split(",")),
        sqlite=sqlite or name,
        postgres=postgres or name,
        sqlite_write=sqlite_write,
        seeds=seeds,
        is_numbered=is_numbered,
    )


def _column(text: str) -> CopiedColumn:
    text, _, sqlite = text.partition("=")
    name, kind = text.split()
    return CopiedColumn(name=name, kind=ValueKind(kind), sqlite=sqlite.strip() or name)


_OF_HUB: Final = (
    _table("series_samples", "at", "at int, body bytes"),
    _table("fine_samples", "at", "at int, body bytes"),
    _table("playground_runs", "id", "id text, used_at int, body bytes"),
    _table("accounts", "id", "id int, name text", seeds="id <= 2", is_numbered=True),
    _table(
        "notified",
        "account_id",
        "account_id int = id, requests int = notified",
        sqlite="accounts WHERE notified <> 0",
        postgres="notified WHERE requests <> 0",
        sqlite_write="UPDATE accounts SET notified = ?2 WHERE id = ?1",
    ),
    _table(
        "tokens",
        "id",
        "id int, account_id int, digest bytes, scopes text = rights, label text,"
        " created_at int, used_at int, revoked_at int",
        is_numbered=True,
    ),
    _table(
        "sessions",
        "digest",
        "digest bytes, token_id int, is_link bool, created_at int, used_at int",
    ),
    _table(
        "plans",
        "id",
        "id int, account_id int, action text, kind text, wanted text, category text,"
        " head int, total int, sample text, state text, created_at int,"
        " expires_at int, confirmed_at int, finished_at int, place_id int,"
        " place_key text, done int, failed int, failures text",
        is_numbered=True,
    ),
    _table(
        "list_watches",
        "id",
        "id int, url text, category text, private bool, created_at int, due int,"
        " read_at int, changed_at int, error text, failures int, validators text,"
        " is_doubted bool, feeds int, refused int, added int, removed int, kept int",
        is_numbered=True,
    ),
    _table(
        "watched_feeds",
        "watch_id resource_hash",
        "watch_id int, resource_hash bytes, url text, category text, fate text,"
        " feed_id int",
    ),
    _table(
        "audit",
        "id",
        "id int, at int, account_id int, token_id int, is_admin bool, session text,"
        " address text, source text, operation text, target text, target_id int,"
        " target_name text, status int, detail text",
        is_numbered=True,
    ),
)

_OF_FEEDS: Final = (
    _table(
        "feeds",
        "id",
        "id int, url text, state text, private bool, category text = section,"
        " title text, format text, created_at int, removed_at int, fetch_url text,"
        " credentials text, resource_hash bytes, page_hash bytes, publish_secret text,"
        " subscription_callback text, unlisted bool, condition text,"
        " condition_since int, turned_at int, own_period number, version int,"
        " polling bytes",
        is_numbered=True,
    ),
    _table(
        "feed_hot",
        "feed_id",
        "feed_id int, polling state, recent_polls polls",
        postgres="(SELECT s.feed_id, s.polling, h.recent_polls FROM fetch_states s"
        " JOIN feed_hot h ON h.feed_id = s.feed_id) s",
    ),
    _table(
        "earlier_polls",
        "feed_id",
        "feed_id int, polls bytes",
        postgres="(SELECT feed_id, string_agg(polls, ''::bytea ORDER BY turn) AS polls"
        " FROM earlier_polls GROUP BY feed_id) e",
    ),
    _table(
        "schedule",
        "feed_id",
        "feed_id int, next_fetch int, is_active bool, pace int",
        postgres="(SELECT h.feed_id, h.next_fetch, f.state = 'active' AS is_active,"
        " h.pace FROM feed_hot h JOIN feeds f ON f.id = h.feed_id) s",
    ),
    _table("host_holds", "host", "host text, until int"),
    _table("given_names", "feed_id", "feed_id int, title text, description text"),
    _table("awaited_errors", "feed_id", "feed_id int"),
    _table("seen_sets", "feed_id", "feed_id int, seen bytes"),
    _table("slices", "feed_id", "feed_id int, slices bytes"),
    _table("feed_heads", "feed_id", "feed_id int, head bytes"),
    _table("inventories", "feed_id", "feed_id int, inventory bytes"),
    _table("raw_documents", "feed_id", "feed_id int, content_type text, body bytes"),
    _table(
        "bodies", "feed_id", "feed_id int, content_type text, body bytes, position int"
    ),
    _table("site_states", "feed_id", "feed_id int, state bytes"),
    _table(
        "site_pages",
        "feed_id key_hash",
        "feed_id int, key_hash bytes, key text, reference text, content int, stamp int,"
        " walk int, day int, changes int, deleted bool",
    ),
    _table(
        "feed_statistics",
        "feed_id",
        "feed_id int, due int, maintained_at int, popularity number, porn_rank number,"
        " is_stale bool, site text",
        sqlite="standings",
    ),
    _table("feed_links", "place feed_id", "place text, feed_id int"),
    _table(
        "pushes",
        "feed_id",
        "feed_id int, way text, hub text, topic text, marks text, record bytes,"
        " until int, hinted_at int, failures int, asked_at int, retry_at int,"
        " error text = trouble, due int",
    ),
    _table(
        "push_callbacks",
        "id",
        "id int, feed_id int, way text, hub text, topic text, token_hash bytes,"
        " token text, secret text, state text, asked_at int, until int",
        is_numbered=True,
    ),
    _table("push_hubs", "hub what", "hub text, what text, count int"),
    _table(
        "track_queries",
        "feed_id",
        "feed_id int, query text, wanted_at int, account_id int",
    ),
)

_OF_LOG: Final = (
    _table(
        "records",
        "position",
        "position int, at int, feed_id int, kind text, any_fresh bool, status bytes,"
        " refs refs, is_superseded bool, source_id int, event text",
        postgres="kept_records",
    ),
    _table("trimmed", "feed_id", "feed_id int, position int"),
    _table(
        "entries",
        "id",
        "id int, feed_id int, key_hash bytes, key text, revision int, deleted bool,"
        " sorted_at int, last_position int, body bytes, unlisted bool",
        is_numbered=True,
    ),
    _table("event_queue", "id", "id int, event text", is_numbered=True),
    _table("hub_conditions", "name", "name text, event text"),
    _table(
        "topics", "id", "id int, url text, feed_id int, normal text", is_numbered=True
    ),
    _table(
        "subscriptions",
        "id",
        "id int, account_id int, topic_id int, feed_id int, callback_hash bytes,"
        " callback text, secret text, algorithm text, format text, updates text,"
        " batch bool, state text, from_position int, lease_end int, created_at int,"
        " exhausted bool, ended_reason text, ended_at int, former_secret text,"
        " former_until int, condition text, condition_since int, failure text,"
        " paused_at int, told_since int",
        is_numbered=True,
    ),
    _table("digests", "subscription_id", "subscription_id int, due int"),
    _table(
        "verifications",
        "id",
        "id int, account_id int, mode text, topic text, callback text, host text,"
        " key_hash bytes, token_hash bytes, lease_seconds int, secret text,"
        " algorithm text, format text, verify_token text, account_request text = wish,"
        " asker text, state text, created_at int, attempts int, due int, tried_at int,"
        " status int, excerpt text, reason text, kept_until int",
        is_numbered=True,
    ),
    _table(
        "fanouts",
        "position",
        "position int, feed_id int, after_id int",
        sqlite_write="INSERT INTO fanouts (position, feed_id, after_id, is_next)"
        " VALUES (?1, ?2, ?3, 0)",
    ),
    _table(
        "fanout_turns",
        "feed_id",
        "feed_id int, first int = position, turn int",
        sqlite="fanouts WHERE is_next = 1",
        sqlite_write="UPDATE fanouts SET is_next = 1, turn = ?3"
        " WHERE feed_id = ?1 AND position = ?2",
    ),
    _table(
        "chunks",
        "id",
        "id int, position int, feed_id int, at int, lease_id int, due int,"
        " members ids, outcomes bytes, times bytes",
        is_numbered=True,
    ),
    _table(
        "deliveries",
        "id",
        "id int, feed_id int, position int, at int, first_id int, last_id int,"
        " members ids, outcomes bytes, times bytes",
        is_numbered=True,
    ),
    _table(
        "attempts",
        "id",
        "id int, subscription_id int, position int, at int, status int,"
        " milliseconds int, error text, host text, details bytes, reason int,"
        " number int",
        is_numbered=True,
    ),
    _table(
        "retries",
        "subscription_id",
        "subscription_id int, feed_id int, position int, attempts int, next_try int,"
        " failing_since int, last_status int, last_error text, skip_after int,"
        " skip_to int, missed_first int, missed_last int, lease_id int, due int,"
        " tried_to int, news_from int, is_paused bool",
        sqlite="stragglers",
    ),
    _table(
        "dead_letters",
        "id",
        "id int, subscription_id int, first int, last int, reason text, at int",
        sqlite="dead",
        is_numbered=True,
    ),
)

_OF_PAGES: Final = (
    _table("page_news", "entry_id", "entry_id int"),
    _table("page_feeds", "feed_id", "feed_id int, is_moved bool"),
    _table("page_origins", "feed_id", "feed_id int, origin text"),
    _table("page_sections", "name", "name text", seeds="name = ''"),
    _table(
        "page_withdrawals",
        "section",
        "section text = name, total int = withdrawals",
        sqlite="page_sections WHERE withdrawals <> 0",
        postgres="(SELECT section, sum(total)::bigint AS total FROM page_withdrawals"
        " GROUP BY section HAVING sum(total) <> 0) w",
        sqlite_write="UPDATE page_sections SET withdrawals = ?2 WHERE name = ?1",
    ),
    _table("page_shown", "feed_id section", "feed_id int, section text"),
    _table(
        "page_entries",
        "entry_id",
        "entry_id int, page_id int, section text, dated int, revision int, stated int,"
        " rank int, owner int, language text, inherits_language bool",
    ),
    _table(
        "pages",
        "id",
        "id int, url_hash bytes, url text, entry_id int, revision int, modified int,"
        " change int, changed_at int, dated int, shown_at int, published int,"
        " language text, owner int",
        is_numbered=True,
    ),
    _table(
        "section_pages",
        "section page_id",
        "section text, page_id int, entry_id int, revision int, modified int,"
        " change int, language text",
    ),
    _table("page_counts", "level bucket", "level int, bucket int, pages int"),
)


TABLES: Final[tuple[CopiedTable, ...]] = (*_OF_HUB, *_OF_FEEDS, *_OF_LOG, *_OF_PAGES)
"""In the order in which they are copied."""

# --- values ---

_pollings = msgspec.json.Decoder(Polling)


def fetch_state(polling: bytes) -> bytes:
    """In the one form that is compared: engines have members in other orders, or leave
    some out."""
    return encode_hot(_pollings.decode(polling)) if polling else b""


Conversions: TypeAlias = Sequence[tuple[int, Callable[[Value], Value]]]
"""Of a row's values, by their places."""


def conversions_of(
    table: CopiedTable, by_kind: Mapping[ValueKind, Callable[[Value], Value]]
) -> Conversions:
    return [
        (place, by_kind[column.kind])
        for place, column in enumerate(table.columns)
        if column.kind in by_kind
    ]


def converted(row: Sequence[Value], conversions: Conversions) -> Values:
    values = list(row)
    for place, convert in conversions:
        if values[place] is not None:
            values[place] = convert(values[place])
    return tuple(values)


# --- rows ---

BATCH_ROWS: Final = 5_000
BATCH_BYTES: Final = 2_000_000
"""About so much is in memory, and written in one transaction."""
_FIRST_ROWS: Final = 50
_encoder: Final = msgspec.msgpack.Encoder()
_MODULUS: Final = 1 << 128


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Some rows of a table, and what they are summed up by."""

    rows: Sequence[Values]
    encoded: Sequence[bytes]
    last_key: Values


def batches_of(
    table: CopiedTable,
    fetch: Callable[[int], Sequence[Sequence[Value]]],
    convert: Callable[[Sequence[Value]], Values],
) -> Iterator[CopiedRows]:
    """What ``fetch`` gives, so many rows at a time that they have `BATCH_BYTES`."""
    count = _FIRST_ROWS
    while found := fetch(count):
        rows = [convert(each) for each in found]
        encoded = [_encoder.encode(each) for each in rows]
        last_key = tuple(found[-1][place] for place in table.key_places)
        yield CopiedRows(rows, encoded, last_key)
        fitting = count * BATCH_BYTES // max(1, sum(map(len, encoded)))
        count = max(1, min(fitting, count * 4, BATCH_ROWS))


class TableProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a table is copied, and what its rows so far amount to.

    ``last_key`` is as its source has it; empty before the first row. ``checksum`` is a
    sum over all rows, the same in whatever order they come.
    """

    last_key: tuple[Value, ...] = ()
    rows: int = 0
    checksum: str = "0" * 32
    is_whole: bool = False

    def with_rows(self, added: CopiedRows) -> TableProgress:
        total = int(self.checksum, 16)
        for each in added.encoded:
            found = hashlib.blake2b(each, digest_size=16).digest()
            total += int.from_bytes(found, "big")
        return msgspec.structs.replace(
            self,
            last_key=added.last_key,
            rows=self.rows + len(added.rows),
            checksum=f"{total % _MODULUS:032x}",
        )
