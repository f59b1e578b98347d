"""Which index the subscriptions of a callback are found by, the feed of a topic, and
feeds in the order of their subscribers."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from storage.records import (
    ENDED_SUBSCRIPTIONS,
    AccountId,
    FeedFilter,
    FeedHealth,
    FeedId,
    FeedSort,
    ListPlace,
    SubscriptionFilter,
    SubscriptionId,
    SubscriptionSort,
)
from storage.sqlite.feed_access import OF_RESOURCE, may_read, resource_keys
from storage.sqlite.schema import run_pending
from storage.sqlite.selections import feed_query, subscription_query
from storage.sqlite.subscriptions import page_query


@pytest.mark.parametrize("account", [None, AccountId(7)])
@pytest.mark.parametrize("topic", [None, "https://example.org/feed.xml"])
def test_a_callbacks_subscriptions_are_found_by_it_and_not_among_the_accounts(
    account: AccountId | None, topic: str | None
) -> None:
    query = page_query(SubscriptionId(0), 20, account, topic, "https://you.example/")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {query[0]}", query[1])
        told = [text for *_, text in rows.fetchall()]

    assert any("s USING INDEX subscriptions_by_key (callback" in each for each in told)
    assert not any(each.startswith("SCAN") for each in told)


@pytest.mark.parametrize("where", ["", " AND " + may_read("?3")])
def test_the_feed_of_a_topic_is_found_without_looking_at_others(where: str) -> None:
    query = f"SELECT v.*{OF_RESOURCE.format(where=where)} LIMIT 1"
    keys = (*resource_keys("https://example.org/feed.xml"), *([7] if where else []))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {query}", keys)
        assert not [text for *_, text in rows.fetchall() if text.startswith("SCAN")]


@pytest.mark.parametrize(
    ("category", "index"),
    [(None, "by_health (health=?"), ("news", "by_section (health=? AND section=?")],
)
def test_feeds_in_the_order_of_subscribers_are_read_from_an_index(
    category: str | None, index: str
) -> None:
    wanted = FeedFilter(health=(FeedHealth.OK,), category=category)
    place = ListPlace(9, 9)
    query = feed_query(wanted, FeedSort.LAST_SUBSCRIBERS, place, 50, None)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {query[0]}", query[1])
        told = [text for *_, text in rows.fetchall()]

    of_index = f"SEARCH feed_audience USING COVERING INDEX audience_{index}"
    for behind in (" AND subscribers=? AND rowid<?)", " AND subscribers<?)"):
        assert of_index + behind in told
    assert "SEARCH f USING INTEGER PRIMARY KEY (rowid=?)" in told


def test_ended_subscriptions_of_a_feed_are_not_looked_for_among_active_ones() -> None:
    wanted = SubscriptionFilter(feed_id=FeedId(1), health=ENDED_SUBSCRIPTIONS)
    query = subscription_query(wanted, SubscriptionSort.LAST_ID, None, 10, [])
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        run_pending(connection)
        rows = connection.execute(f"EXPLAIN QUERY PLAN {query[0]}", query[1])
        told = [text for *_, text in rows.fetchall() if "subscriptions" in text]

    of_feed = "SEARCH subscriptions USING INDEX subscriptions_by_feed"
    assert told == [f"{of_feed} (feed_id=? AND state=?)"] * 2
