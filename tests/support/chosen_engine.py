"""The engine of the databases that tests open, for hubs and for themselves.

``FANFARE_TEST_ENGINE`` names it: ``sqlite``, which is the default, or ``postgresql``.
Tests name a database by the path of a file. On PostgreSQL, a database of the server for
tests (`tests.support.postgres_server`) stands in for the file: it is there from when a
test first names it until the end of that test, or of all if a fixture of several tests
did. What else a hub keeps on its machine is in the file's directory on either engine.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from storage.contract import Storage
from storage.database_url import open_storage
from tests.support.new_database import (
    TAKE_TIME,
    EmptiedDatabase,
    give_back,
    open_in_loop,
    put_new,
    take_postgres,
)


class Engine(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


CHOSEN: Final = Engine(os.environ.get("FANFARE_TEST_ENGINE", Engine.SQLITE))
_STANDING_IN: dict[Path, EmptiedDatabase] = {}


def location_of(path: Path) -> str:
    """The location of a database, as ``FANFARE_DATABASE`` has it.

    On PostgreSQL it has its tables already.
    """
    if CHOSEN is Engine.SQLITE:
        return f"sqlite:{path}"
    return _stand_in(path).location


def variables_of(path: Path) -> dict[str, str]:
    """The variables by which a hub uses a database."""
    if CHOSEN is Engine.SQLITE:
        return {"FANFARE_DATABASE": location_of(path)}
    return {
        "FANFARE_DATABASE": location_of(path),
        "FANFARE_STATE_DIR": str(path.parent),
    }


def local_path_of(path: Path) -> Path:
    """What a hub names its files on this machine after."""
    return path if CHOSEN is Engine.SQLITE else path.with_name("fanfare")


async def make_for_hub(path: Path) -> None:
    """Make a database for a hub in a process of its own, unless it is there.

    To make its tables would take half of the hub's start.
    """
    if CHOSEN is Engine.SQLITE:
        await put_new(path)
    else:
        _stand_in(path).execute(TAKE_TIME)


async def open_chosen(path: Path) -> Storage:
    """Open a database, which is made unless it is there; see `make_for_hub`.

    Its leases end by the time that calls name.
    """
    if CHOSEN is Engine.SQLITE:
        return await open_in_loop(path)
    return await open_storage(_stand_in(path).location, local_path_of(path))


def change(path: Path, statement: LiteralString, *values: object) -> None:
    """Change rows beside the hub, by a statement that both engines know; each value is
    a ``?`` in it."""
    if CHOSEN is Engine.SQLITE:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement, values)
    else:
        with psycopg.connect(location_of(path)) as server:
            server.execute(statement.replace("?", "%s"), values)


def stored_bytes(path: Path) -> bytes:
    """All that is stored, to look for what must not be."""
    if CHOSEN is Engine.SQLITE:
        return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    with psycopg.connect(location_of(path)) as connection:
        names = connection.execute(_TABLES).fetchall()
        tables = [sql.Identifier(*each) for each in names]
        return b"".join(_rows(connection, table) for table in tables)


def _rows(connection: psycopg.Connection, table: sql.Identifier) -> bytes:
    statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT binary)")
    with connection.cursor().copy(statement.format(table)) as copy:
        return b"".join(bytes(each) for each in copy)


_TABLES: Final = """
SELECT nspname, relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'public' AND relkind IN ('r', 'p')
"""


@contextmanager
def released() -> Iterator[None]:
    """Give back, after the block, the databases that are first named in it."""
    before = set(_STANDING_IN)
    yield
    for path in _STANDING_IN.keys() - before:
        database = _STANDING_IN.pop(path)
        database.execute(_END_OTHERS)
        give_back(database)


def _stand_in(path: Path) -> EmptiedDatabase:
    if path not in _STANDING_IN:
        _STANDING_IN[path] = take_postgres()
    return _STANDING_IN[path]


_END_OTHERS: Final = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
"""What a killed hub was writing may still be under way."""
