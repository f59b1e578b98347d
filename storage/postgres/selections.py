"""`FeedSelectionStore` and `SubscriptionSelectionStore` on PostgreSQL.

A list is read in the order of an index: the first rows of each health after the place,
and of these the first of all. A filter that selects few rows by itself, a part of a
text or a time, is looked up first, and then only these few are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from protocols.urls import normal_url
from storage.postgres.connections import ASKED, Connections, Row
from storage.postgres.rare_parts import feed_condition
from storage.postgres.subscriptions import OF_TOPIC, topic_keys
from storage.records import (
    LISTED_HEALTH,
    LISTED_SUBSCRIPTIONS,
    FeedCount,
    FeedFilter,
    FeedHealth,
    FeedPage,
    FeedSort,
    ListPlace,
    ListSort,
    SelectedSubscription,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionPage,
    SubscriptionSort,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.rows import hash_key, read_feed, read_subscription
from storage.sqlite.selections import (
    CONDITION,
    CONDITION_COLUMNS,
    FEED_KEYS,
    MOST_COUNTED,
    MOST_SEARCHED,
    MOST_SORTED,
    PARTS_SEARCHED,
    SUBSCRIPTION_KEYS,
    read_condition,
)
from storage.sqlite.trigrams import folded

Query = tuple[str, dict[str, object]]
"""SQL and its parameters."""

# --- ranges of an index ---


def _behind(key: str, after: ListPlace | None, sort: ListSort) -> str:
    """SQL for the rows after a place."""
    sign = "<" if sort.is_falling else ">"
    if after is None:
        return ""
    if after.key is None:
        return f" AND id {sign} %(after_id)s"
    return f" AND ({key}, id) {sign} (%(after_key)s, %(after_id)s)"


def _order(key: str, sort: ListSort) -> str:
    direction = " DESC" if sort.is_falling else ""
    return f"ORDER BY {key}{direction}, id{direction}"


def _merged(ranges: Iterable[str]) -> str:
    return " UNION ALL ".join(f"({each})" for each in ranges)


def _place_parameters(after: ListPlace | None) -> dict[str, object]:
    return {
        "after_id": after.id if after else 0,
        "after_key": after.key if after else None,
    }


def _times(wanted: FeedFilter | SubscriptionFilter) -> Iterator[str]:
    if wanted.since is not None:
        yield " AND health_since <= %(since)s"
    if wanted.after is not None:
        yield " AND health_since > %(after)s"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(f"'{each}'" for each in values)


# --- feeds ---

_FEEDS: Final = (
    "(SELECT f.*, a.subscribers FROM feeds f JOIN feed_audience a ON a.feed_id = f.id)"
)
_AT_HOST: Final = (
    " AND strpos(url, '://')"
    " IN (strpos(fold(url), %(host_alone)s), strpos(fold(url), %(host_with_port)s))"
)
"""A host that occurs later in the URL, such as in its query, does not count."""


class PostgresFeedSelections:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def page(
        self,
        wanted: FeedFilter,
        sort: FeedSort,
        *,
        after: ListPlace | None,
        limit: int,
        has_total: bool = True,
    ) -> FeedPage:
        ids = await self._few(wanted, sort)
        rows = await self._connections.all(
            *_feed_query(wanted, sort, after, limit, ids)
        )
        feeds = tuple(read_feed(row) for row in rows)
        is_last = len(feeds) < limit
        return FeedPage(
            feeds=feeds,
            next=None if is_last else sort.place_of(feeds[-1], rows[-1][-1]),
            total=await self._total(wanted, ids) if has_total else None,
        )

    async def _total(self, wanted: FeedFilter, ids: list[int] | None) -> int | None:
        if ids is not None:
            return await self._count(wanted, ids, None)
        of_group = await self._count_of_group(wanted)
        if wanted.is_of_group:
            return of_group
        if (wanted.text or wanted.has_host_or_format) and of_group > MOST_SORTED:
            return None
        found = await self.count(wanted, MOST_COUNTED + 1)
        return None if found > MOST_COUNTED else found

    async def count(self, wanted: FeedFilter, most: int) -> int:
        return await self._count(wanted, wanted.ids or None, most)

    async def _count(
        self, wanted: FeedFilter, ids: Sequence[int] | None, most: int | None
    ) -> int:
        found = _wanted_feeds(wanted, ids, wanted.health or LISTED_HEALTH)
        row = await self._connections.first(
            f"SELECT count(*) FROM (SELECT 1 FROM feeds WHERE {found}"
            " LIMIT %(limit)s) n",
            _feed_parameters(wanted, None, most, ids),
        )
        return row[0] if row else 0

    async def _count_of_group(self, wanted: FeedFilter) -> int:
        """Count the feeds of the wanted health and category, and ignore the rest."""
        among = wanted.health or LISTED_HEALTH
        return sum(
            each.total
            for each in await self.counts()
            if each.health in among and wanted.category in (None, each.category)
        )

    async def counts(self) -> list[FeedCount]:
        rows = await self._connections.all(
            "SELECT health, category, sum(total)::bigint FROM feed_counts"
            " GROUP BY health, category HAVING sum(total) > 0"
            ' ORDER BY health COLLATE "C", category COLLATE "C"'
        )
        return [FeedCount(FeedHealth(health), *rest) for health, *rest in rows]

    async def _few(self, wanted: FeedFilter, sort: FeedSort) -> list[int] | None:
        """A few feeds that include all that are wanted; None if there are too many."""
        if wanted.ids:
            return list(wanted.ids)
        if text := wanted.text or wanted.host:
            found = await feed_condition(self._connections, folded(text))
            if (ids := await self._up_to_few(*found)) is not None:
                return ids
        parameters = _feed_parameters(wanted, None, None, None)
        for condition in _narrowing(wanted, sort):
            if (ids := await self._up_to_few(condition, parameters)) is not None:
                return ids
        return None

    async def _up_to_few(
        self, condition: str, parameters: Mapping[str, object]
    ) -> list[int] | None:
        rows = await self._connections.all(
            f"SELECT id FROM feeds WHERE {condition} LIMIT {MOST_SORTED + 1}",
            parameters,
        )
        return None if len(rows) > MOST_SORTED else [feed_id for (feed_id,) in rows]


def _feed_query(
    wanted: FeedFilter,
    sort: FeedSort,
    after: ListPlace | None,
    limit: int,
    ids: Sequence[int] | None,
) -> Query:
    """The query of a page; ``ids``: feeds that include all that are wanted.

    The limit is no parameter: the plan for any limit looks so dear on a large table
    that the server would plan each page anew.
    """
    key = FEED_KEYS[sort.rising]
    source = _FEEDS if key == "subscribers" else "feeds"
    health = wanted.health or LISTED_HEALTH
    groups = [health] if ids is not None else [(each,) for each in health]
    behind = _behind(key, after, sort)
    found = _merged(
        f"SELECT id, {key} AS key FROM {source} f"
        f" WHERE {_wanted_feeds(wanted, ids, group)}{behind} {_order(key, sort)}"
        f" LIMIT {limit}"
        for group in groups
    )
    direction = " DESC" if sort.is_falling else ""
    sql = (
        f"SELECT v.*, v.subscribers FROM (SELECT id, key FROM ({found}) m"
        f" {_order('key', sort)} LIMIT {limit}) p JOIN stored_feeds v ON v.id = p.id"
        f" ORDER BY p.key{direction}, p.id{direction}"
    )
    return sql, _feed_parameters(wanted, after, None, ids)


def _wanted_feeds(
    wanted: FeedFilter, ids: Sequence[int] | None, health: Iterable[str]
) -> str:
    conditions = [f"health IN ({_listed(health)})", *_times(wanted)]
    if ids is not None:
        conditions.append(" AND id = ANY(%(ids)s::bigint[])")
    if wanted.category is not None:
        conditions.append(" AND category = %(category)s")
    if wanted.text:
        conditions.append(
            " AND (strpos(fold(url), %(text)s) > 0"
            " OR strpos(fold(title), %(text)s) > 0)"
        )
    if wanted.host:
        conditions.append(_AT_HOST)
    if wanted.format:
        conditions.append(" AND format = %(format)s")
    return "".join(conditions)


def _feed_parameters(
    wanted: FeedFilter,
    after: ListPlace | None,
    limit: int | None,
    ids: Sequence[int] | None,
) -> dict[str, object]:
    return {
        "category": wanted.category,
        "text": folded(wanted.text),
        "host_alone": f"://{wanted.host}/",
        "host_with_port": f"://{wanted.host}:",
        "format": wanted.format,
        "since": wanted.since,
        "after": wanted.after,
        "limit": limit,
        "ids": list(ids or ()),
        **_place_parameters(after),
    }


def _narrowing(wanted: FeedFilter, sort: FeedSort) -> Iterator[str]:
    """Conditions that may each select few feeds."""
    if wanted.format:
        yield "format = %(format)s"
    if any(_times(wanted)) and sort.rising is not FeedSort.SINCE:
        only = FeedFilter(
            health=wanted.health,
            category=wanted.category,
            since=wanted.since,
            after=wanted.after,
        )
        yield _wanted_feeds(only, None, wanted.health or LISTED_HEALTH)


# --- subscriptions ---


class PostgresSubscriptionSelections:
    def __init__(self, connections: Connections, box: SecretBox) -> None:
        self._connections = connections
        self._box = box

    async def page(
        self,
        wanted: SubscriptionFilter,
        sort: SubscriptionSort,
        *,
        after: ListPlace | None,
        limit: int,
        has_total: bool = True,
    ) -> SubscriptionPage:
        find = self._searched if wanted.text else self._listed
        rows, next = await find(wanted, sort, after, limit)
        return SubscriptionPage(
            subscriptions=await self._selected([id for id, _ in rows]),
            next=next,
            total=await self._total(wanted) if has_total else None,
        )

    async def _listed(
        self,
        wanted: SubscriptionFilter,
        sort: SubscriptionSort,
        after: ListPlace | None,
        limit: int,
    ) -> tuple[list[Row], ListPlace | None]:
        """Ids and keys of a page, and where it ends."""
        rows = await self._connections.all(
            *_subscription_query(wanted, sort, after, limit)
        )
        return rows, _place(sort, rows[-1]) if len(rows) == limit else None

    async def _searched(
        self,
        wanted: SubscriptionFilter,
        sort: SubscriptionSort,
        after: ListPlace | None,
        limit: int,
    ) -> tuple[list[Row], ListPlace | None]:
        found: list[Row] = []
        place = after
        for _ in range(PARTS_SEARCHED):
            rows, place = await self._listed(wanted, sort, place, MOST_SEARCHED)
            having = await self._having(wanted.text, [id for id, _ in rows])
            found += [row for row in rows if row[0] in having]
            if len(found) >= limit:  # later rows may have it as well
                return found[:limit], _place(sort, found[limit - 1])
            if place is None:
                break
        return found, place

    async def _having(self, text: str, ids: Sequence[int]) -> frozenset[int]:
        rows = await self._connections.all(
            "SELECT s.id FROM subscriptions s JOIN topics t ON t.id = s.topic_id"
            " WHERE s.id = ANY(%(ids)s::bigint[]) AND"
            " (strpos(fold(s.callback), %(text)s) > 0"
            " OR strpos(fold(t.url), %(text)s) > 0)",
            {"ids": list(ids), "text": folded(text)},
        )
        return frozenset(id for (id,) in rows)

    async def _selected(self, ids: Sequence[int]) -> tuple[SelectedSubscription, ...]:
        rows = await self._connections.all(
            f"SELECT {CONDITION}, v.*"
            f" FROM {ASKED}"
            " JOIN subscriptions s ON s.id = asked.id"
            " JOIN stored_subscriptions v ON v.id = s.id ORDER BY asked.place",
            (list(ids),),
        )
        return tuple(
            SelectedSubscription(
                subscription=read_subscription(row[CONDITION_COLUMNS:], self._box),
                condition=read_condition(row[:CONDITION_COLUMNS]),
            )
            for row in rows
        )

    async def _total(self, wanted: SubscriptionFilter) -> int | None:
        if wanted.text:
            return await self._count_searched(wanted)
        if _is_of_groups(wanted):
            return await self._count_of_groups(wanted)
        number = await self.count(wanted, MOST_COUNTED + 1)
        return None if number > MOST_COUNTED else number

    async def count(self, wanted: SubscriptionFilter, most: int) -> int:
        if wanted.text:
            return min(most, await self._count_having(wanted, most))
        if _is_of_groups(wanted):
            return min(most, await self._count_of_groups(wanted))
        health = wanted.health or LISTED_SUBSCRIPTIONS
        row = await self._connections.first(
            "SELECT count(*) FROM (SELECT 1 FROM subscriptions s"
            f" WHERE {_wanted_subscriptions(wanted, health)} LIMIT %(limit)s) n",
            _subscription_parameters(wanted, None, most),
        )
        return row[0] if row else 0

    async def _count_of_groups(self, wanted: SubscriptionFilter) -> int:
        among = _listed(wanted.health or LISTED_SUBSCRIPTIONS)
        of_account = "" if wanted.account is None else " AND account_id = %(account)s"
        row = await self._connections.first(
            "SELECT coalesce(sum(total), 0)::bigint FROM subscription_counts"
            f" WHERE health IN ({among}){of_account}",
            {"account": wanted.account},
        )
        return row[0] if row else 0

    async def _count_having(self, wanted: SubscriptionFilter, most: int) -> int:
        sort, place, number = SubscriptionSort.ID, None, 0
        while number < most:
            rows, place = await self._listed(wanted, sort, place, MOST_SEARCHED)
            number += len(await self._having(wanted.text, [id for id, _ in rows]))
            if place is None:
                break
        return number

    async def _count_searched(self, wanted: SubscriptionFilter) -> int | None:
        sort = SubscriptionSort.ID
        rows, next = await self._listed(wanted, sort, None, MOST_SEARCHED)
        if next is not None:
            return None
        return len(await self._having(wanted.text, [id for id, _ in rows]))

    async def counts(self) -> dict[SubscriptionHealth, int]:
        rows = await self._connections.all(
            "SELECT health, sum(total)::bigint FROM subscription_counts"
            " WHERE health NOT IN ('ok', 'gone', 'ended') GROUP BY health"
            " HAVING sum(total) > 0"
        )
        return {SubscriptionHealth(health): number for health, number in rows}

    async def conditions(
        self, ids: Sequence[SubscriptionId]
    ) -> list[SubscriptionCondition]:
        rows = await self._connections.all(
            f"SELECT {CONDITION} FROM subscriptions s"
            " WHERE s.id = ANY(%s::bigint[]) ORDER BY s.id",
            (list(ids),),
        )
        return [read_condition(row) for row in rows]


def _place(sort: SubscriptionSort, row: Row) -> ListPlace:
    id, key = row
    is_time = sort.rising is SubscriptionSort.SINCE
    key_of_place: datetime | None = from_milliseconds(key) if is_time else None
    return ListPlace(id, key_of_place)


def _subscription_query(
    wanted: SubscriptionFilter,
    sort: SubscriptionSort,
    after: ListPlace | None,
    limit: int,
) -> Query:
    """The query for the ids and keys of a page, whatever texts they have."""
    key = SUBSCRIPTION_KEYS[sort.rising]
    health = wanted.health or LISTED_SUBSCRIPTIONS
    is_few = wanted.ids or wanted.topic is not None or wanted.callback is not None
    groups = [health] if is_few else [(each,) for each in health]
    behind = _behind(key, after, sort)
    found = _merged(
        f"SELECT id, {key} AS key FROM subscriptions s"
        f" WHERE {_wanted_subscriptions(wanted, group)}{behind} {_order(key, sort)}"
        " LIMIT %(limit)s"
        for group in groups
    )
    sql = f"SELECT id, key FROM ({found}) m {_order('key', sort)} LIMIT %(limit)s"
    return sql, _subscription_parameters(wanted, after, limit)


def _wanted_subscriptions(wanted: SubscriptionFilter, health: Iterable[str]) -> str:
    conditions = [f"health IN ({_listed(health)})", *_times(wanted)]
    if wanted.ids:
        conditions.append(" AND id = ANY(%(ids)s::bigint[])")
    if wanted.account is not None:
        conditions.append(" AND account_id = %(account)s")
    if wanted.feed_id is not None:
        conditions.append(" AND feed_id = %(feed)s")
    if wanted.callback is not None:
        conditions.append(" AND callback_hash = %(callback)s")
    if wanted.topic is not None:
        conditions.append(f" AND {OF_TOPIC}")
    return "".join(conditions)


def _subscription_parameters(
    wanted: SubscriptionFilter, after: ListPlace | None, limit: int
) -> dict[str, object]:
    callback = wanted.callback
    return {
        "account": wanted.account,
        "feed": wanted.feed_id,
        "callback": None if callback is None else hash_key(normal_url(callback)),
        "since": wanted.since,
        "after": wanted.after,
        "limit": limit,
        "ids": list(wanted.ids),
        **topic_keys(wanted.topic or ""),
        **_place_parameters(after),
    }


def _is_of_groups(wanted: SubscriptionFilter) -> bool:
    """Whether nothing but a state and an account is asked for."""
    return wanted == SubscriptionFilter(health=wanted.health, account=wanted.account)
