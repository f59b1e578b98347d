"""`FeedSelectionStore` and `SubscriptionSelectionStore` of `storage.contract`.

A list is read in the order of an index: the first rows of each state after the place,
and of these the first of all. A filter that selects few rows by itself, a part of a
text or a time, is looked up first, and then only these few are sorted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from protocols.urls import normal_url
from storage.records import (
    ENDED_SUBSCRIPTIONS,
    LISTED_HEALTH,
    LISTED_SUBSCRIPTIONS,
    FeedCount,
    FeedFilter,
    FeedHealth,
    FeedPage,
    FeedSort,
    ListPlace,
    SelectedSubscription,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionPage,
    SubscriptionSort,
    SubscriptionState,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import (
    from_milliseconds,
    pack_ids,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import hash_key, read_feed, read_subscription
from storage.sqlite.trigrams import folded, quoted, rare_trigrams_of

Query = tuple[str, dict[str, object]]
"""SQL and its parameters."""

# --- ranges of an index ---


def _behind(
    key: str, after: ListPlace | None, *, is_falling: bool, id: str = "id"
) -> list[str]:
    """SQL for what follows a place: the rest of its key's rows, and later keys.

    With a comparison of pairs instead, SQLite would not use an index of a generated
    column.
    """
    sign = "<" if is_falling else ">"
    if after is None:
        return [""]
    if after.key is None:
        return [f" AND {id} {sign} :after_id"]
    return [
        f" AND {key} = :after_key AND {id} {sign} :after_id",
        f" AND {key} {sign} :after_key",
    ]


def _merged(ranges: Iterable[str]) -> str:
    return " UNION ALL ".join(f"SELECT * FROM ({each})" for each in ranges)


def _order(key: str, *, is_falling: bool, of: str = "") -> str:
    direction = " DESC" if is_falling else ""
    return f"ORDER BY {of}{key}{direction}, {of}id{direction} LIMIT :limit"


def _place_parameters(after: ListPlace | None) -> dict[str, object]:
    key = after.key if after else None
    return {
        "after_id": after.id if after else 0,
        "after_key": to_milliseconds(key) if isinstance(key, datetime) else key,
    }


def _times(wanted: FeedFilter | SubscriptionFilter) -> Iterator[str]:
    if wanted.since is not None:
        yield " AND health_since <= :since"
    if wanted.after is not None:
        yield " AND health_since > :after"


def _has_times(wanted: FeedFilter | SubscriptionFilter) -> bool:
    return any(_times(wanted))


def _listed(values: Iterable[str]) -> str:
    return ", ".join(f"'{each}'" for each in values)


# --- feeds ---

MOST_SORTED: Final = 2_000
"""Up to so many rows count as few: all of them are looked at."""

MOST_COUNTED: Final = 10_000
"""Up to so many rows of an index are counted one by one."""

FEED_KEYS: Final = {
    FeedSort.ID: "id",
    FeedSort.URL: "url",
    FeedSort.SINCE: "health_since",
    FeedSort.SUBSCRIBERS: "subscribers",
}
_AT_HOST: Final = (
    " AND instr(url, '://')"
    " IN (instr(fold(url), :host_alone), instr(fold(url), :host_with_port))"
)
"""A host that occurs later in the URL, such as in its query, does not count."""
_FEED_INDEXES: Final = {
    FeedSort.ID: ("feeds_by_health", "feeds_by_section"),
    FeedSort.URL: ("feeds_by_health_url", "feeds_by_section_url"),
    FeedSort.SINCE: ("feeds_by_health_since", "feeds_by_section_since"),
    FeedSort.SUBSCRIBERS: (
        "audience_by_health",
        "audience_by_section",
    ),
}
"""For each order, the index for one health, and for one health and section."""


class SqliteFeedSelections:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

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
        rows = await self._readers.all(*feed_query(wanted, sort, after, limit, ids))
        feeds = tuple(read_feed(row) for row in rows)
        is_last = len(feeds) < limit
        return FeedPage(
            feeds=feeds,
            next=None if is_last else sort.place_of(feeds[-1], rows[-1][-1]),
            total=await self._total(wanted, ids) if has_total else None,
        )

    async def _total(self, wanted: FeedFilter, ids: list[int] | None) -> int | None:
        if ids is not None:
            return await self._number(*_among_query(wanted, ids))
        of_group = await self._count_of_group(wanted)
        if wanted.is_of_group:
            return of_group
        if (wanted.text or wanted.has_host_or_format) and of_group > MOST_SORTED:
            return None
        found = await self.count(wanted, MOST_COUNTED + 1)
        return None if found > MOST_COUNTED else found

    async def count(self, wanted: FeedFilter, most: int) -> int:
        if wanted.ids:
            return min(most, await self._number(*_among_query(wanted, wanted.ids)))
        return min(most, await self._number(*_count_query(wanted, most)))

    async def _count_of_group(self, wanted: FeedFilter) -> int:
        """Count the feeds of the wanted health and category, and ignore the rest."""
        among = wanted.health or LISTED_HEALTH
        return sum(
            each.total
            for each in await self.counts()
            if each.health in among and wanted.category in (None, each.category)
        )

    async def counts(self) -> list[FeedCount]:
        rows = await self._readers.all(
            "SELECT health, section, total FROM feed_counts ORDER BY health, section"
        )
        return [FeedCount(FeedHealth(health), *rest) for health, *rest in rows]

    async def _few(self, wanted: FeedFilter, sort: FeedSort) -> list[int] | None:
        """A few feeds that include all that are wanted; None if there are too many."""
        if wanted.ids:
            return list(wanted.ids)
        for query in _narrowing(wanted, sort):
            rows = await self._readers.all(*query)
            if len(rows) <= MOST_SORTED:
                return [feed_id for (feed_id, *_) in rows]
        return None

    async def _number(self, sql: str, parameters: dict[str, object]) -> int:
        row = await self._readers.first(sql, parameters)
        return row[0] if row else 0


def feed_query(
    wanted: FeedFilter,
    sort: FeedSort,
    after: ListPlace | None,
    limit: int,
    ids: Sequence[int] | None,
) -> Query:
    """The query of a page; ``ids``: feeds that include all that are wanted."""
    found = _merged(_feed_ranges(wanted, sort, after))
    if ids is not None:
        found = _among(wanted, sort, after)
    page = _order("key", is_falling=sort.is_falling)
    order = _order("key", is_falling=sort.is_falling, of="p.")
    sql = (
        f"SELECT v.*, v.subscribers FROM (SELECT id, key FROM ({found}) {page}) p"
        f" CROSS JOIN stored_feeds v ON v.id = p.id {order}"
    )
    return sql, _feed_parameters(wanted, after, limit, ids)


def _feed_parameters(
    wanted: FeedFilter,
    after: ListPlace | None = None,
    limit: int = -1,
    ids: Sequence[int] | None = None,
) -> dict[str, object]:
    return {
        "category": wanted.category,
        "text": folded(wanted.text),
        "host_alone": f"://{wanted.host}/",
        "host_with_port": f"://{wanted.host}:",
        "format": wanted.format,
        "since": to_milliseconds_or_none(wanted.since),
        "after": to_milliseconds_or_none(wanted.after),
        "limit": limit,
        "ids": pack_ids(ids or ()),
        **_place_parameters(after),
    }


def _feed_conditions(wanted: FeedFilter) -> str:
    """SQL for what is asked of a feed beside its health and category."""
    conditions = [*_times(wanted)]
    if wanted.text:
        conditions.append(" AND (instr(fold(url), :text) OR instr(fold(title), :text))")
    if wanted.host:
        conditions.append(_AT_HOST)
    if wanted.format:
        conditions.append(" AND format = :format")
    return "".join(conditions)


def _feed_ranges(
    wanted: FeedFilter, sort: FeedSort, after: ListPlace | None
) -> Iterator[str]:
    """SQL for the ids and keys of each health."""
    key = FEED_KEYS[sort.rising]
    index = _FEED_INDEXES[sort.rising][wanted.category is not None]
    of_category = " AND section = :category" if wanted.category is not None else ""
    conditions = _feed_conditions(wanted)
    rows, id = f"feeds INDEXED BY {index}", "id"
    if sort.rising is FeedSort.SUBSCRIBERS:
        rows, id = f"feed_audience INDEXED BY {index}", "feed_id"
        conditions = _of_audience(conditions)
    direction = " DESC" if sort.is_falling else ""
    order = f"ORDER BY {key}{direction}, {id}{direction} LIMIT :limit"
    for health in wanted.health or LISTED_HEALTH:
        for behind in _behind(key, after, is_falling=sort.is_falling, id=id):
            yield (
                f"SELECT {id} AS id, {key} AS key FROM {rows}"
                f" WHERE health = '{health}'{of_category}{conditions}{behind} {order}"
            )


def _of_audience(conditions: str) -> str:
    """SQL for rows of ``feed_audience`` of feeds that fulfil the conditions."""
    if not conditions:
        return ""
    return f" AND EXISTS (SELECT 1 FROM feeds WHERE id = feed_id{conditions})"


def _among(wanted: FeedFilter, sort: FeedSort, after: ListPlace | None) -> str:
    """SQL for the wanted feeds among those of ``:ids``."""
    key = FEED_KEYS[sort.rising]
    if sort.rising is FeedSort.SUBSCRIBERS:
        key = "(SELECT subscribers FROM feed_audience WHERE feed_id = id)"
    places = " OR ".join(
        f"(TRUE{each})" for each in _behind(key, after, is_falling=sort.is_falling)
    )
    of_category = " AND section = :category" if wanted.category is not None else ""
    return (
        f"SELECT id, {key} AS key FROM feeds NOT INDEXED"
        " WHERE id IN (SELECT value FROM json_each(:ids))"
        f" AND health IN ({_listed(wanted.health or LISTED_HEALTH)})"
        f"{of_category}{_feed_conditions(wanted)} AND ({places})"
    )


def _among_query(wanted: FeedFilter, ids: Sequence[int]) -> Query:
    found = _among(wanted, FeedSort.ID, None)
    return f"SELECT count(*) FROM ({found})", _feed_parameters(wanted, ids=ids)


def _count_query(wanted: FeedFilter, most: int) -> Query:
    found = _merged(_feed_ranges(wanted, FeedSort.SINCE, None))
    return f"SELECT count(*) FROM ({found})", _feed_parameters(wanted, limit=most)


def _narrowing(wanted: FeedFilter, sort: FeedSort) -> Iterator[Query]:
    """Queries for the ids of feeds by one rare property each, with a limit of one more
    than `MOST_SORTED`."""
    limit = MOST_SORTED + 1
    trigrams = rare_trigrams_of(folded(wanted.text)) + rare_trigrams_of(wanted.host)
    if trigrams:
        match = " AND ".join(quoted(each) for each in trigrams)
        yield (
            "SELECT rowid FROM feed_texts WHERE feed_texts MATCH :match LIMIT :limit",
            {"match": match, "limit": limit},
        )
    if wanted.format:
        yield (
            "SELECT id FROM feeds INDEXED BY feeds_by_format WHERE format = :format"
            " LIMIT :limit",
            {"format": wanted.format, "limit": limit},
        )
    if _has_times(wanted) and sort.rising is not FeedSort.SINCE:
        only = FeedFilter(
            health=wanted.health,
            category=wanted.category,
            since=wanted.since,
            after=wanted.after,
        )
        found = _merged(_feed_ranges(only, FeedSort.SINCE, None))
        parameters = _feed_parameters(only, limit=limit)
        yield f"SELECT id FROM ({found}) LIMIT :limit", parameters


# --- subscriptions ---

MOST_SEARCHED: Final = 2_000
"""The most texts looked at in one query."""
PARTS_SEARCHED: Final = 10
"""The most such queries for one page."""

SUBSCRIPTION_KEYS: Final = {
    SubscriptionSort.ID: "id",
    SubscriptionSort.SINCE: "health_since",
}
_TOPICS: Final = (
    "SELECT id FROM topics WHERE url IN (:topic, :normal)"
    " UNION SELECT id FROM topics WHERE normal = :normal AND normal <> ''"
)
CONDITION: Final = (
    "s.id, s.health, s.health_since, s.failure, s.ended_reason,"
    " CASE WHEN s.health IN ('slow', 'failing') THEN (SELECT a.milliseconds"
    " FROM attempts a WHERE a.subscription_id = s.id ORDER BY a.id DESC LIMIT 1) END"
)
"""The columns that `read_condition` reads."""
CONDITION_COLUMNS: Final = 6


async def topics_of(readers: Readers, url: str) -> list[int]:
    """The ids of a topic's spellings."""
    asked = {"topic": url, "normal": normal_url(url)}
    return [id for (id,) in await readers.all(_TOPICS, asked)]


class SqliteSubscriptionSelections:
    def __init__(self, readers: Readers, box: SecretBox) -> None:
        self._readers = readers
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
        topics = await self._topics(wanted)
        query = subscription_query(wanted, sort, after, limit, topics)
        rows = await self._readers.all(*query)
        return rows, _place(sort, rows[-1]) if len(rows) == limit else None

    async def _topics(self, wanted: SubscriptionFilter) -> list[int]:
        """The ids of all spellings of the wanted topic; empty if none is asked for."""
        if wanted.topic is None:
            return []
        return await topics_of(self._readers, wanted.topic)

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
        rows = await self._readers.all(
            "SELECT s.id FROM json_each(:ids) asked"
            " CROSS JOIN subscriptions s ON s.id = asked.value"
            " CROSS JOIN topics t ON t.id = s.topic_id"
            " WHERE instr(fold(s.callback), :text) OR instr(fold(t.url), :text)",
            {"ids": pack_ids(ids), "text": folded(text)},
        )
        return frozenset(id for (id,) in rows)

    async def _selected(self, ids: Sequence[int]) -> tuple[SelectedSubscription, ...]:
        rows = await self._readers.all(
            f"SELECT {CONDITION}, v.* FROM json_each(?) asked"
            " CROSS JOIN subscriptions s ON s.id = asked.value"
            " CROSS JOIN stored_subscriptions v ON v.id = s.id ORDER BY asked.key",
            (pack_ids(ids),),
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
        topics = await self._topics(wanted)
        sort = SubscriptionSort.SINCE if _has_times(wanted) else SubscriptionSort.ID
        found, parameters = _found(wanted, sort, None, most, topics)
        row = await self._readers.first(
            f"SELECT count(*) FROM (SELECT 1 FROM ({found}) LIMIT :limit)", parameters
        )
        return row[0] if row else 0

    async def _count_of_groups(self, wanted: SubscriptionFilter) -> int:
        among = _listed(wanted.health or LISTED_SUBSCRIPTIONS)
        of_account = "" if wanted.account is None else " AND account_id = :account"
        row = await self._readers.first(
            "SELECT coalesce(sum(total), 0) FROM subscription_counts"
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
        rows = await self._readers.all(
            "SELECT health, sum(total) AS number FROM subscription_counts"
            " WHERE health NOT IN ('ok', 'gone', 'ended') GROUP BY health"
            " HAVING number > 0"
        )
        return {SubscriptionHealth(health): number for health, number in rows}

    async def conditions(
        self, ids: Sequence[SubscriptionId]
    ) -> list[SubscriptionCondition]:
        rows = await self._readers.all(
            f"SELECT {CONDITION} FROM subscriptions s"
            " WHERE s.id IN (SELECT value FROM json_each(?)) ORDER BY s.id",
            (pack_ids(ids),),
        )
        return [read_condition(row) for row in rows]


def read_condition(row: Row) -> SubscriptionCondition:
    id, word, since, failure, ended_reason, milliseconds = row
    health, reason = SubscriptionHealth(word), failure
    if health in (SubscriptionHealth.GONE, SubscriptionHealth.ENDED):
        reason = ended_reason
    elif health is SubscriptionHealth.PAUSED:  # whatever failed before
        reason = ""
    return SubscriptionCondition(
        id=SubscriptionId(id),
        health=health,
        since=from_milliseconds(since),
        reason=reason,
        last_milliseconds=milliseconds,
    )


def _place(sort: SubscriptionSort, row: Row) -> ListPlace:
    id, key = row
    is_time = sort.rising is SubscriptionSort.SINCE
    return ListPlace(id, from_milliseconds(key) if is_time else None)


def subscription_query(
    wanted: SubscriptionFilter,
    sort: SubscriptionSort,
    after: ListPlace | None,
    limit: int,
    topics: Sequence[int],
) -> Query:
    """The query for the ids and keys of a page, whatever texts they have."""
    found, parameters = _found(wanted, sort, after, limit, topics)
    order = _order("key", is_falling=sort.is_falling)
    return f"SELECT id, key FROM ({found}) {order}", parameters


def _found(
    wanted: SubscriptionFilter,
    sort: SubscriptionSort,
    after: ListPlace | None,
    limit: int,
    topics: Sequence[int],
) -> Query:
    parameters: dict[str, object] = {
        "account": wanted.account,
        "feed": wanted.feed_id,
        "callback": wanted.callback and hash_key(normal_url(wanted.callback)),
        "since": to_milliseconds_or_none(wanted.since),
        "after": to_milliseconds_or_none(wanted.after),
        "limit": limit,
        "ids": pack_ids(wanted.ids),
        **_place_parameters(after),
    }
    return _merged(_subscription_ranges(wanted, sort, after, topics)), parameters


def _subscription_ranges(
    wanted: SubscriptionFilter,
    sort: SubscriptionSort,
    after: ListPlace | None,
    topics: Sequence[int],
) -> Iterator[str]:
    key = SUBSCRIPTION_KEYS[sort.rising]
    conditions = "".join((*_times(wanted), *_subscription_conditions(wanted, topics)))
    order = _order(key, is_falling=sort.is_falling)
    for index, group in _subscription_groups(wanted, sort.rising, topics):
        for behind in _behind(key, after, is_falling=sort.is_falling):
            yield (
                f"SELECT id, {key} AS key FROM subscriptions {index}"
                f" WHERE {group}{conditions}{behind} {order}"
            )


def _subscription_groups(
    wanted: SubscriptionFilter, sort: SubscriptionSort, topics: Sequence[int]
) -> Iterator[tuple[str, str]]:
    """An index and a condition, in SQL, for each range that is read."""
    among = wanted.health or LISTED_SUBSCRIPTIONS
    is_among = f"health IN ({_listed(among)})"
    if wanted.ids:
        are_named = "id IN (SELECT value FROM json_each(:ids))"
        yield "NOT INDEXED", f"{are_named} AND {is_among}"
    elif wanted.callback is not None:
        yield "INDEXED BY subscriptions_by_key", is_among
    elif wanted.topic is not None:
        for topic in topics or [0]:  # which no topic has
            is_of_topic = f"topic_id = {topic} AND {is_among}"
            yield "INDEXED BY subscriptions_by_topic", is_of_topic
    elif wanted.feed_id is not None:
        for state in _states_of(among):
            is_in_state = f"state = '{state}' AND {is_among}"
            yield "INDEXED BY subscriptions_by_feed", is_in_state
    else:
        yield from _groups_of_health(wanted, sort, among)


def _groups_of_health(
    wanted: SubscriptionFilter,
    sort: SubscriptionSort,
    among: Collection[SubscriptionHealth],
) -> Iterator[tuple[str, str]]:
    """Like `_subscription_groups`, for all subscriptions, or all of an account."""
    has_account = wanted.account is not None
    if sort is SubscriptionSort.SINCE:
        of_account = "of_account" if has_account else "by_health"
        for each in among:
            yield f"INDEXED BY subscriptions_{of_account}_since", f"health = '{each}'"
    elif not wanted.health and not has_account:
        yield "NOT INDEXED", "state IN ('pending', 'active')"
    elif has_account and SubscriptionHealth.OK in among:
        yield "INDEXED BY subscriptions_by_account", f"health IN ({_listed(among)})"
    else:
        unwell = "of_account_unwell" if has_account else "unwell"
        for each in among:
            if each is SubscriptionHealth.OK:
                yield "NOT INDEXED", "health = 'ok'"
            else:
                is_unwell = f"health = '{each}' AND health <> 'ok'"
                yield f"INDEXED BY subscriptions_{unwell}", is_unwell


def _states_of(among: Collection[SubscriptionHealth]) -> Iterator[SubscriptionState]:
    """The states that subscriptions of these healths have."""
    if SubscriptionHealth.PENDING in among:
        yield SubscriptionState.PENDING
    if set(among) - {SubscriptionHealth.PENDING, *ENDED_SUBSCRIPTIONS}:
        yield SubscriptionState.ACTIVE
    if not set(among).isdisjoint(ENDED_SUBSCRIPTIONS):
        yield from (SubscriptionState.ENDING, SubscriptionState.ENDED)


def _is_of_groups(wanted: SubscriptionFilter) -> bool:
    """Whether nothing but a state and an account is asked for."""
    return wanted == SubscriptionFilter(health=wanted.health, account=wanted.account)


def _subscription_conditions(
    wanted: SubscriptionFilter, topics: Sequence[int]
) -> Iterator[str]:
    if wanted.account is not None:
        yield " AND account_id = :account"
    if wanted.feed_id is not None:
        yield " AND feed_id = :feed"
    if wanted.callback is not None:
        yield " AND callback_hash = :callback"
    if wanted.topic is not None:
        yield f" AND topic_id IN ({', '.join(map(str, topics))})"
