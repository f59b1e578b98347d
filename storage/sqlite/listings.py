"""`storage.contract.ListingStore` on SQLite."""

from __future__ import annotations

import re
from collections.abc import Iterator

from protocols.urls import normal_url
from storage.records import AccountId, Bound, ListedSubscription, Listing, ListingSearch
from storage.secrets import SecretBox
from storage.sqlite.feed_statistics import read_statistics
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import hash_key, read_feed, read_subscription
from storage.sqlite.trigrams import quoted, trigrams_of

Condition = tuple[str, tuple[object, ...]]

_FIRST_OF_ACCOUNT = 19_968
"""The first of the characters that stand for an account; see the migration."""
_COLUMNS = 18
"""How many columns ``stored_subscriptions`` has; those of ``stored_feeds`` follow."""


class SqliteListings:
    def __init__(self, readers: Readers, box: SecretBox) -> None:
        self._readers = readers
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
        rows = await self._readers.all(*page_query(account, search, skip, limit))
        total = None
        if has_total:
            total = await self._readers.first(*total_query(account, search))
        return Listing(
            items=tuple(self._read(row) for row in rows),
            total=total[0] if total else 0,
        )

    def _read(self, row: Row) -> ListedSubscription:
        return ListedSubscription(
            subscription=read_subscription(row, self._box),
            feed=read_feed(row[_COLUMNS:]),
            statistics=read_statistics(row[-4:]),
        )


def page_query(
    account: AccountId, search: ListingSearch, skip: int, limit: int
) -> Condition:
    """The query for a page: ids first, in the order of an index, then their rows.

    Skipped rows are counted by blocks of ids if all are listed, or one selection. If
    selections are combined, they are counted in the index.
    """
    found, parameters = _found("l.subscription_id", account, search)
    order = "x.rowid" if _trigrams(account, search) else "l.subscription_id"
    counted = _counted(search) if skip else None
    start, first, offset = "", "", "?"
    if counted is not None:
        start, first = _START, "AND l.subscription_id >= (SELECT first FROM start)"
        offset = "coalesce((SELECT rest FROM start), 0)"
        parameters = (skip, account, *counted, skip, *parameters, limit)
    else:
        parameters = (*parameters, limit, skip)
    sql = (
        start,
        "SELECT v.*, f.*, g.maintained_at, g.popularity, g.porn_rank, g.is_stale"
        " FROM (",
        found,
        first,
        f"ORDER BY {order} LIMIT ? OFFSET {offset}) p"
        " CROSS JOIN stored_subscriptions v ON v.id = p.subscription_id"
        " CROSS JOIN stored_feeds f ON f.id = v.feed_id"
        " LEFT JOIN standings g ON g.feed_id = f.id ORDER BY p.subscription_id",
    )
    return " ".join(sql), parameters


_START = (
    "WITH start AS MATERIALIZED (SELECT block << 12 AS first, ? - passed AS rest FROM"
    " (SELECT block, total, sum(total) OVER (ORDER BY block) - total AS passed"
    "  FROM listing_counts WHERE account_id = ? AND kind = ? AND value = ?)"
    " WHERE passed + total > ? ORDER BY block LIMIT 1)"
)
"""Finds the block that a page begins in, and how many of its rows precede the page."""


def total_query(account: AccountId, search: ListingSearch) -> Condition:
    counted = _counted(search)
    if counted is None:
        return _found("count(*)", account, search)
    return (
        "SELECT coalesce(sum(total), 0) FROM listing_counts"
        " WHERE account_id = ? AND kind = ? AND value = ?",
        (account, *counted),
    )


def _counted(search: ListingSearch) -> tuple[str, object] | None:
    """The column and value that blocks of ids are counted by.

    None unless that is the search's only condition.
    """
    of_one: dict[str, tuple[ListingSearch, object]] = {
        "": (ListingSearch(), ""),
        "format": (ListingSearch(format=search.format), search.format),
        "topic_host": (ListingSearch(topic_host=search.topic_host), search.topic_host),
        "callback": (
            ListingSearch(callback=search.callback),
            hash_key(normal_url(search.callback)) if search.callback else b"",
        ),
        "callback_host": (
            ListingSearch(callback_host=search.callback_host),
            search.callback_host,
        ),
    }
    for kind, (just_that, value) in of_one.items():
        if search == just_that:
            return kind, value
    return None


def _found(columns: str, account: AccountId, search: ListingSearch) -> Condition:
    conditions = [("l.account_id = ?", (account,)), *_conditions(search)]
    joins = []
    if _has_bounds(search):
        joins.append("CROSS JOIN subscriptions s ON s.id = l.subscription_id")
        joins.append("CROSS JOIN feeds f ON f.id = s.feed_id")
        joins.append("LEFT JOIN standings g ON g.feed_id = s.feed_id")
    texts, wanted = "", _trigrams(account, search)
    if wanted:
        texts = "listing_texts x CROSS JOIN"
        conditions.insert(0, ("x.listing_texts MATCH ?", (wanted,)))
        conditions.insert(1, ("l.subscription_id = x.rowid", ()))
    where = " AND ".join(sql for sql, _ in conditions)
    parameters = tuple(each for _, given in conditions for each in given)
    # Otherwise SQLite would choose an index in this order, and read all of it.
    index = "INDEXED BY listings_by_topic" if search.topic and not wanted else ""
    sql = ("SELECT", columns, f"FROM {texts} listings l", index, *joins, "WHERE", where)
    return " ".join(sql), parameters


def _trigrams(account: AccountId, search: ListingSearch) -> str:
    """The full-text query for an account's texts; "" if it would not narrow the search.

    It finds texts that have the trigrams; whether these are consecutive is checked in
    the texts.
    """
    if search.topic or search.callback:
        return ""  # these are fewer still
    parts = {
        "topic": [search.topic_contains.lower()],
        "callback": [
            search.callback_contains.lower(),
            *re.split("[%_]", search.callback_like.lower()),
        ],
    }
    wanted = [
        f"{column} : ({' AND '.join(quoted(each) for each in threes)})"
        for column, texts in parts.items()
        if (threes := trigrams_of(texts))
    ]
    if not wanted:
        return ""
    of_account = "".join(
        chr(_FIRST_OF_ACCOUNT + (account >> bits & 0xFFF)) for bits in (24, 12, 0)
    )
    return " AND ".join([f"account : {quoted(of_account)}", *wanted])


def _conditions(search: ListingSearch) -> Iterator[Condition]:
    if search.format is not None:
        yield "l.format = ?", (search.format.value,)
    if search.topic:
        normal = normal_url(search.topic)
        yield _OF_TOPIC, (search.topic, normal, normal)
    if search.topic_host:
        yield "l.topic_host = ?", (search.topic_host,)
    if search.callback:
        yield "l.callback_hash = ?", (hash_key(normal_url(search.callback)),)
    if search.callback_host:
        yield "l.callback_host = ?", (search.callback_host,)
    if search.topic_contains:
        yield "instr(l.topic, lower(?))", (search.topic_contains,)
    if search.callback_contains:
        yield "instr(l.callback, lower(?))", (search.callback_contains,)
    if search.callback_like:
        yield "l.callback LIKE ?", (search.callback_like,)
    for number, bound in _bounds(search).items():
        yield f"coalesce({number}, 0) {bound.comparison} ?", (bound.number,)


_OF_TOPIC = (
    "l.topic_id IN (SELECT id FROM topics WHERE url IN (?, ?) UNION ALL"
    " SELECT id FROM topics WHERE normal = ? AND normal <> '')"
)


_POLLING = (
    "(SELECT json_extract(nullif(CAST(p.polling AS TEXT), ''), '$.{}')"
    " FROM {} p WHERE p.{} = f.id)"
)
_VELOCITY = _POLLING.format("velocity", "feed_hot", "feed_id")
_BOZO_RANK = _POLLING.format("bozo_rank", "feeds", "id")


def _bounds(search: ListingSearch) -> dict[str, Bound]:
    """Conditions on numbers of a feed, in its polling state or its statistics.

    A number that is missing there counts as 0.
    """
    bounds = {
        _VELOCITY: search.velocity,
        "g.popularity": search.popularity,
        _BOZO_RANK: search.bozo_rank,
        "g.porn_rank": search.porn_rank,
    }
    return {number: bound for number, bound in bounds.items() if bound is not None}


def _has_bounds(search: ListingSearch) -> bool:
    return bool(_bounds(search))
