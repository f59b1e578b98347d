"""Databases with much of everything that pages list, written as the engine's own rows.

One feed, its entry and its record are made by the engine; all others are copies.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from hub.runtime.clock import SystemClock
from protocols.urls import normal_url
from scripts.benchmarks.stored_hubs import address_of, category_of
from scripts.benchmarks.topics import news
from storage.records import NewFeed, Polling
from storage.sqlite import open_database
from storage.sqlite.feed_access import hash_resource
from storage.sqlite.operations import SqliteStorage
from storage.sqlite.rows import hash_key

ACCOUNTS: Final = 10
"""They have the subscriptions in turn."""
TOKENS: Final = 1_000
"""At most, of the accounts in turn."""
OF_FAILING: Final = 10
"""Of so many feeds, and of so many subscriptions, one fails."""
_DAY: Final = 86_400_000
MEMBERS: Final = 10
"""Callbacks of one row of the history of deliveries."""
_OUTCOME: Final = (200).to_bytes(2, "big") + (42).to_bytes(2, "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLengths:
    """How much there is: ``deliveries`` are failed requests, and records of the audit
    trail; a tenth as many were given up."""

    feeds: int
    subscriptions: int
    deliveries: int


async def open_lists(path: Path, counts: ListLengths) -> SqliteStorage:
    """The first of each has the id 1; all that happened did so within the last day."""
    now = SystemClock().now()
    storage = await open_database(path)
    first, _is_new = await storage.feeds.add(NewFeed(url=address_of(1)), now)
    await storage.log.commit(news(first.id, "words of an entry " * 20))
    await storage.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            " PRAGMA cache_size = -524288; BEGIN"
        )
        at = int(now.timestamp() * 1_000)
        _put_feeds(connection, counts.feeds, now)
        triggers = _drop_triggers(connection)  # nothing below needs them, and they last
        _copy_entries(connection)
        _put_accounts(connection, min(TOKENS, counts.subscriptions), at)
        _put_subscriptions(connection, counts, at)
        _put_deliveries(connection, counts, at)
        _put_failures(connection, counts, at)
        _put_audit(connection, counts, at)
        for sql in triggers:
            connection.execute(sql)
        connection.execute("COMMIT")
    return await open_database(path)


def _insert(
    connection: sqlite3.Connection,
    table: str,
    columns: str,
    rows: Iterable[tuple[object, ...]],
) -> None:
    marks = ", ".join("?" * len(columns.split(",")))
    sql = f"INSERT INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608 - ours
    connection.executemany(sql, rows)


def _put_feeds(connection: sqlite3.Connection, count: int, now: datetime) -> None:
    at = int(now.timestamp() * 1_000)
    _insert(
        connection,
        "feeds",
        "id, url, state, private, section, title, format, created_at, fetch_url,"
        " credentials, polling, resource_hash, condition, condition_since",
        (
            _feed(each, now - timedelta(days=_scattered(each, count) / (count + 1)))
            for each in range(2, count + 1)
        ),
    )
    connection.execute(
        "INSERT INTO schedule (feed_id, next_fetch, is_active)"
        " SELECT id, ?, 1 FROM feeds WHERE id > 1",
        (at + _DAY,),
    )
    connection.execute(
        "INSERT INTO topics SELECT id, url, id, '' FROM feeds WHERE id > 1"
    )


def _feed(feed: int, since: datetime) -> tuple[object, ...]:
    is_failing = not feed % OF_FAILING
    polling = Polling(
        period=900.0,
        last_fetch=since,
        code=500 if is_failing else 200,
        message="Fetched (ring) 200 900 and parsed 0/20 entries",
        error="answered 500" if is_failing else "",
        failures=int(is_failing),
        failing_since=since if is_failing else None,
    )
    url, at = address_of(feed), int(since.timestamp() * 1_000)
    return (
        *(feed, url, "active", 0, category_of(feed), f"Feed {feed} of many", "atom"),
        *(at, url, "", msgspec.json.encode(polling), hash_resource(url)),
        *("failing" if is_failing else "ok", at),
    )


def _scattered(number: int, count: int) -> int:
    """Below ``count``, another for each: ids are in no order of time."""
    return number * 7_919 % count


def _drop_triggers(connection: sqlite3.Connection) -> list[str]:
    """What makes them again."""
    found = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for name, _ in found:
        connection.execute(f"DROP TRIGGER {name}")
    return [sql for _, sql in found]


def _copy_entries(connection: sqlite3.Connection) -> None:
    """Each feed has the entry, in a record of its own."""
    for sql in (
        "INSERT INTO feed_heads SELECT f.id, h.head FROM feeds f, feed_heads h"
        " WHERE f.id > 1 AND h.feed_id = 1",
        "INSERT INTO entries (id, feed_id, key_hash, key, revision, deleted, sorted_at,"
        " last_position, body) SELECT f.id, f.id, e.key_hash, e.key, 1, 0,"
        " e.sorted_at - f.id * 100, f.id, e.body"
        " FROM feeds f, entries e WHERE f.id > 1 AND e.id = 1",
        "INSERT INTO records (position, at, feed_id, kind, any_fresh, status, refs)"
        " SELECT f.id, r.at, f.id, r.kind, r.any_fresh, r.status, r.refs"
        " FROM feeds f, records r WHERE f.id > 1 AND r.position = 1",
        "UPDATE meta SET head = (SELECT max(position) FROM records)",
    ):
        connection.execute(sql)


def _put_accounts(connection: sqlite3.Connection, tokens: int, at: int) -> None:
    connection.executemany(
        "INSERT INTO accounts (id, name) VALUES (?, ?)",
        ((_account(each), f"account-{each}") for each in range(ACCOUNTS)),
    )
    _insert(
        connection,
        "tokens",
        "account_id, digest, rights, label, created_at, used_at",
        (
            (_account(each), hash_key(str(each)), "subscribe list", f"{each}", at, at)
            for each in range(tokens)
        ),
    )


def _account(number: int) -> int:
    """Those below ten are the hub's own."""
    return 10 + number % ACCOUNTS


def _put_subscriptions(
    connection: sqlite3.Connection, counts: ListLengths, at: int
) -> None:
    rows = (
        _subscription(each, counts, at) for each in range(1, counts.subscriptions + 1)
    )
    _insert(
        connection,
        "subscriptions",
        "id, account_id, topic_id, feed_id, callback_hash, callback, secret,"
        " algorithm, format, updates, batch, state, from_position, created_at,"
        " exhausted, ended_reason, condition, condition_since, failure",
        rows,
    )
    connection.execute(
        "UPDATE feed_audience SET subscribers = (SELECT count(*) FROM subscriptions s"
        " WHERE s.feed_id = feed_audience.feed_id)"
    )
    connection.execute(
        "INSERT INTO subscription_counts SELECT account_id, health, count(*)"
        " FROM subscriptions GROUP BY 1, 2"
    )
    connection.execute("INSERT INTO listings SELECT * FROM listable")
    _put_listed(connection)


def _subscription(number: int, counts: ListLengths, at: int) -> tuple[object, ...]:
    feed = 1 + number % counts.feeds
    callback = f"https://s{number // 10}.example/callback/{number}"
    order = _scattered(number, counts.subscriptions)
    since = at - _DAY * order // (counts.subscriptions + 1)
    is_failing = not number % OF_FAILING
    return (
        *(
            number,
            _account(number),
            feed,
            feed,
            hash_key(normal_url(callback)),
            callback,
        ),
        *("", "sha1", "json", "fresh", 0, "active", 0, since, 0, ""),
        *("failing" if is_failing else "ok", since),
        "answered 500" if is_failing else "",
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


def _put_deliveries(
    connection: sqlite3.Connection, counts: ListLengths, at: int
) -> None:
    """What was answered 200: rows of ten callbacks of a feed."""
    rows = (
        _history(each, counts, at)
        for each in range(1, counts.deliveries // MEMBERS + 1)
    )
    _insert(
        connection,
        "deliveries",
        "feed_id, position, at, first_id, last_id, members, outcomes",
        rows,
    )


def _history(number: int, counts: ListLengths, at: int) -> tuple[object, ...]:
    feed = 1 + number % counts.feeds
    members = [*_subscribers(feed, counts)][:MEMBERS] or [feed]
    outcomes = _OUTCOME * len(members)
    written = msgspec.json.encode(members).decode()
    return (
        feed,
        feed,
        at - _DAY * number // counts.deliveries,
        members[0],
        members[-1],
        written,
        outcomes,
    )


def _subscribers(feed: int, counts: ListLengths) -> Iterator[int]:
    return iter(range(feed - 1 or counts.feeds, counts.subscriptions + 1, counts.feeds))


def _put_failures(connection: sqlite3.Connection, counts: ListLengths, at: int) -> None:
    """Requests that failed, what was given up, and what is tried again."""
    numbers = range(1, counts.deliveries + 1)
    _insert(
        connection,
        "attempts",
        "subscription_id, position, at, status, milliseconds, error, host",
        (_attempt(each, counts, at) for each in numbers),
    )
    _insert(
        connection,
        "dead",
        "subscription_id, first, last, reason, at",
        (_dead_letter(each, counts, at) for each in range(counts.deliveries // 10)),
    )
    failing = range(OF_FAILING, counts.subscriptions + 1, OF_FAILING)
    _insert(
        connection,
        "stragglers",
        "subscription_id, feed_id, position, attempts, next_try, failing_since,"
        " last_status, last_error, lease_id, due",
        (
            (
                *(each, 1 + each % counts.feeds, 0, 3, at + _DAY, at - each),
                *(500, "answered 500", 0, at + _DAY),
            )
            for each in failing
        ),
    )


def _attempt(number: int, counts: ListLengths, at: int) -> tuple[object, ...]:
    subscription = 1 + _scattered(number, counts.subscriptions)
    feed = 1 + subscription % counts.feeds
    host = f"s{subscription // 10}.example"
    at -= _DAY - _DAY * number // (counts.deliveries + 1)
    is_timeout = not number % 3
    status, error = (0, "no answer") if is_timeout else (500, "answered 500")
    return subscription, feed, at, status, 120, error, host


def _dead_letter(number: int, counts: ListLengths, at: int) -> tuple[object, ...]:
    subscription = 1 + number % counts.subscriptions
    record = 1 + subscription % counts.feeds
    return subscription, record, record, "answered 500", at


def _put_audit(connection: sqlite3.Connection, counts: ListLengths, at: int) -> None:
    """As many records of the audit trail as failed requests."""
    _insert(
        connection,
        "audit",
        "account_id, at, token_id, is_admin, session, address, source, operation,"
        " target, target_id, target_name, status, detail",
        (_done(each, counts, at) for each in range(1, counts.deliveries + 1)),
    )


def _done(number: int, counts: ListLengths, at: int) -> tuple[object, ...]:
    feed, is_refused = 1 + number % counts.feeds, not number % OF_FAILING
    return (
        *(_account(number), at - _DAY + _DAY * number // (counts.deliveries + 1)),
        *(1 + number % TOKENS, 0, "", "192.0.2.1", "api"),
        *("remove_feed" if is_refused else "edit_feed", "feed", feed),
        *(address_of(feed), 403 if is_refused else 200, "category: news"),
    )
