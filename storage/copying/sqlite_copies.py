"""A file of SQLite as the source of a copy, or as its target."""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

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
from storage.errors import DatabaseUnusable, StorageFull
from storage.secrets import SecretBox, key_path, read_key
from storage.sqlite.backup import (
    database_bytes,
    drop_foreign_wal,
    end_restore,
    require_room,
)
from storage.sqlite.columns import pack_ids, unpack_ids
from storage.sqlite.driver_errors import read_failure, write_failure
from storage.sqlite.file_identity import owned
from storage.sqlite.schema import (
    APPLICATION_ID,
    COPY_STATE,
    check_version,
    find_unfinished_copy,
    holds_secrets,
    run_pending,
)

COPYING_ID: Final = 0x46414E43
"""Marks an unfinished copy ("FANC") for versions that do not look for its state."""
_ORIGIN: Final = ""
_DERIVED: Final = "#derived"
_STATE: Final = f"SELECT state FROM {COPY_STATE} WHERE name = ?"
_MADE: Final = (
    "SELECT type, name, sql FROM sqlite_master"
    " WHERE type IN ('index', 'trigger') AND sql IS NOT NULL"
)
_HUB: Final = (
    "SELECT key_check, checked_at, seen_at, epoch, head, tail, queries, is_copy,"
    " (SELECT days FROM search_state) FROM meta"
)


class SqliteTables:
    """Reads them, in one transaction."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    @property
    def location(self) -> str:
        return str(self._path)

    def count(self, table: CopiedTable) -> int:
        ((count,),) = self._read(f"SELECT count(*) FROM {table.sqlite}")
        return int(count)

    def batches(self, table: CopiedTable, after: Values) -> Iterator[CopiedRows]:
        names = {each.name: each.sqlite for each in table.columns}
        columns = ", ".join(names.values())
        key = ", ".join(names[each] for each in table.key)
        behind = ""
        if after:
            word = "AND" if " WHERE " in table.sqlite else "WHERE"
            behind = f" {word} ({key}) > ({', '.join('?' * len(after))})"
        rows = self._connection.execute(
            f"SELECT {columns} FROM {table.sqlite}{behind} ORDER BY {key}", after
        )
        conversions = conversions_of(table, _FROM_SQLITE)

        def fetch(count: int) -> list[tuple[Value, ...]]:
            with self._reading():
                return rows.fetchmany(count)

        yield from batches_of(table, fetch, lambda row: converted(row, conversions))

    def _read(self, sql: str, parameters: Sequence[Value] = ()) -> list[Any]:
        with self._reading():
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise read_failure(error) from error


class SqliteSource(SqliteTables):
    engine = "sqlite"

    def __init__(
        self, path: Path, connection: sqlite3.Connection, key: bytes | None
    ) -> None:
        super().__init__(path, connection)
        self.key = key

    def size(self) -> int:
        with self._reading():
            return database_bytes(self._path)

    def hub(self) -> CopiedHub:
        ((*found, is_copy, days),) = self._read(_HUB)
        key_check, checked_at, seen_at, epoch, head, tail, queries = found
        return CopiedHub(
            key_check="" if self.key is None else key_check,
            checked_at=checked_at,
            seen_at=seen_at,
            epoch=epoch,
            head=head,
            tail=tail,
            queries=queries,
            is_copy=bool(is_copy),
            search_days=days,
        )

    def last_ids(self) -> Mapping[str, int]:
        given = dict(self._read("SELECT name, seq FROM sqlite_sequence"))
        return {
            table.name: max(given.get(table.sqlite, 0), self._last_id(table))
            for table in TABLES
            if table.is_numbered
        }

    def _last_id(self, table: CopiedTable) -> int:
        ((last,),) = self._read(f"SELECT coalesce(max(id), 0) FROM {table.sqlite}")
        return int(last)


class SqliteTarget(SqliteTables):
    def begin(self, origin: CopyOrigin, box: SecretBox | None) -> CopyOrigin:
        with self._writing():
            if find_unfinished_copy(self._connection) is None:
                with _fresh_database() as fresh:
                    _make_ready(fresh, origin)
                    fresh.backup(self._connection)
        ((state,),) = self._read(_STATE, (_ORIGIN,))
        return msgspec.msgpack.decode(state, type=CopyOrigin)

    def progress(self) -> Mapping[str, TableProgress]:
        return {
            name: msgspec.msgpack.decode(state, type=TableProgress)
            for name, state in self._read(f"SELECT name, state FROM {COPY_STATE}")
            if name not in (_ORIGIN, _DERIVED)
        }

    def write(
        self, table: CopiedTable, rows: Sequence[Values], progress: TableProgress
    ) -> None:
        conversions = conversions_of(table, _TO_SQLITE)
        with self._writing(), self._transaction():
            self._connection.executemany(
                _write_statement(table),
                [converted(each, conversions) for each in rows],
            )
            _note(self._connection, table.name, msgspec.msgpack.encode(progress))

    def derive(self, hub: CopiedHub) -> None:
        with self._writing():
            if self._read(_STATE, (_DERIVED,)):
                return
            there = {name for _, name, _ in self._connection.execute(_MADE)}
            with _fresh_database() as fresh:
                made = fresh.execute(_MADE).fetchall()
            for kind, name, sql in made:
                if kind == "index" and name not in there:
                    self._connection.execute(sql)
            with self._transaction():
                for statement in _DERIVE:
                    self._connection.execute(statement)
                for kind, _, sql in made:
                    if kind == "trigger":
                        self._connection.execute(sql)
                self._connection.execute(_LIST)
                _note(self._connection, _DERIVED, b"")

    def complete(self, hub: CopiedHub, last_ids: Mapping[str, int]) -> None:
        with self._writing():
            self._connection.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                self._put_hub(hub)
                self._put_last_ids(last_ids)
                self._connection.execute(f"DROP TABLE {COPY_STATE}")
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _put_hub(self, hub: CopiedHub) -> None:
        self._connection.execute(_PUT_HUB, msgspec.structs.asdict(hub))
        self._connection.execute(_PUT_SEARCH, (hub.search_days, hub.head))

    def _put_last_ids(self, last_ids: Mapping[str, int]) -> None:
        for table in TABLES:
            if last_ids.get(table.name):
                self._connection.execute(
                    "DELETE FROM sqlite_sequence WHERE name = ?", (table.sqlite,)
                )
                self._connection.execute(
                    "INSERT INTO sqlite_sequence SELECT name, ? FROM sqlite_master"
                    " WHERE name = ? AND sql LIKE '% AUTOINCREMENT%'",
                    (last_ids[table.name], table.sqlite),
                )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise write_failure(error) from error


# --- opening ---


@contextmanager
def sqlite_source(path: Path) -> Iterator[SqliteSource]:
    """A file that no hub uses, for as long. Raises `DatabaseUnusable`."""
    if not path.is_file():
        raise DatabaseUnusable(str(path), "there is no such file")
    with owned(path) as file:
        drop_foreign_wal(file)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            check_version(connection, str(file), migrate=False)
            end_restore(file, connection)
            key = _read_key_of(file, connection)
            connection.execute("BEGIN")
            yield SqliteSource(file, connection, key)


def _read_key_of(file: Path, connection: sqlite3.Connection) -> bytes | None:
    keys = key_path(file)
    key = read_key(keys)
    ((key_check,),) = connection.execute("SELECT key_check FROM meta").fetchall()
    if key is None and key_check and holds_secrets(connection):
        reason = f"its key file {keys.name} is missing; restore it beside the database"
        raise DatabaseUnusable(str(file), reason)
    if key is not None and SecretBox(key).key_check != key_check:
        reason = f"the key file {keys.name} belongs to another database"
        raise DatabaseUnusable(str(file), reason)
    return key


@contextmanager
def sqlite_target(
    path: Path, *, restart: bool, wanted_bytes: int
) -> Iterator[SqliteTarget]:
    """A new file, or an unfinished copy, which is emptied for a ``restart``.

    ``wanted_bytes``: what it may come to. Raises `DatabaseUnusable` and `StorageFull`.
    """
    with owned(path) as file:
        _require_copy_or_nothing(file)
        if restart:
            _empty(file)
        if not file.stat().st_size:
            _require_room(file, wanted_bytes)
        file.chmod(0o600)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.executescript(_SETTINGS)
            yield SqliteTarget(file, connection)


def _require_copy_or_nothing(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        if find_unfinished_copy(connection) is not None:
            return
        ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
    if tables:
        reason = "it exists already, and is no unfinished copy; name a new file"
        raise DatabaseUnusable(str(file), reason)


def _require_room(file: Path, wanted_bytes: int) -> None:
    """Raises `StorageFull`; then there is no file either."""
    try:
        require_room(file.parent, wanted_bytes)
    except StorageFull:
        file.unlink()
        raise


def _empty(file: Path) -> None:
    """It stays the same file, for the sake of its lock."""
    for ending in ("-wal", "-shm"):
        file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)
    os.truncate(file, 0)


@contextmanager
def _fresh_database() -> Iterator[sqlite3.Connection]:
    """In memory, with all tables."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        run_pending(connection)
        yield connection


def _make_ready(connection: sqlite3.Connection, origin: CopyOrigin) -> None:
    """Without triggers and indexes until its tables are full."""
    for kind, name, _ in connection.execute(_MADE).fetchall():
        connection.execute(f"DROP {kind} {name}")
    for table in TABLES:
        if table.seeds:
            connection.execute(f"DELETE FROM {table.sqlite}")
    connection.execute(
        f"CREATE TABLE {COPY_STATE} (name TEXT PRIMARY KEY, state BLOB NOT NULL)"
        " STRICT, WITHOUT ROWID"
    )
    _note(connection, _ORIGIN, msgspec.msgpack.encode(origin))
    connection.execute(f"PRAGMA application_id = {COPYING_ID}")


def _note(connection: sqlite3.Connection, name: str, state: bytes) -> None:
    connection.execute(
        f"INSERT OR REPLACE INTO {COPY_STATE} VALUES (?, ?)", (name, state)
    )


_SETTINGS: Final = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA cache_size = -65536;
PRAGMA temp_store = FILE;
"""
_DERIVE: Final = (
    "INSERT INTO feed_audience SELECT f.id, count(s.id),"
    " count(s.id) FILTER (WHERE s.format = 'as-is'),"
    " count(s.id) FILTER (WHERE s.format = 'by-topic'), f.health, f.section"
    " FROM feeds f LEFT JOIN subscriptions s ON s.feed_id = f.id"
    " AND s.state = 'active' GROUP BY f.id",
    "INSERT INTO feed_counts SELECT health, section, count(*) FROM feeds GROUP BY 1, 2",
    "UPDATE public_count SET total = (SELECT count(*) FROM feeds WHERE NOT private"
    " AND NOT unlisted AND state NOT IN ('removed', 'track'))",
    "INSERT INTO feed_texts (rowid, text) SELECT id, url || ' ' || title FROM feeds"
    " ORDER BY id",
    "INSERT INTO subscription_counts SELECT account_id, health, count(*)"
    " FROM subscriptions GROUP BY 1, 2",
    "INSERT INTO pending_counts SELECT host, count(*) FROM ("
    "SELECT '' AS host FROM verifications WHERE due IS NOT NULL"
    " UNION ALL SELECT host FROM verifications WHERE due IS NOT NULL"
    " UNION ALL SELECT 'of ' || asker FROM verifications"
    " WHERE due IS NOT NULL AND asker <> '') GROUP BY 1",
)
_LIST: Final = "INSERT INTO listings SELECT * FROM listable ORDER BY id"
"""A trigger counts them, and indexes parts of their addresses."""
_PUT_HUB: Final = (
    "UPDATE meta SET key_check = :key_check, checked_at = :checked_at,"
    " seen_at = :seen_at, epoch = :epoch, head = :head, tail = :tail,"
    " queries = :queries, is_copy = :is_copy"
)
_PUT_SEARCH: Final = (
    "UPDATE search_state SET days = ?1, position = ?2,"
    " unread = iif(?1 > 0, (SELECT coalesce(max(id), 0) + 1 FROM entries), 0)"
)
"""The hub makes the index anew, beginning with the newest entries."""

# --- values ---


def _without_nul(text: str) -> str:
    """PostgreSQL has no texts with the character NUL, so a copy has none."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _swapped(refs: bytes) -> bytes:
    """SQLite's rows have the least significant byte of each integer first."""
    numbers = array("q", refs)
    numbers.byteswap()
    return numbers.tobytes()


_FROM_SQLITE: Final[Mapping[ValueKind, Callable[[Value], Value]]] = {
    ValueKind.BOOLEAN: bool,
    ValueKind.TEXT: _without_nul,
    ValueKind.IDS: unpack_ids,
    ValueKind.REFERENCES: _swapped,
    ValueKind.FETCH_STATE: fetch_state,
}
_TO_SQLITE: Final[Mapping[ValueKind, Callable[[Value], Value]]] = {
    ValueKind.IDS: pack_ids,
    ValueKind.REFERENCES: _swapped,
}


def _write_statement(table: CopiedTable) -> str:
    if table.sqlite_write:
        return table.sqlite_write
    columns = ", ".join(each.sqlite for each in table.columns)
    places = ", ".join("?" * len(table.columns))
    return f"INSERT INTO {table.sqlite} ({columns}) VALUES ({places})"
