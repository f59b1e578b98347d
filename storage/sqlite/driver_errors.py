"""Turns SQLite's errors into those of `storage.errors`."""

from __future__ import annotations

import sqlite3

from storage.errors import StorageError, StorageFull, WriteFailed

_NO_SPACE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY}
_NOT_FLUSHED = {sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC}


def write_failure(error: sqlite3.Error) -> WriteFailed:
    """The error that the caller of a write gets."""
    if _primary_code(error) in _NO_SPACE:
        return StorageFull(f"the database cannot be written: {error}")
    return WriteFailed(f"the write failed: {error}")


def read_failure(error: sqlite3.Error) -> StorageError:
    """The error that the caller of a read gets."""
    return StorageError(f"the database could not be read: {error}")


def is_fault_of_file(error: sqlite3.Error) -> bool:
    """Whether the file or its disk is to blame, so that other writes fail too."""
    return not isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError)


def is_unflushed(error: sqlite3.Error) -> bool:
    """Whether everything was written but could not be made durable."""
    return _code(error) in _NOT_FLUSHED


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection has the file open, or locked."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def _primary_code(error: sqlite3.Error) -> int:
    return _code(error) & 0xFF


def _code(error: sqlite3.Error) -> int:
    """The extended error code; 0 if the error is not SQLite's own."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code
