"""`storage.interface.ListingStore` on SQLite."""

from __future__ import annotations

from collections.abc import Iterator

from protocols.urls import normal_url
from storage.records import AccountId, Bound, Listed, Listing, ListingSearch
from storage.secrets import SecretBox

from .feed_rows import read_feed
from .log_rows import hash_key
from .readers import Readers, Row
from .standings import read_standing
from .subscription_rows import read_subscription

Condition = tuple[str, tuple[object, ...]]

_COLUMNS = 16
"""Of ``stored_subscriptions``; those of ``stored_feeds`` follow."""


class SqliteListings:
    def __init__(self, readers: Readers, box: SecretBox) -> None:
        self._readers = readers
        self._box = box

    async def page(
        self, account: AccountId, search: ListingSearch, *, skip: int, limit: int
    ) -> Listing:
        rows = await self._readers.all(*page_query(account, search, skip, limit))
        total = await self._readers.first(*total_query(account, search))
        return Listing(
            items=tuple(self._read(row) for row in rows),
            total=total[0] if total else 0,
        )

    def _read(self, row: Row) -> Listed:
        return Listed(
            subscription=read_subscription(row, self._box),
            feed=read_feed(row[_COLUMNS:]),
            standing=read_standing(row[-4:]),
        )


def page_query(
    account: AccountId, search: ListingSearch, skip: int, limit: int
) -> Condition:
    """Ids first, so that what is skipped is counted in an index."""
    found, parameters = _found("l.subscription_id", account, search)
    sql = (
        "SELECT v.*, f.*, g.maintained_at, g.popularity, g.porn_rank, g.is_stale"
        " FROM (",
        found,
        "ORDER BY l.subscription_id LIMIT ? OFFSET ?) p"
        " CROSS JOIN stored_subscriptions v ON v.id = p.subscription_id"
        " CROSS JOIN stored_feeds f ON f.id = v.feed_id"
        " LEFT JOIN standings g ON g.feed_id = f.id ORDER BY p.subscription_id",
    )
    return " ".join(sql), (*parameters, limit, skip)


def total_query(account: AccountId, search: ListingSearch) -> Condition:
    if search == ListingSearch():
        return (
            "SELECT coalesce(sum(total), 0) FROM listing_totals WHERE account_id = ?",
            (account,),
        )
    if search == ListingSearch(format=search.format):
        return (
            "SELECT coalesce(sum(total), 0) FROM listing_totals"
            " WHERE account_id = ? AND format = ?",
            (account, search.format),
        )
    return _found("count(*)", account, search)


def _found(columns: str, account: AccountId, search: ListingSearch) -> Condition:
    conditions = [("l.account_id = ?", (account,)), *_conditions(search)]
    joins = []
    if search.callback_contains or search.callback_like or _has_bounds(search):
        joins.append("CROSS JOIN subscriptions s ON s.id = l.subscription_id")
    if search.topic_contains:
        joins.append("CROSS JOIN topics t ON t.id = l.topic_id")
    if _has_bounds(search):
        joins.append("CROSS JOIN feeds f ON f.id = s.feed_id")
        joins.append("LEFT JOIN standings g ON g.feed_id = s.feed_id")
    where = " AND ".join(sql for sql, _ in conditions)
    parameters = tuple(each for _, given in conditions for each in given)
    # Without, an index that gives the order would seem better, and reads them all.
    index = "INDEXED BY listings_by_topic" if search.topic else ""
    sql = ("SELECT", columns, "FROM listings l", index, *joins, "WHERE", where)
    return " ".join(sql), parameters


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
        yield "instr(lower(t.url), ?)", (search.topic_contains.lower(),)
    if search.callback_contains:
        yield "instr(lower(s.callback), ?)", (search.callback_contains.lower(),)
    if search.callback_like:
        yield "s.callback LIKE ?", (search.callback_like,)
    for number, bound in _bounds(search).items():
        yield f"coalesce({number}, 0) {bound.comparison} ?", (bound.number,)


_OF_TOPIC = (
    "l.topic_id IN (SELECT id FROM topics WHERE url IN (?, ?) UNION ALL"
    " SELECT id FROM topics WHERE normal = ? AND normal <> '')"
)


_POLLING = "json_extract(nullif(CAST(f.polling AS TEXT), ''), '$.{}')"


def _bounds(search: ListingSearch) -> dict[str, Bound]:
    """By where a feed's number is: in its polling state, or its standing.

    What those have not counts as 0.
    """
    bounds = {
        _POLLING.format("velocity"): search.velocity,
        "g.popularity": search.popularity,
        _POLLING.format("bozo_rank"): search.bozo_rank,
        "g.porn_rank": search.porn_rank,
    }
    return {number: bound for number, bound in bounds.items() if bound is not None}


def _has_bounds(search: ListingSearch) -> bool:
    return bool(_bounds(search))
