"""The schema's version, the numbered migrations that lead to it, and its functions.

Migrations have the numbers of SQLite's. Several hubs may start at once, and others
may use the tables meanwhile, as a backup does, so:

- Each migration is a transaction that also notes its number, under an advisory lock:
  one hub migrates at a time, and the others find it done. One that fails leaves those
  before it, and is named.
- A migration that has to wait for a lock gives up soon and is tried again: otherwise
  all later statements would wait behind it.

A hub of the former version may go on meanwhile: *expand*, *roll*, *contract*.

- A migration that only adds something, or adds a function beside one with other
  arguments, expands the schema.
- Then the functions are replaced, if their digest is not that of this program's, by the
  program with the newest schema of those that were here. Whoever changes a function
  of a released version therefore gives the schema a new number: of programs with one
  number, each start replaces those of the others. One whose answer, or the meaning of
  an argument, changes gets another name or other arguments: former programs call the
  old one until it is dropped.
- Rows of the schema's own types are read by the position of their columns, so such a
  type is never altered: a new one has another name, and functions of its own.
- What removes or changes something that former programs use begins with the line
  ``-- oldest program N``: it contracts the schema, and waits until no hub of a program
  older than schema N has a term; from then on such programs are refused. It comes after
  whatever expands the schema for the same version of Fanfare, which would otherwise
  wait with it. If N is the migration's own number, the program that has it cannot do
  without it.

Without leave to migrate nothing of this is run, functions included.
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
import psycopg
from psycopg import AsyncConnection, errors

from storage.errors import DatabaseOutdated, DatabaseTooNew, DatabaseUnusable
from storage.postgres.connections import Row
from storage.postgres.driver_errors import explained

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
FUNCTIONS: Final = "functions/*.sql"
"""The name of the script that replaces them."""
_OLDEST_PROGRAM: Final = re.compile(r"-- oldest program (\d+)\n")
_HELD_UP: Final = (errors.LockNotAvailable, errors.DeadlockDetected)

# The lock ends with its transaction: behind PgBouncer no other lock can be held.
_PREPARE: Final = f"""
SET LOCAL lock_timeout = '{_WAITING_SECONDS}s';
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL check_function_bodies = off;
SELECT pg_advisory_xact_lock(1178681926, hashtext(current_schema()));
SET LOCAL lock_timeout = {_LOCK_MILLISECONDS};
CREATE TABLE IF NOT EXISTS fanfare_schema (
    version bigint NOT NULL, functions text NOT NULL);
INSERT INTO fanfare_schema SELECT 0, '' WHERE NOT EXISTS (SELECT 1 FROM fanfare_schema);
DO $$ BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_attribute
        WHERE attrelid = 'fanfare_schema'::regclass AND attname = 'program') THEN
        ALTER TABLE fanfare_schema
            ADD COLUMN IF NOT EXISTS oldest_program bigint NOT NULL DEFAULT 0,
            ADD COLUMN program bigint NOT NULL DEFAULT 0;
    END IF;
END $$;
"""
# Columns that the table had not from the start are found by their name.
_FOUND: Final = (
    "SELECT version, functions, coalesce((to_jsonb(s) ->> 'program')::bigint, 0),"
    " coalesce((to_jsonb(s) ->> 'oldest_program')::bigint, 0) FROM fanfare_schema s"
)
_NOTE: Final = (
    "UPDATE fanfare_schema SET version = %s, functions = %s, program = %s,"
    " oldest_program = greatest(oldest_program, %s)"
)
_OLDER_NODES: Final = """
SELECT name FROM nodes n WHERE expires_at > clock_timestamp()
    AND coalesce((to_jsonb(n) ->> 'schema_version')::bigint, %s) < %s
ORDER BY name
"""
_COPY: Final = f"SELECT state FROM {COPY_STATE} WHERE name = ''"


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
    """``functions``: their digest. ``program``: the newest schema that the program knew
    whose functions they are. ``oldest_program``: the schema of the oldest program that
    may use this one."""

    version: int = 0  # there is none yet
    functions: str = ""
    program: int = 0
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
    version, functions, program, oldest = rows[0]
    return FoundSchema(
        version=version, functions=functions, program=program, oldest_program=oldest
    )


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
    if not migrate:
        refuse_outdated(location, found, needed_schema(scripts()))
    return found


def refuse_outdated(location: str, found: FoundSchema, least: int) -> None:
    """Raises `DatabaseOutdated` for a schema older than ``least``, and for functions
    that this program has to replace."""
    if found.version < least:
        reason = (
            f"schema version {found.version} is older than {least}, the one this"
            " version of Fanfare needs"
        )
    elif not _has_functions_for(found, scripts()):
        reason = "its functions are of another version of Fanfare"
    else:
        return
    raise DatabaseOutdated(location, f"{reason}; run `fanfare db migrate`")


def is_migration_due(found: FoundSchema) -> bool:
    """Whether something is to be run on a schema that `check_schema` allows."""
    return next_script(found, scripts()) is not None


def next_script(found: FoundSchema, scripts: Sequence[Script]) -> Script | None:
    """The next migration, or the functions: they come before what the program can do
    without. None: nothing is left."""
    needed, is_ready = needed_schema(scripts), _has_functions_for(found, scripts)
    for each in scripts:
        if each.version > found.version and (is_ready or each.version <= needed):
            return each
    if is_ready:
        return None
    return Script(version=found.version, name=FUNCTIONS, text=_functions())


def _has_functions_for(found: FoundSchema, scripts: Sequence[Script]) -> bool:
    """Whether a program can use the functions: they are its own, or a newer one's."""
    return found.functions == _digest() or found.program > scripts[-1].version


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
        " AND relkind IN ('r', 'p', 'v') AND to_regclass('fanfare_schema') IS NULL"
        " ORDER BY relname LIMIT 1"
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
    use it.

    Raises `DatabaseUnusable`, which names the migration that failed, or that they do
    not allow and the program needs. Those before it are done.
    """
    left = tries
    while True:
        try:
            if not await _run_next(connection, location, scripts):
                return
            left = tries
        except DatabaseUnusable as error:
            left -= 1
            if not (left and isinstance(error.__cause__, (type(None), *_HELD_UP))):
                raise
            await asyncio.sleep(_PAUSE)


async def _run_next(
    connection: AsyncConnection[Row], location: str, scripts: Sequence[Script]
) -> bool:
    """Whether something was run."""
    doing = "migrating"
    try:
        async with connection.transaction():
            await connection.execute(_PREPARE)
            found = await find_schema(connection)
            script = next_script(found, scripts)
            if script is None:
                return False
            doing = f"migration {script.name}"
            if older := await _older_nodes(connection, script, found):
                if found.version < needed_schema(scripts):
                    raise DatabaseUnusable(location, _refusal(doing, older))
                return False
            await connection.execute(script.text.encode())
            await _note(connection, found, script, scripts[-1].version)
    except psycopg.Error as error:
        reason = f"{doing} failed: {explained(error)}"
        raise DatabaseUnusable(location, reason) from error
    return True


async def _note(
    connection: AsyncConnection[Row], found: FoundSchema, script: Script, latest: int
) -> None:
    functions, program = found.functions, found.program
    if script.name == FUNCTIONS:
        functions, program = _digest(), latest
    await connection.execute(
        _NOTE, (script.version, functions, program, script.oldest_program)
    )


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


def _refusal(migration: str, older: Sequence[str]) -> str:
    return (
        f"{migration} breaks hubs of former versions that run"
        f" ({', '.join(older)}); stop them first"
    )
