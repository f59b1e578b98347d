"""The schema's version, the numbered migrations that lead to it, and its functions.

Migrations have the numbers of SQLite's. Several hubs may start at once, and others
may use the tables meanwhile, as a backup does, so:

- One hub migrates at a time, under an advisory lock; the others wait, and find it done.
- A migration that has to wait for a lock gives up soon and is tried again: otherwise
  all later statements would wait behind it.

A hub of the former version may go on meanwhile: *expand*, *roll*, *contract*. A
migration that only adds something, or adds a function beside one with other arguments,
expands the schema. Hubs are then replaced, one after another. What removes or changes
something that former programs use begins with the line ``-- oldest program N``: it
contracts the schema, and waits until no hub of a program older than schema N has a
term; from then on such programs are refused. It comes after whatever expands the
schema for the same version of Fanfare, which would otherwise wait with it. If N is the
migration's own number, the program that has it cannot do without it.

Functions are replaced whenever their digest, which is in the table of the version, is
not that of the newest program's functions. One whose answer, or the meaning of an
argument, changes gets another name or other arguments: former programs call the old
one until it is dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
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
TRIES: Final = 20
"""How often a migration is tried, a second apart: longer than the term of a hub that
was killed."""
_PAUSE: Final = 1.0
_OLDEST_PROGRAM: Final = re.compile(r"-- oldest program (\d+)\n")

_BEGIN: Final = f"""
BEGIN;
SET LOCAL lock_timeout = '{_WAITING_SECONDS}s';
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL check_function_bodies = off;
SELECT pg_advisory_xact_lock(1178681926, hashtext(current_schema()));
SET LOCAL lock_timeout = {_LOCK_MILLISECONDS};
"""
# Columns that former schemas lack are found by their name.
_FOUND: Final = (
    "SELECT version, functions, coalesce((to_jsonb(s) ->> 'oldest_program')::bigint,"
    " version) FROM fanfare_schema s"
)
_OLDER_NODES: Final = """
SELECT name FROM nodes n WHERE expires_at > clock_timestamp()
    AND coalesce((to_jsonb(n) ->> 'schema_version')::bigint, %s) < %s
ORDER BY name
"""
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

    @property
    def oldest_program(self) -> int:
        """The schema of the oldest program that works after this; 0: all do."""
        found = _OLDEST_PROGRAM.match(self.text)
        return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSchema:
    """``functions``: their digest. ``oldest_program``: the schema of the oldest program
    that may use this one."""

    version: int = 0  # there is none yet
    functions: str = ""
    oldest_program: int = 0


@cache
def scripts() -> tuple[Script, ...]:
    """All migrations of this program, in order. The first creates everything."""
    return tuple(
        Script(version=int(name.partition("_")[0]), name=name, text=text)
        for name, text in _texts("migrations")
    )


def latest_schema() -> int:
    return scripts()[-1].version


def needed_schema(scripts: Sequence[Script]) -> int:
    """The schema that a program needs; what comes after it only removes things."""
    return max(
        each.version for each in scripts if each.oldest_program in (0, each.version)
    )


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


async def find_schema(connection: AsyncConnection[Row]) -> FoundSchema:
    """Raises `psycopg.Error`."""
    try:
        rows = await (await connection.execute(_FOUND)).fetchall()
    except errors.UndefinedTable:
        return FoundSchema()
    if not rows:
        return FoundSchema()
    version, functions, oldest = rows[0]
    return FoundSchema(version=version, functions=functions, oldest_program=oldest)


async def check_schema(
    connection: AsyncConnection[Row], location: str, *, migrate: bool
) -> FoundSchema:
    """The schema that was found, if it can be used.

    Raises `DatabaseUnusable`, `DatabaseTooNew`, `DatabaseOutdated`.
    """
    found, latest = await find_schema(connection), latest_schema()
    if not found.version:
        await _refuse_others_tables(connection, location)
    if found.version > latest and found.oldest_program > latest:
        raise DatabaseTooNew(location, found.version, latest)
    if found.version < needed_schema(scripts()) and not migrate:
        raise outdated(location, found)
    return found


def outdated(location: str, found: FoundSchema) -> DatabaseOutdated:
    return DatabaseOutdated(
        location,
        f"schema version {found.version} is older than {latest_schema()}, the one this"
        " version of Fanfare needs; run `fanfare db migrate`",
    )


def is_migration_due(found: FoundSchema, *, migrate: bool) -> bool:
    """Whether something is to be run on a schema that `check_schema` allows."""
    latest = latest_schema()
    if found.version > latest:
        return False  # its functions are those of a newer program
    return found.functions != _digest() or (migrate and found.version < latest)


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


async def run_migrations(
    connection: AsyncConnection[Row],
    location: str,
    scripts: Sequence[Script],
    tries: int = TRIES,
) -> None:
    """Run the migrations that the database has not seen, as far as the hubs allow that
    use it. Raises `psycopg.Error`; `DatabaseUnusable` if they allow too little."""
    for left in reversed(range(tries)):
        try:
            return await _run_once(connection, location, scripts)
        except (errors.LockNotAvailable, DatabaseUnusable):
            await connection.execute("ROLLBACK")
            if not left:
                raise
            await asyncio.sleep(_PAUSE)
        except BaseException:
            await connection.execute("ROLLBACK")
            raise


async def _run_once(
    connection: AsyncConnection[Row], location: str, scripts: Sequence[Script]
) -> None:
    await connection.execute(_BEGIN)
    await connection.execute(_OWN_TABLE)
    found = await find_schema(connection)
    version, oldest = found.version, 0
    for script in scripts:
        if script.version <= version:
            continue
        if older := await _older_nodes(connection, script, found):
            if version < needed_schema(scripts):
                raise DatabaseUnusable(location, _refusal(script, older))
            break
        await connection.execute(script.text.encode())
        version, oldest = script.version, max(oldest, script.oldest_program)
    if (version, _digest()) == (found.version, found.functions):
        await connection.execute("COMMIT")  # another hub was faster
        return
    await connection.execute(_functions().encode())
    await connection.execute(
        "UPDATE fanfare_schema SET version = %s, functions = %s,"
        " oldest_program = greatest(oldest_program, %s)",
        (version, _digest(), oldest),
    )
    await connection.execute("COMMIT")


async def _older_nodes(
    connection: AsyncConnection[Row], script: Script, found: FoundSchema
) -> list[str]:
    """The hubs that the script would break. None joins before this transaction ends."""
    if not (script.oldest_program and found.version):
        return []
    await connection.execute("LOCK TABLE nodes IN SHARE UPDATE EXCLUSIVE MODE")
    rows = await connection.execute(
        _OLDER_NODES, (found.version, script.oldest_program)
    )
    return [str(name) for (name,) in await rows.fetchall()]


def _refusal(script: Script, older: Sequence[str]) -> str:
    return (
        f"migration {script.name} breaks hubs of former versions that run"
        f" ({', '.join(older)}); stop them first"
    )
