"""A consistent copy of a database in use, with its key; and putting one in place."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from storage.errors import DestinationTaken, WriteFailed
from storage.secrets import key_path, read_key, write_key
from storage.sqlite.connection_threads import read_only
from storage.sqlite.driver_errors import write_failure

_VERSIONS_AT = 18
"""Where the file's header has the read and write version: 2 with a WAL, else 1."""


def copy_database(source: Path, destination: Path) -> None:
    """Write a new file, which appears under its name only when it is whole.

    Works beside the writer, on a connection of its own. Raises `DestinationTaken`, also
    while another backup writes there, and `WriteFailed`.
    """
    try:
        with _claimed(destination) as partial:
            _copy_with_key(source, partial, destination)
    except (sqlite3.Error, OSError) as error:
        raise _explained(destination, error) from error


@contextmanager
def _claimed(destination: Path) -> Iterator[Path]:
    """An empty file beside the destination that no other backup writes to.

    What is left of it at the end is removed. Raises `DestinationTaken` and `OSError`.
    """
    partial = destination.with_name(destination.name + ".partial")
    descriptor = os.open(partial, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if not _is_mine(descriptor, partial):
            raise DestinationTaken(f"another backup to {destination} is under way")
        try:
            for path in (destination, key_path(destination)):
                if path.exists():
                    raise DestinationTaken(f"{path} exists already; name a new file")
            os.ftruncate(descriptor, 0)
            yield partial
        finally:
            partial.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_mine(descriptor: int, path: Path) -> bool:
    """Whether the file could be locked, and is still the one of that name: whoever
    had the lock before may have given it another one."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _copy_with_key(source: Path, partial: Path, destination: Path) -> None:
    key = key_path(destination)
    try:
        _copy(source, partial)
        write_key(key, read_key(key_path(source)) or b"")
        partial.rename(destination)
    except (sqlite3.Error, OSError):
        key.unlink(missing_ok=True)
        raise
    _flush(destination.parent)


def drop_foreign_wal(path: Path) -> None:
    """Remove the WAL of a crashed hub whose database was replaced by a backup.

    A backup needs no WAL and says so in its header, but SQLite would still play the
    other file's WAL into it. Raises `OSError`.
    """
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() or not path.exists():
        return
    with path.open("rb") as file:
        file.seek(_VERSIONS_AT)
        has_wal = file.read(2) != b"\x01\x01"
    if not has_wal:
        wal.unlink()
        path.with_name(path.name + "-shm").unlink(missing_ok=True)


def _copy(source: Path, partial: Path) -> None:
    """Copy in one step: in several, each commit meanwhile would start it anew."""
    with (
        closing(sqlite3.connect(read_only(source), uri=True)) as live,
        closing(sqlite3.connect(partial, isolation_level=None)) as copy,
    ):
        live.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.execute("UPDATE meta SET is_copy = 1")


def _flush(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explained(destination: Path, error: sqlite3.Error | OSError) -> WriteFailed:
    if isinstance(error, sqlite3.Error):
        return write_failure(error)
    return WriteFailed(f"{destination} cannot be written: {error.strerror}")
