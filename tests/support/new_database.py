"""A new database, without the work of making its tables each time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from storage.sqlite import SqliteStorage, open_database

_EMPTY: list[bytes] = []
"""The file of one that was made and never used, once there is one."""


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
