"""Turns PostgreSQL's errors into those of `storage.errors`."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors

from storage.errors import StorageBusy, StorageError, StorageFull, WriteFailed

_NO_SPACE: Final = (errors.DiskFull, errors.ReadOnlySqlTransaction)
_TOO_LONG: Final = (errors.QueryCanceled, errors.LockNotAvailable)
_UNDONE: Final = (errors.DeadlockDetected, errors.SerializationFailure)

_AWAY: Final = ("08", "57P", "53300")
"""SQLSTATEs of lost connections, of shutdowns, and of too many connections."""


def write_failure(error: psycopg.Error) -> StorageError:
    """The error that the caller of a write gets."""
    if isinstance(error, _NO_SPACE):
        return StorageFull(f"the database cannot be written: {said(error)}")
    if isinstance(error, _TOO_LONG + _UNDONE):
        return StorageBusy(f"the write was given up: {said(error)}")
    return WriteFailed(f"the write failed: {said(error)}")


def read_failure(error: psycopg.Error) -> StorageError:
    """The error that the caller of a read gets."""
    return StorageError(f"the database could not be read: {said(error)}")


def is_fault_of_server(error: psycopg.Error) -> bool:
    """Whether the server, or the way to it, is to blame, so that other writes fail
    too."""
    return isinstance(error, psycopg.OperationalError) and not is_undone(error)


def is_away(error: psycopg.Error) -> bool:
    """Whether the server is gone, or is stopping or starting."""
    if not isinstance(error, psycopg.OperationalError):
        return False
    state = error.sqlstate
    return state is None or state.startswith(_AWAY)


def is_undone(error: psycopg.Error) -> bool:
    """Whether other transactions conflicted, so that the call may be repeated."""
    return isinstance(error, _UNDONE)


def explained(error: psycopg.Error) -> str:
    """Why a database cannot be used."""
    match error:
        case errors.InsufficientPrivilege():
            return f"the user lacks a right: {said(error)}"
        case errors.ReadOnlySqlTransaction():
            return f"the server is read-only: {said(error)}"
        case errors.LockNotAvailable():
            return "a lock that others hold did not become free; try again"
    return said(error)


def said(error: psycopg.Error) -> str:
    """The start of the server's message, in one line; the rest may quote the
    statement."""
    lines = (error.diag.message_primary or str(error)).strip().splitlines()
    return " ".join(each.strip().rstrip(".") for each in lines) or type(error).__name__
