"""From the setting that names a database to the opened database."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from storage.contract import Storage
from storage.database_names import is_on_server, name_location
from storage.errors import DatabaseUnusable
from storage.postgres import open_database as open_postgres
from storage.records import DatabaseStatus, OnProgress
from storage.secrets import key_path
from storage.sqlite import (
    compact_database,
    copy_at_rest,
    find_damage,
    find_damage_at_rest,
    lock_database,
    open_database,
    owned,
    read_times,
    restore_database,
)


async def open_storage(
    url: str, local: Path | None = None, *, migrate: bool = True
) -> Storage:
    """Open ``sqlite:PATH`` or ``postgresql://…``; without ``migrate`` an outdated
    schema is refused.

    ``local``: the file after which the key and the lock of a database on a server are
    named; both are on this machine. Those of SQLite are beside its file. Raises
    `DatabaseUnusable` and its subclasses.
    """
    if not is_on_server(url):
        return await open_database(_path(url), migrate=migrate)
    if local is None:
        raise TypeError("a database on a server needs a file of this machine")
    lock = lock_database(local)
    try:
        return await open_postgres(
            url, key_path(local), migrate=migrate, on_close=lock.release
        )
    except BaseException:
        lock.release()
        raise


async def migrate_storage(url: str, local: Path) -> DatabaseStatus:
    """Bring the schema up to date: beside running hubs if it is on a server, as far as
    they allow.

    Raises `DatabaseUnusable` and its subclasses.
    """
    if is_on_server(url):
        storage: Storage = await open_postgres(url, key_path(local))
    else:
        storage = await open_database(_path(url))
    try:
        return await storage.status()
    finally:
        await storage.close()


def copy_storage(url: str, destination: Path, progress: OnProgress) -> None:
    """Make a backup of a database that nobody uses, of any schema version.

    Raises `DatabaseUnusable` and its subclasses, and `WriteFailed`.
    """
    copy_at_rest(_path(url), destination, progress)


def check_unused(url: str) -> None:
    """Raises `DatabaseLocked` if a hub uses the database, and `DatabaseUnusable`."""
    with owned(_path(url)):
        return


def restore_storage(
    url: str, backup: Path, stamp: str, progress: OnProgress
) -> Path | None:
    """Replace a database that nobody uses by a backup.

    Returns where the former database is now, with ``stamp`` in its name; None if there
    was none. Raises `DatabaseUnusable` and its subclasses, and `WriteFailed`.
    """
    return restore_database(backup, _path(url), stamp, progress)


def compact_storage(url: str, progress: OnProgress) -> tuple[int, int]:
    """Give back unused space; returns the bytes before and after.

    Raises `DatabaseUnusable` and its subclasses, and `WriteFailed`.
    """
    return compact_database(_path(url), progress)


def check_storage(url: str) -> tuple[str, ...]:
    """What is wrong with a database that nobody uses, a sentence each.

    Raises `DatabaseUnusable` and its subclasses.
    """
    return find_damage_at_rest(_path(url))


def check_backup(path: Path) -> tuple[str, ...]:
    """What is wrong with a backup, a sentence each. Raises `DatabaseUnusable`."""
    return find_damage(path)


def read_entry_times(url: str) -> Mapping[str, tuple[float, ...]]:
    """When the entries of each feed were posted: Unix seconds by the feed's URL.

    Reads beside a running hub. Raises `DatabaseUnusable`.
    """
    return read_times(_path(url))


def _path(url: str) -> Path:
    """The path of SQLite's file; a database on a server has none."""
    scheme, _, location = url.partition(":")
    if is_on_server(url):
        reason = "this is for SQLite; its server has tools of its own for that"
        raise DatabaseUnusable(name_location(url), reason)
    if scheme != "sqlite" or not location:
        # Not repeated whole: it may hold a password.
        reason = 'expected "sqlite:" and the path of a file'
        raise DatabaseUnusable(f"database {scheme!r}", reason)
    return Path(location)
