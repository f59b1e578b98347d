"""Every stored time is declared, and lies no farther ahead than it may."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from storage.records import FeedId, Polling
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.schema import run_pending
from storage.sqlite.time_columns import TIME_COLUMNS, Limit, hold_columns
from tests.support.new_database import open_new
from tests.support.storage_scene import START, Scene, at, fetch

NOW = to_milliseconds(START)
MILLISECOND = timedelta(milliseconds=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FAR = 400 * DAY

NO_TIMES = frozenset(
    """
    account_id added after_id any_fresh as_is attempts batch block bucket
    by_topic change changes checked_at content count day days deleted docid
    done entry_id exhausted failed forgotten
    failures feed_id feeds first first_id free_bytes from_position head id incarnation
    inherits_language is_active is_admin is_copy is_doubted is_link item kept
    is_moved is_next is_paused is_stale is_superseded is_turned last last_id
    last_position
    last_status lease_id lease_seconds level milliseconds missed_first
    missed_last notified number owner pace page_id pages pending popularity porn_rank
    own_period place_id position private queries rank reason refused removed revision
    skip_after skip_to version
    source_id stamp status subscribers subscription_id tail target_id token_id
    topic_id total tried_to turn
    unlisted unread used_bytes value walk watch_id withdrawals
    """.split()  # noqa: SIM905 - a list of eighty lines says no more
)
"""Of all tables: ids, positions, counts and flags. ``day`` and ``walk`` are numbers of
a site's own; ``checked_at`` counts trial writes."""


@pytest.fixture(scope="module")
def empty() -> bytes:
    """A database without rows, which each test has a copy of."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        return connection.serialize()


@pytest.fixture
def connection(empty: bytes) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(empty)
        yield connection


def numbers(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Every column of every table that may hold one."""
    return {
        (table, column)
        for (table,) in connection.execute(
            "SELECT name FROM pragma_table_list"
            " WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
        for column, kind in connection.execute(
            "SELECT name, type FROM pragma_table_info(?)", (table,)
        ).fetchall()
        if kind in ("INTEGER", "REAL", "ANY")
    }


def test_every_column_that_keeps_a_time_is_declared_with_its_rule(
    connection: sqlite3.Connection,
) -> None:
    declared = {
        (table, name) for table, names in TIME_COLUMNS.items() for name in names
    }
    found = numbers(connection)

    assert {each for each in found - declared if each[1] not in NO_TIMES} == set()
    assert declared - found == set()
    assert {each for each in declared if each[1] in NO_TIMES} == set()


LIMITS = [
    pytest.param(table, column, limit, id=f"{table}.{column}")
    for table, columns in TIME_COLUMNS.items()
    for column, limit in columns.items()
    if limit is not None and table != "meta"
]


def insert(connection: sqlite3.Connection, table: str, **known: object) -> None:
    """A row with any values in the other columns."""
    columns = connection.execute(
        "SELECT name, type FROM pragma_table_info(?)", (table,)
    ).fetchall()
    values = {"INTEGER": 1, "BLOB": b"", "TEXT": "", "REAL": 0.0}
    row = {name: values[kind] for name, kind in columns} | known
    marks = ", ".join("?" * len(row))
    sql = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608
    connection.execute(sql, tuple(row.values()))


@pytest.mark.parametrize("back", [timedelta(0), FAR])
@pytest.mark.parametrize(("table", "column", "limit"), LIMITS)
def test_no_stored_time_lies_farther_ahead_than_its_rule_allows(
    connection: sqlite3.Connection,
    table: str,
    column: str,
    limit: Limit,
    back: timedelta,
) -> None:
    connection.execute(f"DELETE FROM {table}")  # noqa: S608
    state = {"removed_at": "removed", "ended_at": "ended", "lease_end": "active"}
    known = {"state": state[column]} if column in state else {}
    far = (START + 20 * FAR - START + timedelta(milliseconds=NOW)) // limit.unit
    insert(connection, table, **known, **{column: far})

    hold_columns(NOW, back // MILLISECOND, connection)

    [(held,)] = connection.execute(f"SELECT {column} FROM {table}").fetchall()  # noqa: S608
    if back or not limit.is_sought:
        latest = timedelta(milliseconds=NOW) + limit.ahead
        assert held * limit.unit <= latest
    else:
        assert held == far  # looked for only when the clock went back


@pytest.mark.parametrize(("table", "column", "limit"), LIMITS)
def test_a_time_within_its_limit_stays(
    connection: sqlite3.Connection, table: str, column: str, limit: Limit
) -> None:
    connection.execute(f"DELETE FROM {table}")  # noqa: S608
    near = (timedelta(milliseconds=NOW) + limit.ahead) // limit.unit
    insert(connection, table, **{column: near})

    hold_columns(NOW, 0, connection)

    found = connection.execute(f"SELECT {column} FROM {table}").fetchall()  # noqa: S608
    assert found == [(near,)]


def test_records_at_the_end_of_the_log_are_of_now_and_older_ones_stay(
    connection: sqlite3.Connection,
) -> None:
    times = [NOW - 5, NOW - 1, NOW + 7, NOW + 9]
    for position, time in enumerate(times, 1):
        connection.execute(
            "INSERT INTO records"
            " VALUES (?, ?, 1, 'entries', 1, x'', x'', 0, NULL, NULL)",
            (position, time),
        )

    hold_columns(NOW, 9, connection)

    found = connection.execute("SELECT at FROM records ORDER BY position").fetchall()
    assert found == [(NOW - 5,), (NOW - 1,), (NOW,), (NOW,)]


@pytest.mark.parametrize("ahead", [2 * HOUR, DAY, FAR])
async def test_after_a_clock_that_was_ahead_a_feed_is_due_when_it_would_have_been(
    tmp_path: Path, ahead: timedelta
) -> None:
    storage = await open_new(tmp_path / "hub.db")
    feed = await Scene(storage).add_feed()
    then = START + ahead
    await storage.note_time(then)
    polling = Polling(period=3_600.0, last_fetch=then, last_success=then)
    await storage.log.commit(
        fetch(feed, when=then, polling=polling, next_fetch=then + HOUR)
    )
    await storage.close()

    storage = await open_new(tmp_path / "hub.db")
    try:
        assert await storage.note_time(at(60)) == ahead - timedelta(minutes=1)
        found = await storage.feeds.get(feed.id)
        assert found is not None
        assert found.next_fetch == at(60) + HOUR
        assert found.polling.last_fetch == found.polling.last_success == at(60)
        assert await storage.note_time(at(120)) == timedelta(0)
    finally:
        await storage.close()


async def test_a_database_of_a_version_that_noted_no_time_is_put_right_too(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    storage = await open_new(path)
    feed = await Scene(storage).add_feed()
    then = START + FAR
    await storage.log.commit(
        fetch(
            feed,
            when=then,
            polling=Polling(last_fetch=then),
            next_fetch=then + HOUR,
        )
    )
    await storage.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET seen_at = 0")

    storage = await open_new(path)
    try:
        assert await storage.note_time(START) == timedelta(0)
        assert await storage.feeds.next_due() == START + HOUR
    finally:
        await storage.close()


async def test_what_waits_goes_back_with_the_clock_while_the_hub_runs(
    tmp_path: Path,
) -> None:
    storage = await open_new(tmp_path / "hub.db")
    try:
        scene = Scene(storage)
        subscription = await scene.subscribe(await scene.add_feed())
        await storage.note_time(START + FAR)
        await storage.digests.set(subscription.id, START + FAR + HOUR)

        assert await storage.note_time(START) == FAR

        assert await storage.digests.due(START + HOUR - MILLISECOND, 9) == []
        [due] = await storage.digests.due(START + HOUR, 9)
        assert due.id == subscription.id
    finally:
        await storage.close()


async def test_clocks_that_are_corrected_by_a_little_change_nothing(
    tmp_path: Path,
) -> None:
    storage = await open_new(tmp_path / "hub.db")
    try:
        feed = await Scene(storage).add_feed()
        await storage.feeds.defer([(FeedId(feed.id), at(30))])
        await storage.note_time(at(4))

        assert await storage.note_time(START) == timedelta(0)
        assert await storage.feeds.next_due() == at(30)
    finally:
        await storage.close()
