"""A new database, without the work of making its tables each time."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from storage.postgres import open_database as open_postgres
from storage.postgres.operations import PostgresStorage
from storage.sqlite import SqliteStorage, open_database
from tests.support.postgres_server import PostgresServer, shared_server

_EMPTY: list[bytes] = []
"""The file of one that was made and never used, once there is one."""
_TEMPLATE: list[str] = []
"""The same of PostgreSQL: the name of a database."""


async def open_new(path: Path) -> SqliteStorage:
    """As `open_database` does it where there is no file: with a key and an epoch of
    its own. A file that is there is opened as it is."""
    if not _EMPTY:
        _EMPTY.append(await _make())
    _write(path)
    return await open_database(path)


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


@asynccontextmanager
async def open_new_postgres(key: Path) -> AsyncIterator[PostgresStorage]:
    """A database of its own, for a while. A key that is there is taken."""
    server = shared_server()
    if not _TEMPLATE:
        _TEMPLATE.append(await _make_template(server))
    database = server.create(_TEMPLATE[0])
    try:
        storage = await open_postgres(server.location(database), key)
        try:
            yield storage
        finally:
            await storage.close()
    finally:
        server.drop(database)


async def _make_template(server: PostgresServer) -> str:
    name = server.create()
    with TemporaryDirectory() as directory:
        location = server.location(name)
        storage = await open_postgres(location, Path(directory) / "key")
        await storage.close()
    with psycopg.connect(location) as connection:
        connection.execute("UPDATE hub SET key_check = ''")
    return name
