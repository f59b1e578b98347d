"""From the setting that names a database to the opened database."""

from __future__ import annotations

from pathlib import Path

from storage.errors import DatabaseUnusable
from storage.interface import Storage
from storage.sqlite import open_database


async def open_storage(url: str, *, migrate: bool = True) -> Storage:
    """Open ``sqlite:PATH``; without ``migrate`` an outdated schema is refused.

    Raises `DatabaseUnusable` and its subclasses.
    """
    scheme, _, location = url.partition(":")
    if scheme != "sqlite" or not location:
        # Not repeated whole: it may hold a password.
        reason = 'expected "sqlite:" and the path of a file'
        raise DatabaseUnusable(f"database {scheme!r}", reason)
    return await open_database(Path(location), migrate=migrate)
