"""The schema's version and the numbered migrations that lead to it.

Each migration is one transaction that also sets the new version (``user_version``), so
a crash leaves the database before or after it, never between.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from storage.errors import DatabaseOutdated, DatabaseTooNew, DatabaseUnusable
from storage.sqlite.feed_access import hash_resource

APPLICATION_ID = 0x46414E46
"""Marks the file as Fanfare's ("FANF"), for `file` and to recognize other programs'
files."""

COPY_STATE = "fanfare_copy"
"""The table that only an unfinished copy of another database has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    script: str


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this program, in order; numbered from 1 without gaps."""
    folder = files("storage.sqlite") / "migrations"
    scripts = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".sql")),
        key=lambda each: each.name,
    )
    return tuple(
        Migration(
            version=int(each.name.partition("_")[0]),
            name=each.name,
            script=each.read_text(encoding="utf-8"),
        )
        for each in scripts
    )


def latest_version() -> int:
    return migrations()[-1].version


def schema_version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def check_version(
    connection: sqlite3.Connection, location: str, *, migrate: bool
) -> None:
    """Refuse a file that cannot be used, before it is touched.

    Raises `DatabaseUnusable`, `DatabaseTooNew`, `DatabaseOutdated`.
    """
    refuse_strangers(connection, location)
    found, latest = schema_version(connection), latest_version()
    if found > latest:
        raise DatabaseTooNew(location, found, latest)
    if found < latest and not migrate:
        raise DatabaseOutdated(
            location,
            f"schema version {found} is older than {latest}, the one this version"
            " of Fanfare needs; run `fanfare db migrate`",
        )


def run_pending(connection: sqlite3.Connection) -> None:
    """Run the migrations that the file has not seen. Raises `sqlite3.Error`."""
    connection.create_function("resource_hash", 1, hash_resource, deterministic=True)
    found = schema_version(connection)
    for migration in migrations():
        if migration.version > found:
            run(connection, migration)


def refuse_strangers(connection: sqlite3.Connection, location: str) -> None:
    """Raises `DatabaseUnusable` for the file of another program, and for an unfinished
    copy."""
    source = find_unfinished_copy(connection)
    if source is not None:
        raise DatabaseUnusable(
            location,
            f"this is an unfinished copy of {source}; run `fanfare db copy` again, and"
            " it goes on, or delete the file",
        )
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and tables:
        raise DatabaseUnusable(location, "this is the database of another program")


def find_unfinished_copy(connection: sqlite3.Connection) -> str | None:
    """Of which database the file is one; None if it is none."""
    has_state = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = ?", (COPY_STATE,)
    ).fetchone()
    if has_state is None:
        return None
    ((state,),) = connection.execute(
        f"SELECT state FROM {COPY_STATE} WHERE name = ''"
    ).fetchall()
    return str(msgspec.msgpack.decode(state)["location"])


def holds_secrets(connection: sqlite3.Connection) -> bool:
    """Whether something is stored that only its key can read, in any schema so far."""
    columns = connection.execute(
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
        " WHERE m.type = 'table' AND c.type = 'TEXT' AND c.name IN"
        " ('secret', 'former_secret', 'credentials', 'publish_secret')"
    ).fetchall()
    return any(
        connection.execute(
            f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {column} <> '')"
        ).fetchone()[0]
        for table, column in columns
    )


def run(connection: sqlite3.Connection, migration: Migration) -> None:
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE;\n{migration.script}\n"
            f"PRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {migration.version};\nCOMMIT;"
        )
    except sqlite3.Error:
        if connection.in_transaction:
            connection.rollback()
        raise
