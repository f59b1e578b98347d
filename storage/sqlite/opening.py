"""Opening a database file: lock, version, migrations, key, epoch, in this order."""

from __future__ import annotations

import asyncio
import secrets as randomness
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from storage.errors import DatabaseUnusable
from storage.records import Position
from storage.secrets import SecretBox, create_key, key_path, read_key, write_key
from storage.sqlite.backup import copy_database, drop_foreign_wal
from storage.sqlite.connection_threads import (
    BY_THREADS,
    ConnectionThreads,
    prepare_for_writing,
    teach_secrets,
)
from storage.sqlite.file_identity import FileLock
from storage.sqlite.operations import SqliteStorage
from storage.sqlite.readers import Readers
from storage.sqlite.schema import check_version, refuse_strangers, run_pending


async def open_database(
    path: Path, *, migrate: bool = True, threads: ConnectionThreads = BY_THREADS
) -> SqliteStorage:
    """Open a file, created if need be. Close what is returned.

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
        head=opened.head,
        worker=threads.worker(),
    )


def copy_at_rest(path: Path, destination: Path) -> None:
    """A backup of a database that no hub uses, of whatever version, which stays as it
    is: so one can be made after an update and before its migrations.

    Raises `DatabaseUnusable`, and what `copy_database` raises.
    """
    path = _real(path)
    lock = _take_lock(path)
    try:
        drop_foreign_wal(path)
        with closing(sqlite3.connect(path)) as connection:
            refuse_strangers(connection, str(path))
            copy_database(path, destination)
    except (sqlite3.Error, OSError) as error:
        raise DatabaseUnusable(str(path), str(error)) from error
    finally:
        lock.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    path: Path
    lock: FileLock
    connection: sqlite3.Connection
    box: SecretBox
    epoch: str
    head: Position

    def close(self) -> None:
        self.connection.close()
        self.lock.release()


def _open(path: Path, migrate: bool, threads: ConnectionThreads) -> _Opened:
    name, path = path.absolute(), _real(path)
    lock = _take_lock(path)
    try:
        _adopt_key(name, path)
        connection = _prepare(path, migrate, threads)
        try:
            box = _open_box(path, connection)
            teach_secrets(connection, box)
            epoch, head = _begin(connection)
        except BaseException:
            connection.close()
            raise
    except BaseException as error:
        lock.release()
        if isinstance(error, sqlite3.Error | OSError):
            raise DatabaseUnusable(str(path), str(error)) from error
        raise
    return _Opened(
        path=path, lock=lock, connection=connection, box=box, epoch=epoch, head=head
    )


def _real(path: Path) -> Path:
    """The file that a name leads to. What belongs to it lies beside it, as SQLite's own
    files do. Raises `DatabaseUnusable` for a name that leads in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise DatabaseUnusable(str(path), f"cannot be opened: {error}") from error


def _adopt_key(name: Path, path: Path) -> None:
    """Take over a key from where former versions kept it.

    That was beside the name by which the database was opened.
    """
    if name != path and read_key(key_path(path)) is None:
        key = read_key(key_path(name))
        if key is not None:
            write_key(key_path(path), key)


def _take_lock(path: Path) -> FileLock:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock.take(path)
    except OSError as error:
        reason = f"cannot be opened: {error.strerror or error}"
        raise DatabaseUnusable(str(path), reason) from error


def _prepare(
    path: Path, migrate: bool, threads: ConnectionThreads
) -> sqlite3.Connection:
    drop_foreign_wal(path)
    connection = threads.open_for_writing(path)
    try:
        check_version(connection, str(path), migrate=migrate)
        path.chmod(0o600)
        prepare_for_writing(connection)
        run_pending(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_box(path: Path, connection: sqlite3.Connection) -> SecretBox:
    """The key belongs to the database: neither is of use with another one."""
    keys = key_path(path)
    key = read_key(keys)
    ((key_check,),) = connection.execute("SELECT key_check FROM meta").fetchall()
    if key is None and key_check and _holds_secrets(connection):
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


def _holds_secrets(connection: sqlite3.Connection) -> bool:
    ((found,),) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM feeds"
        "  WHERE credentials <> '' OR publish_secret <> '')"
        " OR EXISTS (SELECT 1 FROM subscriptions WHERE secret <> '')"
        " OR EXISTS (SELECT 1 FROM verifications WHERE secret <> '')"
        " OR EXISTS (SELECT 1 FROM push_callbacks WHERE secret <> '')"
    ).fetchall()
    return bool(found)


def _begin(connection: sqlite3.Connection) -> tuple[str, Position]:
    """The epoch and the log's end.

    A new file begins a new epoch, and so does a copy that is put in place.
    """
    ((epoch, head, is_copy),) = connection.execute(
        "SELECT epoch, head, is_copy FROM meta"
    ).fetchall()
    if is_copy or not epoch:
        epoch = randomness.token_hex(5)
        connection.execute("UPDATE meta SET epoch = ?, is_copy = 0", (epoch,))
    return epoch, Position(head)
