"""A consistent copy of a database in use, with its key; and putting one in place."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from storage.errors import WriteFailed
from storage.secrets import key_path, read_key, write_key

from .connections import read_only
from .failures import write_failure

_VERSIONS_AT = 18
"""Where the file's header has the read and write version: 2 with a WAL, else 1."""


def copy_database(source: Path, destination: Path) -> None:
    """Write a new file, which appears under its name only when it is whole.

    Works beside the writer, on a connection of its own. Raises `WriteFailed`.
    """
    key = key_path(destination)
    for path in (destination, key):
        if path.exists():
            raise WriteFailed(f"{path} exists already; name a new file")
    partial = destination.with_name(destination.name + ".partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
        _copy(source, partial)
        write_key(key, read_key(key_path(source)) or b"")
        partial.rename(destination)
        _flush(destination.parent)
    except (sqlite3.Error, OSError) as error:
        partial.unlink(missing_ok=True)
        key.unlink(missing_ok=True)
        raise _explained(destination, error) from error


def drop_foreign_wal(path: Path) -> None:
    """Remove the WAL of a crashed hub whose database was replaced by a backup.

    A backup is in no need of a WAL and says so in its header; SQLite would play the
    stranger's WAL into it all the same. Raises `OSError`.
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
    """In one step: taken in several, each commit meanwhile would start it anew."""
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
