"""Whether a database file is intact, read while others use it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from storage.errors import DatabaseUnusable
from storage.secrets import SecretBox, key_path, read_key
from storage.sqlite.backup import drop_foreign_wal
from storage.sqlite.connection_threads import read_only
from storage.sqlite.file_identity import owned
from storage.sqlite.schema import latest_version, refuse_strangers, schema_version

MOST_FINDINGS: Final = 20
_STEPS_ASKED: Final = 100_000
"""SQLite instructions between two checks whether to go on."""


def find_damage(
    path: Path, *, has_key: bool = True, is_abandoned: Callable[[], bool] = bool
) -> tuple[str, ...]:
    """Read a whole file; returns what is wrong with it, a sentence each.

    Nothing is changed. ``has_key``: its key lies beside it. ``is_abandoned`` is asked
    now and then whether to end early. Raises `DatabaseUnusable` if the file is not a
    hub's database.
    """
    if not path.is_file():
        raise DatabaseUnusable(str(path), "there is no such file")
    try:
        with closing(sqlite3.connect(read_only(path), uri=True)) as connection:
            refuse_strangers(connection, str(path))
            connection.set_progress_handler(is_abandoned, _STEPS_ASKED)
            found = _damage_of_file(connection) or _damage_of_log(connection)
            if has_key and schema_version(connection):
                found += _damage_of_key(path, connection)
    except sqlite3.Error as error:
        return (str(error),)
    return tuple(found)


def find_damage_at_rest(path: Path) -> tuple[str, ...]:
    """Like `find_damage`, for a database that no hub uses, which is not changed.

    Raises `DatabaseUnusable`, `DatabaseLocked` if a hub uses it.
    """
    with owned(path) as file:
        drop_foreign_wal(file)
        return find_damage(file)


def _damage_of_file(connection: sqlite3.Connection) -> list[str]:
    """Damage of pages, indexes and constraints, as SQLite reports it."""
    ((is_empty,),) = connection.execute(
        "SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)"
    ).fetchall()
    if is_empty:
        return ["it is empty"]
    rows = connection.execute(f"PRAGMA integrity_check({MOST_FINDINGS})").fetchall()
    return [line for (line,) in rows if line != "ok"]


def _damage_of_log(connection: sqlite3.Connection) -> list[str]:
    """Damage of the log: records beyond its beginning or end. Also a schema too new."""
    ((log_end, tail, first, last),) = connection.execute(
        "SELECT head, tail, (SELECT min(position) FROM records),"
        " (SELECT max(position) FROM records) FROM meta"
    ).fetchall()
    found = []
    if last is not None and (last > log_end or first <= tail):
        found.append(
            f"the log goes from {first} to {last}, not from {tail} to {log_end}"
        )
    latest = latest_version()
    if schema_version(connection) > latest:
        found.append(f"its schema is newer than {latest}, the newest known here")
    return found


def _damage_of_key(path: Path, connection: sqlite3.Connection) -> list[str]:
    ((key_check,),) = connection.execute("SELECT key_check FROM meta").fetchall()
    name = key_path(path).name
    try:
        key = read_key(key_path(path))
    except DatabaseUnusable as error:
        return [f"{name}: {error.reason}"]
    if key is None:
        return [f"its key file {name} is missing"] if key_check else []
    if SecretBox(key).key_check != key_check:
        return [f"the key file {name} belongs to another database"]
    return []
