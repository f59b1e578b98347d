"""The database of a hub that was off for an hour: feeds and deliveries are overdue.

It is written as rows of the engine, because there are a million of each.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from hub.runtime.clock import SystemClock
from protocols.model import Entry, Feed
from storage.records import FeedId, NewFeed, Polling, Position
from storage.sqlite import SqliteStorage, open_database
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.feed_access import hash_resource
from tests.support.storage_scene import fetch, record

OFF = timedelta(hours=1)
FAILED_BEFORE = 6
"""Tries of a retrying subscription so far; after the seventh it waits for hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """How much is overdue. ``deliveries``: half are first ones, half are retries."""

    feeds: int
    feed_hosts: int
    deliveries: int
    callback_hosts: int
    topics: int = 100
    port: int = 0

    def callback_host(self, number: int) -> str:
        return f"c{number}.example:{self.port}"


async def write_overdue(path: Path, overdue: Overdue) -> None:
    storage = await open_database(path)
    topics = [await _publish(storage, number) for number in range(overdue.topics)]
    await storage.close()
    await asyncio.to_thread(_write_rows, path, overdue, topics)


async def _publish(storage: SqliteStorage, number: int) -> FeedId:
    """Add a topic that is not due, with one record that no subscriber has got yet."""
    now = SystemClock().now()
    new = NewFeed(url=f"http://topic{number}.example/feed")
    feed, _is_new = await storage.feeds.add(new, now)
    entry = Entry(key="k", id=f"urn:{number}", title=f"Entry {number}")
    await storage.log.commit(
        fetch(
            feed,
            when=now - OFF,
            entries=(entry,),
            records=(record("k"),),
            head=Feed(title=f"Topic {number}"),
        )
    )
    await storage.feeds.defer([(feed.id, now + timedelta(days=30))])
    return feed.id


def _write_rows(path: Path, overdue: Overdue, topics: list[FeedId]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("resource_hash", 1, hash_resource)
        connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
            " PRAGMA cache_size = -524288; BEGIN"
        )
        _write_feeds(connection, overdue)
        _write_subscriptions(connection, overdue, topics)
        _write_deliveries(connection, topics)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


_NUMBERS = """
WITH RECURSIVE numbers (number) AS (
    VALUES (0) UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < :count
)
"""


def _write_feeds(connection: sqlite3.Connection, overdue: Overdue) -> None:
    now = to_milliseconds(SystemClock().now())
    (first,) = connection.execute("SELECT 1 + max(id) FROM feeds").fetchone()
    last_fetch = SystemClock().now() - 2 * OFF
    polling = Polling(period=3_600.0, last_fetch=last_fetch, code=200)
    values = {
        "count": overdue.feeds,
        "first": first,
        "hosts": overdue.feed_hosts,
        "port": overdue.port,
        "now": now,
        "off": round(OFF.total_seconds() * 1_000),
        "polling": msgspec.json.encode(polling),
    }
    connection.execute(
        f"""{_NUMBERS}
        INSERT INTO feeds (id, url, state, private, section, title, format,
            created_at, fetch_url, credentials, polling)
        SELECT number + :first, 'http://f' || (number % :hosts) || '.example:' || :port
            || '/' || number, 'active', 1, '', '', 'atom', 0, '', '', :polling
        FROM numbers""",  # noqa: S608 - of constants
        values,
    )
    connection.execute(
        "UPDATE feeds SET resource_hash = resource_hash(url) WHERE id >= :first",
        values,
    )
    connection.execute(
        "INSERT INTO topics (id, url, feed_id)"
        " SELECT id, url, id FROM feeds WHERE id >= :first",
        values,
    )
    connection.execute(
        "INSERT INTO schedule (feed_id, next_fetch, is_active, pace)"
        " SELECT id, :now - abs(random() % :off), 1, 5 FROM feeds WHERE id >= :first",
        values,
    )


def _write_subscriptions(
    connection: sqlite3.Connection, overdue: Overdue, topics: list[FeedId]
) -> None:
    """Write equally many subscriptions for each topic, at all hosts."""
    for place, feed_id in enumerate(topics):
        connection.execute(
            "INSERT OR IGNORE INTO topics (url, feed_id)"
            " SELECT url, id FROM feeds WHERE id = ?",
            (feed_id,),
        )
        connection.execute(
            f"""{_NUMBERS}
            INSERT INTO subscriptions (account_id, topic_id, feed_id, callback_hash,
                callback, secret, algorithm, format, updates, batch, state,
                from_position, lease_end, created_at, exhausted, ended_reason)
            SELECT 1, t.id, t.feed_id, randomblob(16), 'http://c'
                || (number % :hosts) || '.example:' || :port || '/' || :place || '/'
                || number, '', 'sha1', 'json', 'fresh', 0, 'active', 0, NULL, 0, 0, ''
            FROM topics t, numbers WHERE t.feed_id = :feed_id""",  # noqa: S608 - of constants
            {
                "count": overdue.deliveries // len(topics),
                "hosts": overdue.callback_hosts,
                "port": overdue.port,
                "place": place,
                "feed_id": feed_id,
            },
        )


def _write_deliveries(connection: sqlite3.Connection, topics: list[FeedId]) -> None:
    """Leave half of the topics to be split; all deliveries of the others have
    failed."""
    middle = topics[len(topics) // 2]
    connection.execute("DELETE FROM fanouts")
    connection.execute(
        "INSERT INTO fanouts (position, feed_id, after_id, is_next)"
        " SELECT min(position), feed_id, 0, 1 FROM records"
        " WHERE feed_id < ? GROUP BY feed_id",
        (middle,),
    )
    now, off = to_milliseconds(SystemClock().now()), round(OFF.total_seconds() * 1_000)
    connection.execute(
        "INSERT INTO stragglers (subscription_id, feed_id, position, attempts,"
        " next_try, failing_since, last_status, last_error, lease_id, due)"
        " SELECT s.id, s.feed_id, r.position - 1, :attempts, r.at, r.at, 503, '', 0,"
        " :now - abs(random() % :off) FROM subscriptions s"
        " JOIN records r ON r.feed_id = s.feed_id WHERE s.feed_id >= :middle",
        {"attempts": FAILED_BEFORE, "now": now, "off": off, "middle": middle},
    )
    connection.execute("UPDATE stragglers SET next_try = due")
    assert (
        Position(len(topics))
        == connection.execute("SELECT max(position) FROM records").fetchone()[0]
    )
