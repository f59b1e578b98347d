"""Which index the subscriptions of a callback are found by, and the feed of a topic."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from storage.records import AccountId, SubscriptionId
from storage.sqlite.feed_access import OF_RESOURCE, may_read, resource_keys
from storage.sqlite.schema import run_pending
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
