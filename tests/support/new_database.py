"""New databases, without the work of making their tables each time, or of threads.

`open_new` is as a hub opens it. Where a database is not what a test shows,
`open_in_loop` costs a third: it reads and writes in the event loop. Tests that show
the hub, on whichever engine, open theirs by `tests.support.chosen_engine`.
"""

from __future__ import annotations

import asyncio
import atexit
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, LiteralString

import psycopg

from storage.contract import Storage
from storage.postgres import open_database as open_postgres
from storage.sqlite import SqliteStorage, open_database
from storage.sqlite.connection_threads import (
    READ_FUNCTIONS,
    ConnectionThreads,
    Read,
    fetch_each,
    read_only,
)
from tests.support.postgres_server import shared_server

_EMPTY: list[bytes] = []
"""The file of a database that was made and never used, once there is one."""
_IDLE: list[EmptiedDatabase] = []
"""Databases of PostgreSQL that are like new."""
_VACUUMED_EVERY = 25
"""Uses of a database between two vacuums: deleted rows would slow down later uses."""


async def open_new(path: Path) -> SqliteStorage:
    """Open a new database, with a key and an epoch of its own, like `open_database`.

    A file that exists is opened as it is.
    """
    await put_new(path)
    return await open_database(path)


async def open_in_loop(path: Path) -> SqliteStorage:
    """As `open_new`, without threads of its own."""
    await put_new(path)
    return await open_database(path, threads=_IN_LOOP)


class _LoopWorker:
    """Writes at the loop's next turn what was submitted in this one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_due = False
        self._work: Callable[[], bool] = lambda: False

    def start(self, work: Callable[[], bool]) -> None:
        self._work = work

    def wake(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        self._work()


class _LoopReader:
    """Connects when it is first asked, which most are never."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    async def execute_fetchall(self, sql: str, parameters: Any = None) -> Iterable[Any]:
        return (await self.fetch_each([(sql, parameters or ())]))[0]

    async def fetch_each(self, reads: Iterable[Read]) -> list[list[Any]]:
        await asyncio.sleep(0)  # others get on while it reads
        if self._connection is None:
            self._connection = sqlite3.connect(
                read_only(self._path), uri=True, isolation_level=None
            )
            for name, arguments, function in READ_FUNCTIONS:
                self._connection.create_function(name, arguments, function)
        return fetch_each(self._connection, reads)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


async def _read_in_loop(path: Path) -> _LoopReader:
    return _LoopReader(path)


_IN_LOOP = ConnectionThreads(worker=_LoopWorker, open_for_reading=_read_in_loop)


async def put_new(path: Path) -> None:
    """Write the file of a new database that was never opened, if there is none."""
    if not _EMPTY:
        _EMPTY.append(await _make())
    _write(path)


def _write(path: Path) -> None:
    if not path.exists():
        path.write_bytes(_EMPTY[0])


async def _make() -> bytes:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "hub.db"
        storage = await open_database(path)
        await storage.close()
        return _unopened(path)


def _unopened(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET is_copy = 1, key_check = ''")
    return path.read_bytes()


@dataclass(slots=True)
class EmptiedDatabase:
    """A database, and a connection that keeps the prepared plans of emptying it."""

    location: str
    connection: psycopg.Connection | None = None
    uses: int = 0

    def empty(self) -> None:
        try:
            self.execute("SELECT beginning.return()")
        except psycopg.OperationalError:  # the test has ended all connections
            self.connection = None
            self.execute("SELECT beginning.return()")
        self.uses += 1
        if self.uses % _VACUUMED_EVERY == 0:
            self.execute("VACUUM")

    def execute(self, statement: LiteralString) -> None:
        if self.connection is None:
            self.connection = psycopg.connect(self.location, autocommit=True)
            self.connection.execute("SET session_replication_role = replica")
            atexit.register(self.connection.close)
        self.connection.execute(statement)


def take_postgres(*, is_played: bool = True) -> EmptiedDatabase:
    """A new database, to be given back by `give_back`.

    ``is_played``: leases end by the time that its callers name, in place of the
    server's.
    """
    if not _IDLE:
        location = shared_server().location(shared_server().create(_template()))
        _IDLE.append(EmptiedDatabase(location))
    database = _IDLE.pop()
    if not is_played:
        database.execute(TAKE_TIME)
    return database


def give_back(database: EmptiedDatabase) -> None:
    """Empty it for the next test, in a hundredth of the time of making one."""
    database.empty()
    _IDLE.append(database)


@asynccontextmanager
async def new_postgres(*, is_played: bool = True) -> AsyncIterator[str]:
    """The location of a database that is the caller's alone for the block; see
    `take_postgres`."""
    database = take_postgres(is_played=is_played)
    yield database.location
    give_back(database)


@asynccontextmanager
async def open_new_postgres(key: Path) -> AsyncIterator[Storage]:
    """Open a new database; an encryption key that exists is used."""
    async with new_postgres() as location:
        storage = await open_postgres(location, key)
        try:
            yield storage
        finally:
            await storage.close()


@cache
def _template() -> str:
    """The name of a database that was made and never used."""
    server = shared_server()
    name = server.create()
    location = server.location(name)
    with ThreadPoolExecutor(1) as thread:  # the caller may be in an event loop
        thread.submit(asyncio.run, _migrate(location)).result()
    with psycopg.connect(location, autocommit=True) as connection:
        connection.execute("UPDATE hub SET key_check = ''")
        connection.execute(_KEEP_BEGINNING)
        connection.execute(_PLAY_TIME)
    return name


async def _migrate(location: str) -> None:
    with TemporaryDirectory() as directory:
        storage = await open_postgres(location, Path(directory) / "key")
        await storage.close()


TAKE_TIME: Final = "UPDATE beginning.clock SET is_played = FALSE"
_KEEP_BEGINNING = """
CREATE SCHEMA beginning;
DO $$
DECLARE
    name text;
    is_empty boolean;
    statements text := '';
BEGIN
    FOR name IN SELECT relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
        AND NOT relispartition LOOP
        statements := statements || format('DELETE FROM public.%I;', name);
        EXECUTE format('SELECT NOT EXISTS (SELECT 1 FROM public.%I)', name)
            INTO is_empty;
        IF NOT is_empty THEN
            EXECUTE format('CREATE TABLE beginning.%I AS SELECT * FROM public.%I',
                name, name);
            statements := statements || format(
                'INSERT INTO public.%I SELECT * FROM beginning.%I;', name, name);
        END IF;
    END LOOP;
    FOR name IN SELECT oid::regclass FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'S' LOOP
        statements := statements || format('PERFORM setval(%L, 1, FALSE);', name);
    END LOOP;
    EXECUTE format('CREATE FUNCTION beginning.return() RETURNS void LANGUAGE plpgsql AS'
        ' %L', 'BEGIN ' || statements || 'PERFORM setval(''accounts_id_seq'', 2);'
        'UPDATE public.log_head SET epoch = md5(random()::text);'
        'UPDATE beginning.clock SET is_played = TRUE; END');
END $$;
"""
"""Keeps what is in the tables at first, in a function that restores it."""

_PLAY_TIME = """
CREATE TABLE beginning.clock AS SELECT TRUE AS is_played;
ALTER FUNCTION lease_time(bigint) RENAME TO server_time;
CREATE FUNCTION lease_time(hub_time bigint) RETURNS bigint LANGUAGE sql AS $$
    SELECT CASE WHEN is_played THEN hub_time ELSE server_time(hub_time) END
    FROM beginning.clock
$$;
"""
"""Has leases end by the time that calls name, as on SQLite."""
