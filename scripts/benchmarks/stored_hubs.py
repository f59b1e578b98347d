"""Databases with many subscriptions and entries, written as the engine's own rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from protocols.model import Entry, Feed, Text
from protocols.urls import normal_url
from storage.packing import pack
from storage.records import AccountId, Polling, Posting
from storage.sqlite import open_database
from storage.sqlite.feed_access import hash_resource
from storage.sqlite.operations import SqliteStorage
from storage.sqlite.rows import hash_key

PER_FEED = 50
"""Entries, and subscriptions."""
ACCOUNT = AccountId(3)
START = datetime(2026, 3, 2, tzinfo=UTC)

_NOW = int(START.timestamp() * 1000)
_PAGE = 50_000


def topic_of(feed: int) -> str:
    return f"https://{feed}.example/feed"


def callback_of(number: int) -> str:
    """Every callback has ten topics, of feeds that are far from each other."""
    return f"https://s{number // 10}.example/callback"


async def open_stored(path: Path, count: int) -> SqliteStorage:
    """A database with so many entries and as many subscriptions of one account."""
    await (await open_database(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            " PRAGMA cache_size = -524288; BEGIN"
        )
        connection.execute("INSERT INTO accounts (id, name) VALUES (?, 'me')", (3,))
        _put_feeds(connection, count // PER_FEED)
        _put_entries(connection, count)
        _drop_triggers(connection)  # nothing more is written, and each row takes long
        _put_subscriptions(connection, count)
        connection.execute("INSERT INTO listings SELECT * FROM listable")
        _put_listed(connection)
        connection.execute("COMMIT")
    return await open_database(path)


CATEGORIES = 50
_FAILING = 100
"""Of so many feeds one fails."""


def category_of(feed: int) -> str:
    return f"category {feed % CATEGORIES}"


def address_of(feed: int) -> str:
    """In an order of their own: ids are not to be that of URLs."""
    return f"https://{feed * 7919 % 1_000_003:06}.example/feed"


async def open_feeds(path: Path, count: int) -> SqliteStorage:
    """A database with so many feeds in fifty categories; of a hundred one fails."""
    await (await open_database(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN"
        )
        connection.executemany(
            "INSERT INTO feeds (id, url, state, private, section, title, format,"
            " created_at, fetch_url, credentials, polling, resource_hash, condition,"
            " condition_since)"
            " VALUES (?, ?, 'active', 0, ?, ?, 'atom', ?, '', '', ?, ?, ?, ?)",
            map(_listed_feed, range(1, count + 1)),
        )
        connection.execute(
            "INSERT INTO schedule (feed_id, next_fetch, is_active)"
            " SELECT id, created_at, 1 FROM feeds"
        )
        connection.execute("COMMIT")
    return await open_database(path)


def _listed_feed(feed: int) -> tuple[object, ...]:
    is_failing = not feed % _FAILING
    polling = Polling(
        period=900.0,
        last_fetch=START,
        code=500 if is_failing else 200,
        message="Fetched (ring) 200 900 and parsed 0/20 entries",
        error="answered 500" if is_failing else "",
        failures=int(is_failing),
        failing_since=START if is_failing else None,
        posting=Posting(weight=3.5, at=START, since=START, habits=bytes(92)),
    )
    return (
        *(feed, address_of(feed), category_of(feed), f"Feed {feed} of many", _NOW),
        *(msgspec.json.encode(polling), hash_resource(address_of(feed))),
        *("failing" if is_failing else "ok", _NOW + feed),
    )


def _put_feeds(connection: sqlite3.Connection, count: int) -> None:
    head = pack(Feed(title="A feed"))
    polling = b'{"last_fetch":"2026-03-02T00:00:00Z","code":200,"period":900.0}'
    for each in range(1, count + 1):
        url = topic_of(each)
        connection.execute(
            "INSERT INTO feeds (id, url, state, private, section, title, format,"
            " created_at, fetch_url, credentials, polling, resource_hash)"
            " VALUES (?, ?, 'active', 1, '', 'A feed', 'atom', ?, '', '', ?, ?)",
            (each, url, _NOW, polling, hash_resource(url)),
        )
        connection.execute(
            "INSERT INTO schedule (feed_id, next_fetch, is_active) VALUES (?, ?, 1)",
            (each, _NOW),
        )
        connection.execute("INSERT INTO topics VALUES (?, ?, ?, '')", (each, url, each))
        connection.execute("INSERT INTO feed_heads VALUES (?, ?)", (each, head))


def _put_entries(connection: sqlite3.Connection, count: int) -> None:
    text = Text(value="<p>" + "some words of an entry " * 40 + "</p>")
    body = pack(Entry(key="k", id="https://entries.example/1", content=text))
    rows = (
        (1 + each // PER_FEED, _key(each), str(each), _NOW + each, body)
        for each in range(count)
    )
    for page in _pages(rows):
        connection.executemany(
            "INSERT INTO entries (feed_id, key_hash, key, revision, deleted,"
            " sorted_at, last_position, body) VALUES (?, ?, ?, 1, 0, ?, 0, ?)",
            page,
        )


def _key(entry: int) -> bytes:
    return hash_key(str(entry))


def _drop_triggers(connection: sqlite3.Connection) -> None:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in found.fetchall():
        connection.execute(f"DROP TRIGGER {name}")


def _put_subscriptions(connection: sqlite3.Connection, count: int) -> None:
    feeds = count // PER_FEED
    rows = (
        (
            *(ACCOUNT, 1 + each % feeds, 1 + each % feeds),
            *(hash_key(normal_url(callback_of(each))), callback_of(each), _NOW),
        )
        for each in range(count)
    )
    for page in _pages(rows):
        connection.executemany(
            "INSERT INTO subscriptions (account_id, topic_id, feed_id,"
            " callback_hash, callback, secret, algorithm, format, updates, batch,"
            " state, from_position, lease_end, created_at, exhausted, ended_reason)"
            " VALUES (?, ?, ?, ?, ?, '', 'sha1', 'json', 'fresh', 0, 'active', 0,"
            " NULL, ?, 0, '')",
            page,
        )


def _put_listed(connection: sqlite3.Connection) -> None:
    """What the triggers of listings keep."""
    for kind, value in (
        ("", "''"),
        ("format", "format"),
        ("topic_host", "topic_host"),
        ("callback", "callback_hash"),
        ("callback_host", "callback_host"),
    ):
        connection.execute(
            f"INSERT INTO listing_counts SELECT account_id, ?, {value},"  # noqa: S608
            " subscription_id >> 12, count(*) FROM listings GROUP BY 1, 2, 3, 4",
            (kind,),
        )
    connection.execute(
        "INSERT INTO listing_texts (rowid, topic, callback, account)"
        " SELECT subscription_id, topic, callback, char(19968 + (account_id >> 24),"
        " 19968 + (account_id >> 12 & 4095), 19968 + (account_id & 4095))"
        " FROM listings"
    )


def _pages(rows: Iterator[tuple[object, ...]]) -> Iterator[list[tuple[object, ...]]]:
    page: list[tuple[object, ...]] = []
    for row in rows:
        page.append(row)
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page
