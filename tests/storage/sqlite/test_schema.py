"""The numbered migrations."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from storage.sqlite.schema import (
    Migration,
    latest_version,
    migrations,
    run,
    run_pending,
    schema_version,
)


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    versions = [each.version for each in migrations()]

    assert versions == list(range(1, latest_version() + 1))


def test_all_migrations_run_and_only_once() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        run_pending(connection)

        assert schema_version(connection) == latest_version()


def test_a_migration_that_fails_leaves_nothing() -> None:
    broken = Migration(version=1, name="", script="CREATE TABLE a (b); DROP TABLE c;")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            run(connection, broken)

        found = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        assert (found, schema_version(connection)) == ((0,), 0)


def test_a_migration_that_cannot_even_begin_leaves_nothing(tmp_path: object) -> None:
    path = f"{tmp_path}/hub.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as owner,
        closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as second,
    ):
        owner.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            run(second, migrations()[0])
        owner.execute("ROLLBACK")

        assert schema_version(second) == 0


def test_both_accounts_exist_from_the_first_migration() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run(connection, migrations()[0])

        accounts = connection.execute("SELECT * FROM accounts ORDER BY id").fetchall()
        assert accounts == [(1, "anonymous"), (2, "operator")]


def test_records_from_before_they_could_be_superseded_bring_their_documents() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in migrations()[:4]:
            run(connection, migration)
        connection.execute(
            "INSERT INTO records VALUES (1, 0, 1, 'updated', 1, x'', x'')"
        )

        run_pending(connection)

        found = connection.execute("SELECT is_superseded, news FROM records").fetchall()
        assert found == [(0, "updated/1/0")]
