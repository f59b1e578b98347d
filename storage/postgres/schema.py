"""The schema's version, the numbered migrations that lead to it, and its functions.

Migrations have the numbers of SQLite's. Several hubs may start at once, and others
may use the tables meanwhile, as a backup does, so:

- One hub migrates at a time, under an advisory lock; the others wait, and find it done.
- A migration that has to wait for a lock gives up soon and is tried again: otherwise
  all later statements would wait behind it.

Functions are replaced with every migration, and whenever their digest, which is in the
table of the version, is not that of this program's functions. So a hub of another
version must not run meanwhile: functions that it calls are replaced or dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec
from psycopg import AsyncConnection, errors

from storage.errors import DatabaseOutdated, DatabaseTooNew, DatabaseUnusable
from storage.postgres.connections import Row

COPY_STATE: Final = "fanfare_copy"
"""The table that only an unfinished copy of another database has."""
_WAITING_SECONDS: Final = 60
"""How long to wait for another hub that migrates."""
_LOCK_MILLISECONDS: Final = 2_000
"""How long to wait for a table that others use."""
_TRIES: Final = 10
_PAUSE: Final = 1.0

_BEGIN: Final = f"""
BEGIN;
SET LOCAL lock_timeout = '{_WAITING_SECONDS}s';
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL check_function_bodies = off;
SELECT pg_advisory_xact_lock(1178681926, hashtext(current_schema()));
SET LOCAL lock_timeout = {_LOCK_MILLISECONDS};
"""
_VERSION: Final = "SELECT version FROM fanfare_schema"
_FUNCTIONS: Final = "SELECT functions FROM fanfare_schema"
_COPY: Final = f"SELECT state FROM {COPY_STATE} WHERE name = ''"
_OWN_TABLE: Final = """
CREATE TABLE IF NOT EXISTS fanfare_schema (
    version bigint NOT NULL, functions text NOT NULL);
INSERT INTO fanfare_schema SELECT 0, '' WHERE NOT EXISTS (SELECT 1 FROM fanfare_schema);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    version: int
    name: str
    text: str


@cache
def scripts() -> tuple[Script, ...]:
    """All migrations of this program, in order. The first creates everything."""
    return tuple(
        Script(version=int(name.partition("_")[0]), name=name, text=text)
        for name, text in _texts("migrations")
    )


def latest_schema() -> int:
    return scripts()[-1].version


def _texts(folder: str) -> list[tuple[str, str]]:
    found = files("storage.postgres") / folder
    return sorted(
        (each.name, each.read_text(encoding="utf-8"))
        for each in found.iterdir()
        if each.name.endswith(".sql")
    )


@cache
def _functions() -> str:
    return "\n".join(text for _, text in _texts("functions"))


@cache
def _digest() -> str:
    return hashlib.sha256(_functions().encode()).hexdigest()[:32]


async def found_version(connection: AsyncConnection[Row]) -> int:
    """The schema's version; 0 if there is no schema yet. Raises `psycopg.Error`."""
    try:
        rows = await (await connection.execute(_VERSION)).fetchall()
    except errors.UndefinedTable:
        return 0
    return int(rows[0][0]) if rows else 0


async def check_schema(
    connection: AsyncConnection[Row], location: str, *, migrate: bool
) -> int:
    """The version that was found, if it can be used.

    Raises `DatabaseUnusable`, `DatabaseTooNew`, `DatabaseOutdated`.
    """
    found, latest = await found_version(connection), latest_schema()
    if not found:
        await _refuse_others_tables(connection, location)
    if found > latest:
        raise DatabaseTooNew(location, found, latest)
    if found < latest and not migrate:
        raise DatabaseOutdated(
            location,
            f"schema version {found} is older than {latest}, the one this version"
            " of Fanfare needs; run `fanfare db migrate`",
        )
    return found


async def refuse_unfinished_copy(
    connection: AsyncConnection[Row], location: str
) -> None:
    """Raises `DatabaseUnusable`."""
    try:
        rows = await (await connection.execute(_COPY)).fetchall()
    except errors.UndefinedTable:
        return
    source = msgspec.msgpack.decode(rows[0][0])["location"] if rows else "another one"
    raise DatabaseUnusable(
        location,
        f"this is an unfinished copy of {source}; run `fanfare db copy` again, and it"
        " goes on",
    )


async def has_own_functions(connection: AsyncConnection[Row]) -> bool:
    """Whether the database's functions are this program's: if not, a migration is
    due."""
    row = await (await connection.execute(_FUNCTIONS)).fetchone()
    return row is not None and row[0] == _digest()


async def _refuse_others_tables(
    connection: AsyncConnection[Row], location: str
) -> None:
    found = await connection.execute(
        "SELECT relname FROM pg_class"
        " WHERE relnamespace = current_schema()::regnamespace"
        " AND relkind IN ('r', 'p', 'v') ORDER BY relname LIMIT 1"
    )
    row = await found.fetchone()
    if row is not None:
        raise DatabaseUnusable(
            location,
            f"the schema holds tables of another program ({row[0]}); give Fanfare a"
            " database of its own, or a schema: ?options=-csearch_path=fanfare",
        )


async def run_migrations(connection: AsyncConnection[Row]) -> None:
    """Run the migrations that the database has not seen. Raises `psycopg.Error`."""
    for left in reversed(range(_TRIES)):
        try:
            return await _run_once(connection)
        except errors.LockNotAvailable:
            await connection.execute("ROLLBACK")
            if not left:
                raise
            await asyncio.sleep(_PAUSE)
        except BaseException:
            await connection.execute("ROLLBACK")
            raise


async def _run_once(connection: AsyncConnection[Row]) -> None:
    await connection.execute(_BEGIN)
    await connection.execute(_OWN_TABLE)
    found = await found_version(connection)
    pending = [each for each in scripts() if each.version > found]
    for script in pending:
        await connection.execute(script.text.encode())
    if pending or not await has_own_functions(connection):
        await connection.execute(_functions().encode())
        await connection.execute(
            "UPDATE fanfare_schema SET version = %s, functions = %s",
            (latest_schema(), _digest()),
        )
    await connection.execute("COMMIT")
