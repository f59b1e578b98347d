"""Which file a database is: one process owns it, and it stays the same file.

An advisory lock is held on the file itself, by whatever name it was opened, and another
on a file beside it, which names the owner. The kernel releases the locks when the
process ends, so a killed process leaves nothing that blocks. The file beside it stays;
removing it would let two processes lock two files.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage.errors import DatabaseLocked, DatabaseUnusable

Identity = tuple[int, int]
"""Device and inode: a file, whatever it is called."""

_mine: set[Identity] = set()
"""The files this process has locked. A file in it is not opened again: closing any
descriptor of a file releases all of SQLite's own locks on it."""
_asking = threading.Lock()


class FileLock:
    """Two `flock` locks; the locks that SQLite takes itself are of another kind."""

    def __init__(self, beside: int, itself: int, identity: Identity) -> None:
        self._descriptors = (itself, beside)
        self._identity = identity

    @classmethod
    def take(cls, database: Path) -> FileLock:
        """Lock a database; its file is created if there is none.

        Release the lock after the database is closed. Raises `DatabaseLocked`, with the
        owner's process id if it can be told, and `OSError`.
        """
        beside = _lock_beside(database)
        try:
            with _asking:
                itself, identity = _lock_itself(database)
                _mine.add(identity)
        except BaseException:
            os.close(beside)
            raise
        _write_owner(beside)
        return cls(beside, itself, identity)

    def release(self) -> None:
        with _asking:
            _mine.discard(self._identity)
            for descriptor in self._descriptors:
                os.close(descriptor)


def real_path(path: Path) -> Path:
    """The file that a path leads to, through links. Its WAL and its key lie beside this
    file. Raises `DatabaseUnusable` for a link that leads in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise DatabaseUnusable(str(path), f"cannot be opened: {error}") from error


def lock_database(path: Path) -> FileLock:
    """Make this process the file's owner. Raises `DatabaseUnusable`."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return FileLock.take(path)
    except OSError as error:
        reason = f"cannot be opened: {error.strerror or error}"
        raise DatabaseUnusable(str(path), reason) from error


@contextmanager
def owned(path: Path) -> Iterator[Path]:
    """Own a database's file during a block; yields its real path.

    Errors of SQLite and of the disk in the block are raised as `DatabaseUnusable`.
    """
    path = real_path(path)
    lock = lock_database(path)
    try:
        yield path
    except (sqlite3.Error, OSError) as error:
        raise DatabaseUnusable(str(path), str(error)) from error
    finally:
        lock.release()


def flush_directory(directory: Path) -> None:
    """Make renames in a directory durable. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock_beside(database: Path) -> int:
    path = database.with_name(database.name + ".lock")
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise DatabaseLocked(str(database), owner) from error
    return descriptor


def _lock_itself(database: Path) -> tuple[int, Identity]:
    """Lock the file itself.

    The file beside it does not protect it: a hard link to the database has another one.
    """
    if database.exists() and _identity(os.stat(database)) in _mine:
        raise DatabaseLocked(str(database), str(os.getpid()))
    flags = os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(database, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise DatabaseLocked(str(database)) from error
    return descriptor, _identity(os.fstat(descriptor))


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _write_owner(descriptor: int) -> None:
    """Write the process id, for the message that a second process gets.

    On a full disk it is left out of the message.
    """
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
    except OSError:
        return


class FileIdentity:
    """Detects whether the database's file or its WAL was removed or replaced.

    If somebody does that while the hub runs, the hub goes on writing to a file that
    nobody can find again: nothing of that is durable, though SQLite says so.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        [path] = [row[2] for row in connection.execute("PRAGMA database_list")][:1]
        self._names = (path, f"{path}-wal") if path else ()
        self._known: dict[str, tuple[int, int]] = {}

    def check(self) -> None:
        """Raises `sqlite3.OperationalError`, like other failures of the disk, if a file
        is gone or another one."""
        for name in self._names:
            try:
                found = os.stat(name)
            except OSError:
                if name in self._known:
                    raise _gone(name) from None
                continue  # a WAL comes with the first write
            identity = found.st_dev, found.st_ino
            if self._known.setdefault(name, identity) != identity:
                raise _gone(name)


def _gone(name: str) -> sqlite3.OperationalError:
    """The error, without the directory: strangers can read why the hub is not ready."""
    return sqlite3.OperationalError(
        f"{os.path.basename(name)} was removed or replaced while it was in use"
    )
