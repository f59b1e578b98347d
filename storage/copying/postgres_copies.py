"""A database of PostgreSQL as the source of a copy, or as its target.

While it is copied, the command is the one node of the database, by a term that a thread
renews: no hub can join. A source is read in one transaction, which sees no change.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from secrets import randbits
from typing import Any, Final

import msgspec
import psycopg

from storage.copying.copied_tables import (
    TABLES,
    CopiedRows,
    CopiedTable,
    TableProgress,
    Value,
    ValueKind,
    Values,
    batches_of,
    conversions_of,
    converted,
    fetch_state,
)
from storage.copying.database_copy import CopiedHub, CopyOrigin
from storage.errors import DatabaseUnusable, StorageError
from storage.postgres.connections import ConnectionSettings
from storage.postgres.driver_errors import explained, read_failure, write_failure
from storage.postgres.feeds import fingerprint_credentials
from storage.postgres.known_end import KnownEnd
from storage.postgres.membership import TERM_SECONDS
from storage.postgres.opening import prepare_to_copy
from storage.postgres.polling_state import FetchState, fetch_state_of, turned_polls
from storage.postgres.rows import news_of, wanted_news_of
from storage.postgres.schema import COPY_STATE
from storage.records import (
    Cursor,
    Format,
    Polling,
    Position,
    RecordKind,
    Updates,
)
from storage.secrets import SecretBox, read_key
from storage.sqlite.rows import decrypt_credentials

_Connection = psycopg.Connection[tuple[Any, ...]]
_Make = Callable[[Mapping[str, Value], SecretBox | None], Value]
_ORIGIN: Final = ""
_DERIVED: Final = "#derived"
_PATIENCE: Final = TERM_SECONDS + 3
"""Seconds to wait for the end of a killed hub's term."""
_LIMITS: Final = """
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL lock_timeout = '10s';
"""
_HUB: Final = """
SELECT h.key_check, h.checked_at, h.seen_at, l.epoch, l.head, l.tail, l.queries,
    l.identity <> server_identity(), s.days
FROM hub h, log_head l, search_state s
"""


class PostgresTables:
    def __init__(
        self, settings: ConnectionSettings, connection: _Connection, term: CopyTerm
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._term = term

    @property
    def location(self) -> str:
        return self._settings.name

    def count(self, table: CopiedTable) -> int:
        ((count,),) = self._read(f"SELECT count(*) FROM {table.postgres}")
        return int(count)

    def batches(self, table: CopiedTable, after: Values) -> Iterator[CopiedRows]:
        columns = ", ".join(
            _READ_AS.get((table.name, each.name), each.name) for each in table.columns
        )
        key = ", ".join(table.key)
        behind = ""
        if after:
            word = "AND" if " WHERE " in table.postgres.partition(")")[2] else "WHERE"
            behind = f" {word} ({key}) > ({', '.join(['%s'] * len(after))})"
        with self._reading(), self._connection.transaction():
            self._connection.execute(_LIMITS)
            with self._connection.cursor("copied", binary=True) as cursor:
                cursor.execute(
                    f"SELECT {columns} FROM {table.postgres}{behind} ORDER BY {key}",
                    after or None,
                )
                conversions = conversions_of(table, _FROM_POSTGRES)
                yield from batches_of(
                    table, cursor.fetchmany, lambda row: converted(row, conversions)
                )

    def _read(self, sql: str, parameters: Sequence[Value] = ()) -> list[Any]:
        with self._reading():
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self._term.require()
        try:
            yield
        except psycopg.Error as error:
            raise read_failure(error) from error


class PostgresSource(PostgresTables):
    engine = "postgresql"

    def __init__(
        self,
        settings: ConnectionSettings,
        connection: _Connection,
        term: CopyTerm,
        key_file: Path,
    ) -> None:
        super().__init__(settings, connection, term)
        self.key = read_key(key_file)
        self._known = KnownEnd(key_file.with_suffix(".end")).cursor
        self._require_key(key_file)

    def _require_key(self, key_file: Path) -> None:
        key_check = self.hub().key_check
        if self.key is None and key_check:
            reason = f"its key file {key_file} is missing; copy that of its hub"
            raise DatabaseUnusable(self.location, reason)
        if self.key is not None and SecretBox(self.key).key_check != key_check:
            reason = f"the key file {key_file} belongs to another database"
            raise DatabaseUnusable(self.location, reason)

    def size(self) -> int:
        """Without its indexes."""
        ((size,),) = self._read(
            "SELECT sum(pg_table_size(oid))::bigint FROM pg_class"
            " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        )
        return int(size)

    def hub(self) -> CopiedHub:
        ((*found, is_elsewhere, days),) = self._read(_HUB)
        key_check, checked_at, seen_at, epoch, head, tail, queries = found
        known = self._known
        is_behind = known.epoch and (known.epoch != epoch or head < known.position)
        return CopiedHub(
            key_check=key_check,
            checked_at=checked_at,
            seen_at=seen_at,
            epoch=epoch,
            head=head,
            tail=tail,
            queries=queries,
            is_copy=bool(is_elsewhere or is_behind),
            search_days=days,
        )

    def last_ids(self) -> Mapping[str, int]:
        return {
            table.name: self._last_id(table.name)
            for table in TABLES
            if table.is_numbered
        }

    def _last_id(self, name: str) -> int:
        ((sequence,),) = self._read("SELECT pg_get_serial_sequence(%s, 'id')", (name,))
        ((last,),) = self._read(
            f"SELECT greatest(CASE WHEN is_called THEN last_value ELSE 0 END,"
            f" (SELECT coalesce(max(id), 0) FROM {name})) FROM {sequence}"
        )
        return int(last)


class PostgresTarget(PostgresTables):
    def __init__(
        self,
        settings: ConnectionSettings,
        connection: _Connection,
        term: CopyTerm,
        key_file: Path,
    ) -> None:
        super().__init__(settings, connection, term)
        self._key_file = key_file
        self._box: SecretBox | None = None

    def begin(self, origin: CopyOrigin, box: SecretBox | None) -> CopyOrigin:
        self._box = box
        with self._transaction() as connection:
            if not _is_copy(connection) or not self._read(_STATE, (_ORIGIN,)):
                for statement in _MARK:
                    connection.execute(statement)
                connection.execute(_switch_triggers("DISABLE"))
                self._note(_ORIGIN, msgspec.msgpack.encode(origin))
        ((state,),) = self._read(_STATE, (_ORIGIN,))
        return msgspec.msgpack.decode(state, type=CopyOrigin)

    def require_copy_or_nothing(self) -> None:
        """Raises `DatabaseUnusable`."""
        if _is_copy(self._connection):
            return
        for table in TABLES:
            others = f" WHERE NOT ({table.seeds})" if table.seeds else ""
            found = self._read(f"SELECT 1 FROM {table.postgres}{others} LIMIT 1")
            if found:
                raise DatabaseUnusable(
                    self.location,
                    f"it is not empty ({table.name}), and is no unfinished copy; name a"
                    " new database, or a schema: ?options=-csearch_path=fanfare",
                )

    def empty(self) -> None:
        """An unfinished copy that is to be begun anew."""
        with self._transaction() as connection:
            if _is_copy(connection):
                for statement in _EMPTY:
                    connection.execute(statement)

    def progress(self) -> Mapping[str, TableProgress]:
        return {
            name: msgspec.msgpack.decode(state, type=TableProgress)
            for name, state in self._read(f"SELECT name, state FROM {COPY_STATE}")
            if name not in (_ORIGIN, _DERIVED)
        }

    def write(
        self, table: CopiedTable, rows: Sequence[Values], progress: TableProgress
    ) -> None:
        with self._transaction() as connection:
            connection.execute("SET LOCAL synchronous_commit = off")
            if rows:
                self._put(connection, table, rows)
            self._note(table.name, msgspec.msgpack.encode(progress))

    def _put(
        self, connection: _Connection, table: CopiedTable, rows: Sequence[Values]
    ) -> None:
        match table.name:
            case "feed_hot":
                for name, columns, made in fetch_state_rows(rows):
                    _copy_rows(connection, name, columns, made)
            case "earlier_polls":
                columns = ("feed_id", "slot", "turn", "polls")
                _copy_rows(connection, table.name, columns, poll_rows(rows))
            case "schedule":
                ids, times, _, paces = map(list, zip(*rows, strict=True))
                connection.execute(_PUT_SCHEDULE, (ids, times, paces))
            case _:
                self._copy(connection, table, rows)

    def _copy(
        self, connection: _Connection, table: CopiedTable, rows: Sequence[Values]
    ) -> None:
        if table.name == "records":
            first, last = rows[0][0] // _PARTITION, rows[-1][0] // _PARTITION
            connection.execute(
                "SELECT make_partition(n) FROM generate_series(%s::bigint, %s) n",
                (first, last),
            )
        own = _OWN.get(table.name, ())
        places = [
            place
            for place, each in enumerate(table.columns)
            if (table.name, each.name) not in _NOT_WRITTEN
        ]
        names = [table.columns[place].name for place in places]
        names += [name for name, _ in own]
        _copy_rows(connection, table.name, names, self._rows(table, rows, places, own))

    def _rows(
        self,
        table: CopiedTable,
        rows: Sequence[Values],
        places: Sequence[int],
        own: Sequence[tuple[str, _Make]],
    ) -> Iterator[Sequence[Value]]:
        names = [each.name for each in table.columns]
        for row in rows:
            values = [row[place] for place in places]
            if own:
                named = dict(zip(names, row, strict=True))
                values += [make(named, self._box) for _, make in own]
            yield values

    def derive(self, hub: CopiedHub) -> None:
        with self._transaction() as connection:
            if not self._read(_STATE, (_DERIVED,)):
                for statement in _DERIVE:
                    connection.execute(statement)
                self._note(_DERIVED, b"")
        with self._writing():
            self._connection.execute("SET statement_timeout = 0")
            self._connection.execute("VACUUM (ANALYZE)")

    def complete(self, hub: CopiedHub, last_ids: Mapping[str, int]) -> None:
        with self._transaction() as connection:
            connection.execute(_PUT_HUB, msgspec.structs.asdict(hub))
            connection.execute(_PUT_HEAD, msgspec.structs.asdict(hub))
            connection.execute(_PUT_SEARCH, msgspec.structs.asdict(hub))
            for name, last in last_ids.items():
                connection.execute(
                    "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s, %s)",
                    (name, max(last, 1), last > 0),
                )
            connection.execute("SELECT ensure_partitions()")
            connection.execute(_switch_triggers("ENABLE"))
            connection.execute(f"DROP TABLE {COPY_STATE}")
        KnownEnd(self._key_file.with_suffix(".end")).note(
            Cursor(hub.epoch, Position(hub.head))
        )

    def _note(self, name: str, state: bytes) -> None:
        self._connection.execute(
            f"INSERT INTO {COPY_STATE} VALUES (%s, %s)"
            " ON CONFLICT (name) DO UPDATE SET state = excluded.state",
            (name, state),
        )

    @contextmanager
    def _transaction(self) -> Iterator[_Connection]:
        with self._writing(), self._connection.transaction():
            self._connection.execute(_LIMITS)
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._term.require()
        try:
            yield
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseUnusable(self.location, explained(error)) from error
        except psycopg.Error as error:
            raise write_failure(error) from error


def _copy_rows(
    connection: _Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]],
) -> None:
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
    with connection.cursor().copy(statement) as to:
        for row in rows:
            to.write_row(row)


# --- opening ---


@contextmanager
def postgres_source(url: str, key_file: Path) -> Iterator[PostgresSource]:
    """A database that no hub uses, for as long. Raises `DatabaseUnusable`."""
    with _opened(url, is_target=False) as (settings, connection, term):
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(_LIMITS)
        yield PostgresSource(settings, connection, term, key_file)


@contextmanager
def postgres_target(
    url: str, key_file: Path, *, restart: bool
) -> Iterator[PostgresTarget]:
    """One without content, or an unfinished copy, which is emptied for a ``restart``.

    ``key_file``: where its key will lie. Raises `DatabaseUnusable`.
    """
    with _opened(url, is_target=True) as (settings, connection, term):
        target = PostgresTarget(settings, connection, term, key_file)
        if restart:
            target.empty()
        target.require_copy_or_nothing()
        yield target


@contextmanager
def _opened(
    url: str, *, is_target: bool
) -> Iterator[tuple[ConnectionSettings, _Connection, CopyTerm]]:
    settings = asyncio.run(prepare_to_copy(url, is_target=is_target))
    try:
        with (
            closing(_connect(settings)) as connection,
            CopyTerm(settings).held() as term,
        ):
            yield settings, connection, term
    except psycopg.Error as error:
        raise DatabaseUnusable(settings.name, explained(error)) from error


def _connect(settings: ConnectionSettings) -> _Connection:
    return psycopg.connect(
        **settings.conninfo(), autocommit=True, prepare_threshold=None
    )


class CopyTerm:
    """This command as the one node of a database, until its end."""

    def __init__(
        self, settings: ConnectionSettings, *, renewal_seconds: float = TERM_SECONDS / 5
    ) -> None:
        self._settings = settings
        self._renewal_seconds = renewal_seconds
        self._incarnation = -1 - randbits(62)  # no hub has one below 0
        self._ended = threading.Event()
        self._loss = ""

    @contextmanager
    def held(self) -> Iterator[CopyTerm]:
        """Raises `DatabaseUnusable` if a hub is a member, and stays one."""
        with closing(_connect(self._settings)) as connection:
            self._join(connection)
            renewing = threading.Thread(
                target=self._renew, args=(connection,), name="copy-term", daemon=True
            )
            renewing.start()
            try:
                yield self
            finally:
                self._ended.set()
                renewing.join()
                self._leave(connection)

    def require(self) -> None:
        """Raises `StorageError` if another node has taken over, or may have."""
        if self._loss:
            raise StorageError(f"{self._settings.name}: {self._loss}")

    def _join(self, connection: _Connection) -> None:
        until = time.monotonic() + _PATIENCE
        first: object = None
        while True:
            with connection.transaction():
                connection.execute("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE")
                other = connection.execute(_MEMBER).fetchone()
                if other is None or _is_left_behind(other[0]):
                    connection.execute("DELETE FROM nodes")
                    connection.execute(
                        _JOIN, (_own_name(), self._incarnation, TERM_SECONDS)
                    )
                    return
            first = first or other
            if other != first or time.monotonic() > until:
                raise DatabaseUnusable(self._settings.name, _told(other[0]))
            time.sleep(0.5)

    def _renew(self, connection: _Connection) -> None:
        """A late renewal counts, unless others have joined."""
        while not self._ended.wait(self._renewal_seconds):
            try:
                changed = connection.execute(_RENEW, (TERM_SECONDS, self._incarnation))
            except psycopg.Error as error:
                self._loss = str(read_failure(error))
                return
            if not changed.rowcount:
                self._loss = "another hub or copy has begun to use this database"
                return

    def _leave(self, connection: _Connection) -> None:
        """If the server is away, the term ends by itself."""
        try:
            connection.execute(_LEAVE, (self._incarnation,))
        except psycopg.Error:
            with suppress(psycopg.Error), closing(_connect(self._settings)) as another:
                another.execute(_LEAVE, (self._incarnation,))


_NAME: Final = "fanfare db copy, process "


def _own_name() -> str:
    return f"{_NAME}{os.getpid()} on {socket.gethostname()}"


def _is_left_behind(name: str) -> bool:
    """Whether it is of a copy on this machine that was killed."""
    process, _, host = name.removeprefix(_NAME).partition(" on ")
    if not name.startswith(_NAME) or host != socket.gethostname():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _told(name: str) -> str:
    if name.startswith(_NAME):
        return f"it is being copied already ({name})"
    return f"another hub ({name}) is using this database; stop it first"


_MEMBER: Final = (
    "SELECT name, expires_at FROM nodes WHERE expires_at > clock_timestamp() LIMIT 1"
)
_LEAVE: Final = "DELETE FROM nodes WHERE incarnation = %s"
_JOIN: Final = (
    "INSERT INTO nodes (name, url, incarnation, expires_at) VALUES (%s, '', %s,"
    " clock_timestamp() + make_interval(secs => %s))"
)
_RENEW: Final = (
    "UPDATE nodes SET expires_at = clock_timestamp() + make_interval(secs => %s)"
    " WHERE incarnation = %s"
)


# --- statements ---

_PARTITION: Final = 1_000_000
_STATE: Final = f"SELECT state FROM {COPY_STATE} WHERE name = %s"
_MARK: Final = (
    f"CREATE TABLE IF NOT EXISTS {COPY_STATE}"
    " (name text PRIMARY KEY, state bytea NOT NULL)",
    "DELETE FROM accounts",
    "DELETE FROM page_sections",
)
_EMPTY: Final = (
    "TRUNCATE feed_outcomes, feed_audience, feed_counts, subscription_counts, listings,"
    " listing_counts, " + ", ".join(each.name for each in TABLES),
    f"DELETE FROM {COPY_STATE}",
)
_PUT_SCHEDULE: Final = (
    "UPDATE feed_hot h SET next_fetch = g.at, pace = g.pace"
    " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) g (id, at, pace)"
    " WHERE h.feed_id = g.id"
)
_DERIVE: Final = (
    "UPDATE feed_hot h SET version = f.version FROM feeds f"
    " WHERE f.id = h.feed_id AND f.version <> 0",
    "INSERT INTO schedule SELECT h.feed_id, h.next_fetch, f.state = 'active', h.pace"
    " FROM feed_hot h JOIN feeds f ON f.id = h.feed_id",
    "INSERT INTO schedule VALUES (0, 0, FALSE, 0) ON CONFLICT DO NOTHING",
    "INSERT INTO feed_audience SELECT f.id, count(s.id),"
    " count(s.id) FILTER (WHERE s.format = 'as-is'),"
    " count(s.id) FILTER (WHERE s.format = 'by-topic')"
    " FROM feeds f LEFT JOIN subscriptions s ON s.feed_id = f.id"
    " AND s.state = 'active' GROUP BY f.id",
    "INSERT INTO feed_counts SELECT health, category, count(*) FROM feeds"
    " GROUP BY 1, 2",
    "INSERT INTO subscription_counts SELECT account_id, health, count(*)"
    " FROM subscriptions GROUP BY 1, 2",
    "SELECT count(list_subscription(id)) FROM subscriptions"
    " WHERE account_id <> 1 AND state = 'active'",
    "INSERT INTO listing_counts"
    " SELECT l.account_id, k.kind, k.value, l.subscription_id >> 12, count(*)"
    " FROM listings l, LATERAL (VALUES ('', ''::bytea), ('callback', l.callback_hash),"
    " ('callback_host', convert_to(l.callback_host, 'UTF8')),"
    " ('format', convert_to(l.format, 'UTF8')),"
    " ('topic_host', convert_to(l.topic_host, 'UTF8'))) k (kind, value)"
    " GROUP BY 1, 2, 3, 4",
)
_PUT_HUB: Final = (
    "UPDATE hub SET key_check = %(key_check)s, checked_at = %(checked_at)s,"
    " seen_at = %(seen_at)s"
)
_PUT_HEAD: Final = (
    "UPDATE log_head SET epoch = %(epoch)s, head = %(head)s, tail = %(tail)s,"
    " queries = %(queries)s,"
    " identity = CASE WHEN %(is_copy)s THEN '' ELSE server_identity() END"
)
_PUT_SEARCH: Final = (
    "UPDATE search_state SET days = %(search_days)s, position = %(head)s,"
    " unread = CASE WHEN %(search_days)s > 0"
    " THEN (SELECT coalesce(max(id), 0) + 1 FROM entries) ELSE 0 END"
)
"""The hub makes the index anew, beginning with the newest entries."""


def _is_copy(connection: _Connection) -> bool:
    found = connection.execute("SELECT to_regclass(%s)", (COPY_STATE,)).fetchone()
    return found is not None and found[0] is not None


def _switch_triggers(word: str) -> str:
    """What follows from changes is derived when all tables are full."""
    return f"""
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT DISTINCT tgrelid::regclass FROM pg_trigger t
        JOIN pg_class c ON c.oid = t.tgrelid
        WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE %s {word} TRIGGER USER', name);
    END LOOP;
END $$
"""


# --- columns that only PostgreSQL has ---

_FRESH: Final = sum(
    news_of(kind, any_fresh=True, is_superseded=is_superseded)
    for kind in RecordKind
    for is_superseded in (False, True)
)
_READ_AS: Final[Mapping[tuple[str, str], str]] = {
    ("records", "any_fresh"): f"(news & {_FRESH}) <> 0",
    ("feeds", "version"): "(SELECT h.version::bigint FROM feed_hot h"
    " WHERE h.feed_id = feeds.id)",
}
"""What is elsewhere, or no column of its own."""
_NOT_WRITTEN: Final = {("records", "any_fresh")}


def _news(row: Mapping[str, Value], box: SecretBox | None) -> Value:
    return news_of(
        RecordKind(row["kind"]),
        any_fresh=row["any_fresh"],
        is_superseded=row["is_superseded"],
    )


def _wants(row: Mapping[str, Value], box: SecretBox | None) -> Value:
    return _wanted_news(row["format"], row["updates"])


@cache
def _wanted_news(format: str, updates: str) -> int:
    return wanted_news_of(Format(format), Updates(updates))


def _credentials_hash(row: Mapping[str, Value], box: SecretBox | None) -> Value:
    if box is None or not row["credentials"]:
        return b""
    return fingerprint_credentials(decrypt_credentials(row["credentials"], box), box)


def _secret_hash(row: Mapping[str, Value], box: SecretBox | None) -> Value:
    return b"" if box is None else box.fingerprint(box.decrypt(row["secret"]))


def _is_of_hub(row: Mapping[str, Value], box: SecretBox | None) -> Value:
    return bool(msgspec.json.decode(row["event"]).get("condition"))


_OWN: Final[Mapping[str, Sequence[tuple[str, _Make]]]] = {
    "feeds": (("credentials_hash", _credentials_hash),),
    "records": (("news", _news),),
    "event_queue": (("is_of_hub", _is_of_hub),),
    "subscriptions": (("secret_hash", _secret_hash), ("wants", _wants)),
}

# --- rows that are kept otherwise ---

_FROM_POSTGRES: Final = {
    ValueKind.FETCH_STATE: fetch_state,
    ValueKind.LATEST_POLLS: turned_polls,
}
_pollings: Final = msgspec.json.Decoder(Polling)
_EIGHT_POLLS: Final = 112


def fetch_state_rows(
    rows: Sequence[Values],
) -> Iterator[tuple[str, Sequence[str], list[Values]]]:
    """The rows of ``feed_hot`` of other engines, as tables, their columns and rows. The
    schedule follows."""
    states: list[Values] = []
    outcomes: list[Values] = []
    for feed_id, polling, polls in rows:
        state = fetch_state_of(_pollings.decode(polling) if polling else Polling())
        outcome, *numbers = state
        outcomes.append((feed_id, outcome if polling else b""))
        states.append((feed_id, *numbers, turned_polls(polls), 0))
    columns = ("feed_id", *FetchState._fields[1:], "recent_polls", "next_fetch")
    yield "feed_outcomes", ("feed_id", "polling"), outcomes
    yield "feed_hot", columns, states


def poll_rows(rows: Sequence[Values]) -> Iterator[Values]:
    for feed_id, polls in rows:
        for turn, begin in enumerate(range(0, len(polls), _EIGHT_POLLS)):
            yield feed_id, turn, turn, polls[begin : begin + _EIGHT_POLLS]
