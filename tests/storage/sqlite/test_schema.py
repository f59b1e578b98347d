"""The numbered migrations."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

import msgspec
import pytest

from storage.contract import Storage
from storage.records import (
    FeedId,
    FeedState,
    NewFeed,
    Phrase,
    Polling,
    StoredFeed,
    pace_of,
)
from storage.sqlite import open_database
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.connection_threads import prepare_for_writing
from storage.sqlite.feed_access import hash_resource
from storage.sqlite.schema import (
    Migration,
    latest_version,
    migrations,
    run,
    run_pending,
    schema_version,
)
from tests.support.storage_scene import MINUTE, START


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


async def test_entries_from_before_there_was_a_search_are_yet_to_be_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for migration in migrations()[:BEFORE_RESOURCES]:
            run(connection, migration)
        connection.execute("UPDATE meta SET head = 7")
        connection.execute(
            "INSERT INTO entries VALUES (5, 1, x'00', 'key', 1, 0, 0, 7, x'')"
        )

    storage = await open_database(path)
    try:
        await storage.search.keep(inf)
        assert await storage.search.unread(LONG_AGO, 9) == ([5], 0)
        assert (await storage.search.state()).position == 7
    finally:
        await storage.close()


async def test_an_index_with_longer_ids_is_set_aside_and_its_entries_are_read_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        prepare_for_writing(connection)
        connection.create_function("resource_hash", 1, hash_resource)
        for migration in migrations()[:BEFORE_DAYS]:
            run(connection, migration)
        connection.executescript(
            "INSERT INTO entries VALUES (5, 1, x'00', 'key', 1, 0, 0, 7, x'', 0);"
            "INSERT INTO searched VALUES (5, 2000000, x'00');"
            "INSERT INTO search (rowid, words, places) VALUES (2000000, 'a', 'any');"
        )

    storage = await open_database(path)
    try:
        found = await storage.search.find(Phrase(("a",)), viewer=None, limit=9)
        assert found.entries == ()
        assert (await storage.search.state()).days == 0
        while await storage.search.remove_former(1):
            pass
        await storage.search.keep(inf)
        assert await storage.search.unread(LONG_AGO, 9) == ([5], 0)
        assert await storage.find_damage() == ()
    finally:
        await storage.close()
    with closing(sqlite3.connect(path)) as connection:
        former = connection.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'former%'"
        ).fetchall()
        assert former == []


BEFORE_RESOURCES = 5
BEFORE_DAYS = 48
LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
OF_HOSTS = 9
BEFORE_SLICES = 6


async def test_a_feed_with_a_host_in_letters_is_found_by_it_and_in_punycode(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    a_database_of_spellings(path, "https://b\u00fccher.example/feed")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run_pending(connection)
        connection.execute("UPDATE feeds SET resource_hash = x'00'")  # of before
        of_hosts = next(each for each in migrations() if each.version == OF_HOSTS)
        connection.executescript(of_hosts.script)

    storage = await open_database(path)
    try:
        for host in ("b\u00fccher", "B\u00dcCHER", "xn--bcher-kva"):
            found = await storage.feeds.find(f"https://{host}.example/feed")
            assert found is not None
    finally:
        await storage.close()


def a_database_of_spellings(path: Path, *urls: str) -> None:
    """As it was when each spelling of a URL was a feed of its own."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for migration in migrations()[:BEFORE_RESOURCES]:
            run(connection, migration)
        for number, url in enumerate(urls, 1):
            connection.execute(
                "INSERT INTO feeds VALUES (?, ?, 'active', 0, '', '', '', 0, 0, NULL,"
                " '', '', 0, 0, x'')",
                (number, url),
            )
            connection.execute(
                "INSERT INTO topics VALUES (?, ?, ?, '')", (number, url, number)
            )


@pytest.mark.parametrize(
    ("url", "feed_id"),
    [
        ("HTTP://A.example/feed#x", 1),  # as they were spelled
        ("http://a.example/feed", 2),
        ("http://a.example:80/feed", 1),  # otherwise: the first
        ("http://b.example/", 3),
        ("http://b.example", 3),
    ],
)
async def test_feeds_that_were_added_before_are_found_under_any_spelling(
    tmp_path: Path, url: str, feed_id: int
) -> None:
    path = tmp_path / "hub.db"
    a_database_of_spellings(
        path, "HTTP://A.example/feed#x", "http://a.example/feed", "http://B.example"
    )

    storage = await open_database(path)
    try:
        found = await storage.feeds.find(url)
        again, is_new = await storage.feeds.add(NewFeed(url=url), START)
    finally:
        await storage.close()

    assert found is not None
    assert (found.id, again.id, is_new) == (feed_id, feed_id, False)


DAY = timedelta(days=1)
SCHEDULE = "_schedule.sql"


def a_database_of_states(path: Path) -> None:
    """As it was when a feed's own row had its next fetch: one minute apart, by id."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run_before(SCHEDULE, connection)
        for number, state in enumerate(FeedState, 1):
            due = to_milliseconds(START + number * MINUTE)
            connection.execute(
                "INSERT INTO feeds VALUES (?, ?, ?, 0, '', '', '', ?, 0, NULL,"
                " '', '', 0, 0, x'', ?)",
                (number, f"https://{state}.example/", state, due, bytes([number])),
            )


def run_before(name: str, connection: sqlite3.Connection) -> None:
    connection.create_function("resource_hash", 1, hash_resource, deterministic=True)
    for migration in migrations():
        if migration.name.endswith(name):
            return
        run(connection, migration)


async def test_feeds_keep_their_next_fetch_and_only_active_ones_are_due(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    a_database_of_states(path)
    times = {
        state: START + number * MINUTE for number, state in enumerate(FeedState, 1)
    }

    storage = await open_database(path)
    try:
        due = await storage.feeds.due(START + DAY, after={}, limit=9)
        kept = {state: await get(storage, state) for state in FeedState}
        for feed in kept.values():
            await storage.feeds.set_state(feed.id, FeedState.ACTIVE, START)
        resumed = await storage.feeds.due(START + DAY, after={}, limit=9)
    finally:
        await storage.close()

    assert [each.next_fetch for each in due] == [times[FeedState.ACTIVE]]
    assert {state: feed.next_fetch for state, feed in kept.items()} == times
    assert [each.next_fetch for each in resumed] == sorted(times.values())


async def test_feeds_from_before_there_were_paces_get_that_of_their_period(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    periods = (0.0, 60.0, 900.0, 86_400.0, 1e9)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        run_before("_paces.sql", connection)
        for number, period in enumerate(periods, 1):
            polling = msgspec.json.encode(Polling(period=period)) if period else b""
            connection.execute(
                "INSERT INTO feeds (id, url, state, private, section, title, format,"
                " created_at, fetch_url, credentials, polling, resource_hash)"
                " VALUES (?, ?, 'active', 0, '', '', '', 0, '', '', ?, ?)",
                (number, f"https://{number}.example/", polling, bytes([number])),
            )
            connection.execute("INSERT INTO schedule VALUES (?, 0, 1)", (number,))

    storage = await open_database(path)
    try:
        due = await storage.feeds.due(START, after={}, limit=9)
    finally:
        await storage.close()

    paces = {each.id: each.pace for each in due}
    assert paces == {id: pace_of(period) for id, period in enumerate(periods, 1)}


async def get(storage: Storage, state: FeedState) -> StoredFeed:
    (feed,) = await storage.feeds.page(after=FeedId(0), limit=9, state=state)
    return feed


async def test_feeds_from_before_slices_were_remembered_have_none(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("resource_hash", 1, hash_resource)
        for migration in migrations()[:BEFORE_SLICES]:
            run(connection, migration)
        connection.execute(
            "INSERT INTO feeds VALUES (1, 'https://a.example/', 'active', 0, '', '',"
            " 'rss', 0, 0, NULL, '', '', 0, 0, x'', x'')"
        )
        connection.execute("INSERT INTO seen_sets VALUES (1, x'01')")

    storage = await open_database(path)
    try:
        (target,) = await storage.feeds.targets([FeedId(1)])
    finally:
        await storage.close()

    assert (target.seen, target.slices) == (b"\x01", b"")
