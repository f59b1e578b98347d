"""`storage.contract.ListingStore` on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from protocols.urls import normal_url
from storage.postgres.connections import Connections, Row
from storage.postgres.rare_parts import rarest, word_parts
from storage.records import AccountId, Bound, ListedSubscription, Listing, ListingSearch
from storage.secrets import SecretBox
from storage.sqlite.feed_statistics import read_statistics
from storage.sqlite.rows import hash_key, read_feed, read_subscription

_COLUMNS: Final = 18
"""How many columns ``stored_subscriptions`` has; those of ``stored_feeds`` follow."""
_OF_TOPIC: Final = (
    "l.topic_id = ANY(ARRAY("
    "SELECT id FROM topics WHERE url IN (%(topic)s, %(normal)s)"
    " UNION ALL SELECT id FROM topics WHERE normal = %(normal)s AND normal <> ''))"
)
_START: Final = """
WITH start AS MATERIALIZED (
    SELECT block << 12 AS first, %(skip)s - passed AS rest FROM (
        SELECT block, total,
            (sum(total) OVER (ORDER BY block) - total)::bigint AS passed
        FROM listing_counts WHERE account_id = %(account)s AND kind = %(kind)s
            AND value = %(value)s) b
    WHERE passed + total > %(skip)s ORDER BY block LIMIT 1)
"""
"""Finds the block that a page begins in, and how many of its rows precede the page."""


_SAMPLE: Final = """
SELECT l.topic, l.callback
FROM (SELECT min(subscription_id) AS first, max(subscription_id) AS last
    FROM listings WHERE account_id = %(account)s) e,
    generate_series(0, 63) n,
    LATERAL (SELECT topic, callback FROM listings WHERE account_id = %(account)s
        AND subscription_id >= e.first + (e.last - e.first) * n / 64
        ORDER BY subscription_id LIMIT 1) l
"""
"""Topics and callbacks of an account, from all over its list."""


class PostgresListings:
    def __init__(self, connections: Connections, box: SecretBox) -> None:
        self._connections = connections
        self._box = box

    async def page(
        self,
        account: AccountId,
        search: ListingSearch,
        *,
        skip: int,
        limit: int,
        has_total: bool = True,
    ) -> Listing:
        rare = await self._rare_parts(account, search)
        rows = await self._connections.all(
            *_page_query(account, search, rare, skip, limit)
        )
        total = None
        if has_total:
            total = await self._connections.first(*_total_query(account, search, rare))
        return Listing(
            items=tuple(self._read(row) for row in rows),
            total=total[0] if total else 0,
        )

    async def _rare_parts(
        self, account: AccountId, search: ListingSearch
    ) -> dict[str, Sequence[str]]:
        """Parts of the columns topic and callback that are sought, and that few of the
        account have."""
        parts = {
            "topic": word_parts([search.topic_contains]),
            "callback": word_parts(
                [search.callback_contains, *re.split("[%_]", search.callback_like)]
            ),
        }
        if not any(parts.values()):
            return {}
        rows = await self._connections.all(_SAMPLE, {"account": account})
        samples = {"topic": [row[0] for row in rows], "callback": [r[1] for r in rows]}
        return {
            column: rarest(sought, samples[column]) for column, sought in parts.items()
        }

    def _read(self, row: Row) -> ListedSubscription:
        return ListedSubscription(
            subscription=read_subscription(row, self._box),
            feed=read_feed(row[_COLUMNS:]),
            statistics=read_statistics(row[-4:]),
        )


def _page_query(
    account: AccountId,
    search: ListingSearch,
    rare: Mapping[str, Sequence[str]],
    skip: int,
    limit: int,
) -> tuple[str, dict[str, Any]]:
    """The query for a page: ids first, in the order of an index, then their rows.

    Skipped rows are counted by blocks of ids if all are listed, or one selection. If
    selections are combined, they are counted in the index.
    """
    found, parameters = _found("l.subscription_id", account, search, rare)
    counted = _counted(search) if skip else None
    start, first, offset = "", "", "%(skip)s"
    if counted is not None:
        start, first = _START, "AND l.subscription_id >= (SELECT first FROM start)"
        offset = "coalesce((SELECT rest FROM start), 0)"
        parameters |= {"kind": counted[0], "value": counted[1]}
    sql = (
        f"{start} SELECT v.*, f.*, g.maintained_at, g.popularity, g.porn_rank,"
        f" g.is_stale FROM ({found} {first} ORDER BY l.subscription_id"
        f" LIMIT %(limit)s OFFSET {offset}) p"
        " JOIN stored_subscriptions v ON v.id = p.subscription_id"
        " JOIN stored_feeds f ON f.id = v.feed_id"
        " LEFT JOIN feed_statistics g ON g.feed_id = f.id ORDER BY p.subscription_id"
    )
    return sql, {**parameters, "skip": skip, "limit": limit}


def _total_query(
    account: AccountId, search: ListingSearch, rare: Mapping[str, Sequence[str]]
) -> tuple[str, dict[str, Any]]:
    counted = _counted(search)
    if counted is None:
        return _found("count(*)", account, search, rare)
    return (
        "SELECT coalesce(sum(total), 0)::bigint FROM listing_counts"
        " WHERE account_id = %(account)s AND kind = %(kind)s AND value = %(value)s",
        {"account": account, "kind": counted[0], "value": counted[1]},
    )


def _counted(search: ListingSearch) -> tuple[str, bytes] | None:
    """The column and value that blocks of ids are counted by.

    None unless that is the search's only condition.
    """
    format = search.format
    of_one = {
        "": (ListingSearch(), b""),
        "format": (ListingSearch(format=format), (format or "").encode()),
        "topic_host": (
            ListingSearch(topic_host=search.topic_host),
            search.topic_host.encode(),
        ),
        "callback": (
            ListingSearch(callback=search.callback),
            hash_key(normal_url(search.callback)) if search.callback else b"",
        ),
        "callback_host": (
            ListingSearch(callback_host=search.callback_host),
            search.callback_host.encode(),
        ),
    }
    for kind, (just_that, value) in of_one.items():
        if search == just_that:
            return kind, value
    return None


def _found(
    columns: str,
    account: AccountId,
    search: ListingSearch,
    rare: Mapping[str, Sequence[str]],
) -> tuple[str, dict[str, Any]]:
    bounds = _bounds(search)
    joins = ""
    if bounds:
        joins = (
            " JOIN subscriptions s ON s.id = l.subscription_id"
            " JOIN feeds f ON f.id = s.feed_id JOIN feed_hot h ON h.feed_id = f.id"
            " LEFT JOIN feed_statistics g ON g.feed_id = s.feed_id"
        )
    parameters: dict[str, Any] = {
        "account": account,
        "format": search.format and search.format.value,
        "topic": search.topic,
        "normal": normal_url(search.topic) if search.topic else "",
        "topic_host": search.topic_host,
        "callback": hash_key(normal_url(search.callback)),
        "callback_host": search.callback_host,
        "in_topic": search.topic_contains,
        "in_callback": search.callback_contains,
        "like": search.callback_like,
        "pattern": search.callback_like.replace("\\", r"\\").lower(),
    }
    conditions = ["l.account_id = %(account)s", *_conditions(search)]
    for column, parts in rare.items():
        for number, part in enumerate(parts):
            conditions.append(f"l.{column} LIKE %({column}_{number})s")
            parameters[f"{column}_{number}"] = f"%{part}%"
    for number, (name, bound) in enumerate(bounds.items()):
        conditions.append(f"coalesce({name}, 0) {bound.comparison} %(bound_{number})s")
        parameters[f"bound_{number}"] = float(bound.number)
    sql = f"SELECT {columns} FROM listings l{joins} WHERE {' AND '.join(conditions)}"
    return sql, parameters


def _conditions(search: ListingSearch) -> Iterator[str]:
    if search.format is not None:
        yield "l.format = %(format)s"
    if search.topic:
        yield _OF_TOPIC
    if search.topic_host:
        yield "l.topic_host = %(topic_host)s"
    if search.callback:
        yield "l.callback_hash = %(callback)s"
    if search.callback_host:
        yield "l.callback_host = %(callback_host)s"
    if search.topic_contains:
        yield "strpos(l.topic, lower(%(in_topic)s)) > 0"
    if search.callback_contains:
        yield "strpos(l.callback, lower(%(in_callback)s)) > 0"
    if search.callback_like:
        yield "l.callback || '' LIKE %(pattern)s"  # the index is for rare parts


def _bounds(search: ListingSearch) -> dict[str, Bound]:
    """Conditions on numbers of a feed, in its polling state or its statistics.

    A number that is missing there counts as 0.
    """
    bounds = {
        "h.velocity": search.velocity,
        "g.popularity": search.popularity,
        "polling_number(f.polling, 'bozo_rank')": search.bozo_rank,
        "g.porn_rank": search.porn_rank,
    }
    return {number: bound for number, bound in bounds.items() if bound is not None}
