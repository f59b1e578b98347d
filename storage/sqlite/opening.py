"""Opening a database file: lock, version, migrations, key, epoch, in this order."""

from __future__ import annotations

import asyncio
import secrets as randomness
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from storage.errors import DatabaseUnusable
from storage.records import Position
from storage.secrets import SecretBox, create_key, key_path, read_key, write_key
from storage.sqlite.backup import drop_foreign_wal, end_restore
from storage.sqlite.connection_threads import (
    BY_THREADS,
    ConnectionThreads,
    prepare_for_writing,
    teach_secrets,
)
from storage.sqlite.file_identity import FileLock, lock_database, real_path
from storage.sqlite.operations import SqliteStorage
from storage.sqlite.readers import Readers
from storage.sqlite.restoring import remove_unfinished
from storage.sqlite.schema import check_version, holds_secrets, run_pending


async def open_database(
    path: Path, *, migrate: bool = True, threads: ConnectionThreads = BY_THREADS
) -> SqliteStorage:
    """Open a file, which is created if need be. The caller closes the result.

    Raises `DatabaseUnusable`: `DatabaseLocked` if another process has it,
    `DatabaseTooNew`, and, if not to ``migrate``, `DatabaseOutdated`.
    """
    opened = await asyncio.to_thread(_open, path, migrate, threads)
    try:
        readers = await Readers.open(opened.path, threads)
    except sqlite3.Error as error:
        opened.close()
        raise DatabaseUnusable(str(path), str(error)) from error
    return SqliteStorage(
        path=opened.path,
        connection=opened.connection,
        readers=readers,
        lock=opened.lock,
        box=opened.box,
        epoch=opened.epoch,
        log_end=opened.log_end,
        worker=threads.worker(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    path: Path
    lock: FileLock
    connection: sqlite3.Connection
    box: SecretBox
    epoch: str
    log_end: Position

    def close(self) -> None:
        self.connection.close()
        self.lock.release()


def _open(path: Path, migrate: bool, threads: ConnectionThreads) -> _Opened:
    name, path = path.absolute(), real_path(path)
    lock = lock_database(path)
    try:
        _adopt_key(name, path)
        connection = _prepare(path, migrate, threads)
        try:
            box = _open_box(path, connection)
            teach_secrets(connection, box)
            epoch, log_end = _begin_epoch(connection)
        except BaseException:
            connection.close()
            raise
    except BaseException as error:
        lock.release()
        if isinstance(error, sqlite3.Error | OSError):
            raise DatabaseUnusable(str(path), str(error)) from error
        raise
    return _Opened(
        path=path,
        lock=lock,
        connection=connection,
        box=box,
        epoch=epoch,
        log_end=log_end,
    )


def _adopt_key(name: Path, path: Path) -> None:
    """Take over a key from where former versions kept it: beside the name by which the
    database was opened."""
    if name != path and read_key(key_path(path)) is None:
        key = read_key(key_path(name))
        if key is not None:
            write_key(key_path(path), key)


def _prepare(
    path: Path, migrate: bool, threads: ConnectionThreads
) -> sqlite3.Connection:
    drop_foreign_wal(path)
    remove_unfinished(path)
    connection = threads.open_for_writing(path)
    try:
        check_version(connection, str(path), migrate=migrate)
        end_restore(path, connection)
        path.chmod(0o600)
        prepare_for_writing(connection)
        run_pending(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_box(path: Path, connection: sqlite3.Connection) -> SecretBox:
    """Open the database with its key, which is created if nothing is encrypted yet.

    A key belongs to one database: neither is of use with another one.
    """
    keys = key_path(path)
    key = read_key(keys)
    ((key_check,),) = connection.execute("SELECT key_check FROM meta").fetchall()
    if key is None and key_check and holds_secrets(connection):
        reason = f"its key file {keys.name} is missing; restore it beside the database"
        raise DatabaseUnusable(str(path), reason)
    if key is not None and key_check and SecretBox(key).key_check != key_check:
        reason = f"the key file {keys.name} belongs to another database"
        raise DatabaseUnusable(str(path), reason)
    box = SecretBox(key or _create_key(keys))
    if box.key_check != key_check:
        connection.execute("UPDATE meta SET key_check = ?", (box.key_check,))
    return box


def _create_key(path: Path) -> bytes:
    try:
        return create_key(path)
    except OSError as error:
        reason = f"the key cannot be written: {error.strerror or error}"
        raise DatabaseUnusable(str(path), reason) from error


def _begin_epoch(connection: sqlite3.Connection) -> tuple[str, Position]:
    """Return the epoch and the log's end.

    A new file begins a new epoch, and so does a copy that is put in place.
    """
    ((epoch, last, is_copy),) = connection.execute(
        "SELECT epoch, head, is_copy FROM meta"
    ).fetchall()
    if is_copy or not epoch:
        epoch = randomness.token_hex(5)
        connection.execute("UPDATE meta SET epoch = ?, is_copy = 0", (epoch,))
    return epoch, Position(last)
