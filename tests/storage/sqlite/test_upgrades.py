"""Databases of every older version: migrated whole, wherever a migration is killed."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

import msgspec
import pytest

from hub.publishing.page_visibility import PageUpdater
from protocols.model import Entry, Feed, Status
from storage.contract import Storage
from storage.errors import DatabaseOutdated
from storage.packing import pack
from storage.records import (
    FeedFilter,
    FeedHealth,
    FeedId,
    FeedSort,
    Format,
    ListingSearch,
    PageId,
    PageSection,
    Polling,
    Position,
    SubscriptionHealth,
    SubscriptionId,
)
from storage.sqlite import copy_at_rest, open_database
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.connection_threads import prepare_for_writing
from storage.sqlite.feed_access import hash_resource
from storage.sqlite.rows import hash_key, pack_refs
from storage.sqlite.schema import latest_version, migrations, run, run_pending
from tests.support.clock import ManualClock
from tests.support.storage_scene import MINUTE, START, Scene, fetch, record, stored_at

URL = "https://a.example/feed"
RECORDS = 3
NOW = to_milliseconds(START)


def write_first_version(connection: sqlite3.Connection) -> None:
    """A feed with three records; one subscriber lacks the last of them, another is a
    retrying subscription with a dead letter."""
    connection.execute(
        "INSERT INTO feeds VALUES (1, ?, 'active', 0, '', 'A feed', 'atom', ?, ?, NULL,"
        " '', '', 0, 0, x'')",
        (URL, NOW, NOW),
    )
    connection.execute("INSERT INTO topics VALUES (1, ?, 1)", (URL,))
    connection.execute("INSERT INTO seen_sets VALUES (1, x'01')")
    head = pack(Feed(title="A feed"))
    connection.execute("INSERT INTO feed_heads VALUES (1, ?)", (head,))
    status = msgspec.json.encode(Status())
    for number in range(1, RECORDS + 1):
        key = f"key {number}"
        connection.execute(
            "INSERT INTO entries VALUES (?, 1, ?, ?, 1, 0, ?, ?, ?)",
            (number, hash_key(key), key, NOW, number, pack(Entry(key=key, id=key))),
        )
        connection.execute(
            "INSERT INTO records VALUES (?, ?, 1, 'entries', 1, ?, ?)",
            (
                number,
                NOW,
                status,
                pack_refs([(number, 1, True)]),
            ),
        )
    connection.execute("UPDATE meta SET head = ?", (RECORDS,))
    for number in (1, 2):
        callback = f"https://{number}.example/"
        connection.execute(
            "INSERT INTO subscriptions (id, account_id, topic_id, feed_id,"
            " callback_hash, callback, secret, algorithm, format, updates, batch,"
            " state, from_position, lease_end, created_at, exhausted, ended_reason)"
            " VALUES (?, 2, 1, 1, ?, ?, '', 'sha1', 'json', 'fresh', 0, 'active', 0,"
            " NULL, ?, 0, '')",
            (number, hash_key(callback), callback, NOW),
        )
    connection.execute("INSERT INTO fanouts VALUES (?, 1, 0, 1)", (RECORDS,))
    connection.execute(
        "INSERT INTO stragglers VALUES (2, 1, 2, 3, ?, ?, 503, 'busy', NULL, NULL,"
        " NULL, NULL, 0, ?)",
        (NOW, NOW, NOW),
    )
    connection.execute("INSERT INTO dead VALUES (1, 2, 1, 1, 'given up', ?)", (NOW,))
    connection.execute(
        "INSERT INTO attempts VALUES (1, 2, 1, ?, 503, 20, 'busy')", (NOW,)
    )


def write_version(path: Path, version: int) -> None:
    """As a program of that version leaves it, that has come by all before."""
    path.write_bytes(database_of(version))


@cache
def database_of(version: int) -> bytes:
    """Made of the version before, so that each migration is run once for all tests."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "hub.db"
        if version > 1:
            path.write_bytes(database_of(version - 1))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            prepare_for_writing(connection)
            connection.create_function("resource_hash", 1, hash_resource)
            run(connection, migrations()[version - 1])
            if version == 1:
                write_first_version(connection)
        return path.read_bytes()


def migrate_and_be_killed(path: Path, remains: Path, moment: random.Random) -> None:
    """What lies on the disk at some statement of the migrations is copied."""
    statements = 0

    def copy_if_it_is_the_one(statement: str) -> None:
        nonlocal statements
        statements += 1
        if moment.randrange(statements) == 0:  # at the end each was as likely
            copy_files(path, remains)

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        prepare_for_writing(connection)
        connection.execute("PRAGMA cache_size = 5")  # so that it writes early
        connection.set_trace_callback(copy_if_it_is_the_one)
        run_pending(connection)


def copy_files(source: Path, destination: Path) -> None:
    for suffix in ("", "-wal"):
        copyfile(f"{source}{suffix}", f"{destination}{suffix}")


@pytest.mark.parametrize("version", range(1, latest_version()))
async def test_an_older_database_is_whole_after_a_migration_that_was_killed(
    version: int, tmp_path: Path
) -> None:
    path, remains = tmp_path / "hub.db", tmp_path / "remains.db"
    write_version(path, version)
    migrate_and_be_killed(path, remains, random.Random(version))

    storage = await open_database(remains)

    try:
        assert (await storage.status()).version == latest_version()
        await check_content(storage)
    finally:
        await storage.close()


async def test_feeds_and_subscriptions_from_before_are_as_their_last_try_left_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    (health,) = (each for each in migrations() if each.name.endswith("_health.sql"))
    write_version(path, health.version - 1)
    failing = msgspec.json.encode(Polling(failures=2, failing_since=START + MINUTE))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE feeds SET polling = ?, section = 'news'", (failing,))
        connection.execute("UPDATE subscriptions SET exhausted = 1 WHERE id = 1")
        connection.execute(
            "INSERT INTO dead VALUES (9, 1, 1, 1, 'no answer', ?)", (NOW,)
        )

    storage = await open_database(path)

    try:
        page = await storage.feed_selections.page(
            FeedFilter(text="A FEED", category="news"),
            FeedSort.SINCE,
            after=None,
            limit=9,
        )
        (feed,) = page.feeds
        assert (feed.health, feed.health_since) == (FeedHealth.FAILING, START + MINUTE)
        assert page.total == 1
        conditions = await storage.subscription_selections.conditions(
            [SubscriptionId(1), SubscriptionId(2)]
        )
        is_failing = {each.health for each in conditions}
        assert is_failing == {SubscriptionHealth.FAILING}
        assert [each.reason for each in conditions] == ["no answer", "busy"]
        assert {each.since for each in conditions} == {START}
    finally:
        await storage.close()


async def test_who_is_sent_documents_is_counted_as_before(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    (counts,) = (each for each in migrations() if each.name.endswith("audience.sql"))
    write_version(path, counts.version - 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE subscriptions SET format = 'as-is' WHERE id = 1")
        connection.execute("INSERT INTO bodies VALUES (1, 'text/xml', x'01', 1)")

    storage = await open_database(path)

    try:
        [before] = await storage.feeds.targets([FeedId(1)])
        await storage.subscriptions.end(SubscriptionId(1), "over", START, tell=False)
        [after] = await storage.feeds.targets([FeedId(1)])
        assert (before.subscribers, before.keeps_body) == (2, True)
        assert (after.subscribers, after.keeps_body) == (1, False)
        with closing(sqlite3.connect(path)) as connection:
            assert not connection.execute("SELECT 1 FROM bodies").fetchall()
    finally:
        await storage.close()


async def check_content(storage: Storage) -> None:
    """All is there, and goes on: what was due is delivered, and news are committed."""
    feed = await storage.feeds.find(URL)
    assert feed is not None
    assert (feed.title, feed.next_fetch) == ("A feed", START)
    assert await storage.subscriptions.count(feed.id) == 2
    records = await storage.log.records(after=Position(0), limit=9)
    assert [each.position for each in records] == [1, 2, 3]
    refs = [ref.entry_id for each in records for ref in each.entries]
    entries = await storage.log.entries(refs)
    assert sorted(each.key for each in entries) == ["key 1", "key 2", "key 3"]
    [retrying] = await storage.deliveries.retrying(after=SubscriptionId(0), limit=9)
    assert (retrying.position, retrying.attempts) == (2, 3)
    [dead] = await storage.deliveries.dead_letters(after=0, limit=9)
    assert (dead.first, dead.last, dead.reason) == (1, 1, "given up")
    [attempt] = await storage.deliveries.attempts(SubscriptionId(2), 9)
    assert attempt.status == 503
    assert await Scene(storage).deliver() == [RECORDS]
    news = Entry(key="key 4", id="4")
    commit = fetch(feed, entries=(news,), records=(record("key 4"),))
    assert await stored_at(storage.log.commit(commit)) == (RECORDS + 1,)


@pytest.mark.parametrize(
    ("read_as", "state", "format"),
    [("", "active", "by-topic"), ("", "track", "atom"), ("rss", "active", "atom")],
)
async def test_atom_of_what_was_never_read_is_left_to_what_there_will_be_to_send(
    tmp_path: Path, read_as: str, state: str, format: str
) -> None:
    path = tmp_path / "hub.db"
    write_version(path, 24)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.create_function("is_same_secret", 2, str.__eq__)
        connection.execute("UPDATE feeds SET format = ?, state = ?", (read_as, state))
        connection.execute("UPDATE subscriptions SET format = 'atom' WHERE id = 1")
    storage = await open_database(path)
    try:
        found = await storage.subscriptions.get(SubscriptionId(1))
        assert found is not None
        assert found.format == format
        listing = await storage.listings.page(
            found.account, ListingSearch(format=Format.ATOM), skip=0, limit=9
        )
        assert [each.subscription.id for each in listing.items] == [1]
    finally:
        await storage.close()


async def test_the_way_back_is_a_copy_that_the_newer_version_makes_beforehand(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "hub.db", tmp_path / "copy.db"
    write_version(path, 4)

    copy_at_rest(path, copy)

    for each in (path, copy):
        with pytest.raises(DatabaseOutdated, match="schema version 4"):
            await open_database(each, migrate=False)
    with closing(sqlite3.connect(copy)) as connection:
        found = connection.execute("SELECT count(*) FROM records").fetchone()
    assert found == (RECORDS,)


async def test_pages_of_former_rules_are_judged_anew_and_what_was_built_is_taken_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    (owners,) = (each for each in migrations() if each.name.endswith("page_owners.sql"))
    write_version(path, owners.version - 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE feeds SET section = 'news'")
        connection.execute(
            "INSERT INTO pages (url_hash, url, entry_id, revision, modified, change,"
            " changed_at) VALUES (x'00', 'https://b.example/', 1, 1, 900, 7, 0)"
        )
        connection.execute("INSERT INTO page_sections VALUES ('news', 3)")

    storage = await open_database(path)

    try:
        sections = await storage.pages.sections()
        assert sections == [
            PageSection(name="", withdrawals=1),
            PageSection(name="news", withdrawals=1),
        ]
        assert await storage.pages.position() == 7
        clock = ManualClock(START)
        judged = await PageUpdater(
            storage.pages, clock, "https://hub.example"
        ).catch_up()
        assert judged == RECORDS
        of_section = await storage.pages.pages("news", after=PageId(0), limit=9)
        assert len(of_section) == RECORDS
    finally:
        await storage.close()


async def test_what_sections_showed_of_others_pages_is_judged_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    (owners,) = (
        each for each in migrations() if each.name.endswith("owners_of_pages.sql")
    )
    write_version(path, owners.version - 1)
    host, stranger, of_all = -5 << 48, 0, (("", 1), ("links", 2), ("blogs", 3))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM page_news")
        connection.execute(
            "INSERT INTO pages (url_hash, url, entry_id, revision, modified, change,"
            " changed_at) VALUES (x'00', 'https://b.example/', 3, 1, 900, 7, 0)"
        )
        for section, entry_id in of_all:
            connection.execute(
                "INSERT INTO page_entries (entry_id, page_id, section, dated, revision,"
                " stated, rank) VALUES (?, 1, ?, 0, 1, 0, ?)",
                (entry_id, section, host if section == "blogs" else stranger),
            )
            if section:
                connection.execute(
                    "INSERT INTO section_pages (section, page_id, entry_id, revision,"
                    " modified, change) VALUES (?, 1, ?, 1, 900, ?)",
                    (section, entry_id, entry_id),
                )

    storage = await open_database(path)

    try:
        news = await storage.pages.news(9)
        assert [each.entry_id for each in news] == [2]
    finally:
        await storage.close()
