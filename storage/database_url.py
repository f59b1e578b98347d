"""From the setting that names a database to the opened database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from storage.contract import Storage
from storage.errors import DatabaseUnusable
from storage.sqlite import copy_at_rest, open_database, read_times


async def open_storage(url: str, *, migrate: bool = True) -> Storage:
    """Open ``sqlite:PATH``; without ``migrate`` an outdated schema is refused.

    Raises `DatabaseUnusable` and its subclasses.
    """
    return await open_database(_path(url), migrate=migrate)


def copy_storage(url: str, destination: Path) -> None:
    """A backup of a database that nobody uses, of whatever version.

    Raises `DatabaseUnusable` and its subclasses, and `WriteFailed`.
    """
    copy_at_rest(_path(url), destination)


def read_entry_times(url: str) -> Mapping[str, tuple[float, ...]]:
    """When the entries of each feed were posted: Unix seconds by the feed's URL.

    Reads beside a running hub. Raises `DatabaseUnusable`.
    """
    return read_times(_path(url))


def _path(url: str) -> Path:
    scheme, _, location = url.partition(":")
    if scheme != "sqlite" or not location:
        # Not repeated whole: it may hold a password.
        reason = 'expected "sqlite:" and the path of a file'
        raise DatabaseUnusable(f"database {scheme!r}", reason)
    return Path(location)
