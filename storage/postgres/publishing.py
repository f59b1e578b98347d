"""`storage.contract.publishing` on PostgreSQL: public feeds, pages, and their list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from storage.postgres.connections import Connections
from storage.postgres.fetch_commits import to_jsonb
from storage.postgres.rare_parts import feed_condition
from storage.records import (
    EntryId,
    EntryVisibility,
    FeedId,
    FeedNews,
    ListedEntry,
    ListedPage,
    PageChange,
    PageId,
    PageNews,
    PageSection,
    PagesState,
    PublicFeed,
    PublicFeedPage,
    PublishedPage,
)
from storage.sqlite.columns import from_milliseconds, to_milliseconds_or_none
from storage.sqlite.publishing import (
    MOST_LOOKED_AT,
    PAGE_COLUMNS,
    present_urls,
    read_listed_page,
    read_page,
    read_page_change,
    read_page_news,
    read_public_feed,
)
from storage.sqlite.rows import ENTRY, hash_key, read_entry
from storage.sqlite.shown_pages import SHIFTS
from storage.sqlite.trigrams import folded

# --- public feeds ---

_FROM: Final = (
    " LEFT JOIN feed_heads h ON h.feed_id = f.id"
    " LEFT JOIN given_names g ON g.feed_id = f.id"
)
_COLUMNS_OF_FEED: Final = (
    "f.id, f.url, f.title, coalesce(g.description, ''), f.category, f.created_at,"
    " h.head"
)
_FEEDS: Final = (
    f"SELECT {_COLUMNS_OF_FEED} FROM feeds f{_FROM}"
    " WHERE NOT f.private AND f.state <> 'removed'"
)
_MAY_BE_LISTED: Final = (
    "NOT f.private AND NOT f.unlisted AND f.state NOT IN ('removed', 'track')"
)
_TOPICS: Final = (
    f"SELECT {_COLUMNS_OF_FEED} FROM feeds f{_FROM}"
    f" WHERE {_MAY_BE_LISTED} AND f.id < %(before)s ORDER BY f.id DESC LIMIT %(limit)s"
)
_TOPICS_BY_TEXT: Final = (
    "WITH looked AS MATERIALIZED (SELECT id FROM feeds"
    " WHERE {condition} AND id < %(before)s"
    " ORDER BY id DESC LIMIT %(most)s)"
    f" SELECT l.id, {_COLUMNS_OF_FEED} FROM looked l"
    f" LEFT JOIN feeds f ON f.id = l.id AND {_MAY_BE_LISTED}"
    "  AND (strpos(fold(f.url), %(text)s) > 0 OR strpos(fold(f.title), %(text)s) > 0)"
    f"{_FROM} ORDER BY l.id DESC"
)
"""One row for each feed that is looked at; NULLs if the feed is not to be shown."""
_BEHIND_ALL: Final = (1 << 63) - 1
_ENTRIES: Final = (
    f"SELECT e.sorted_at, {ENTRY} FROM entries e"
    " WHERE e.feed_id = %(feed)s AND NOT e.deleted"
)
_ORDERED: Final = " ORDER BY e.sorted_at DESC, e.id LIMIT %(limit)s"
_FOLLOWING: Final = (
    " AND e.sorted_at <= %(dated)s AND (e.sorted_at < %(dated)s OR e.id > %(id)s)"
)


class PostgresPublic:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def feeds(self, *, after: FeedId, limit: int) -> list[PublicFeed]:
        rows = await self._connections.all(
            f"{_FEEDS} AND f.id > %s ORDER BY f.id LIMIT %s", (after, limit)
        )
        return [read_public_feed(row) for row in rows]

    async def topics(
        self, *, text: str = "", before: FeedId | None, limit: int
    ) -> PublicFeedPage:
        parameters = {"before": _BEHIND_ALL if before is None else before}
        if text:
            return await self._topics_by_text(text, limit, parameters)
        rows = await self._connections.all(_TOPICS, {**parameters, "limit": limit + 1})
        feeds = tuple(read_public_feed(row) for row in rows[:limit])
        return PublicFeedPage(
            feeds=feeds, next=feeds[-1].id if len(rows) > limit else None
        )

    async def _topics_by_text(
        self, text: str, limit: int, parameters: dict[str, int]
    ) -> PublicFeedPage:
        part = folded(text)
        condition, of_text = await feed_condition(self._connections, part)
        rows = await self._connections.all(
            _TOPICS_BY_TEXT.format(condition=condition),
            {**parameters, **of_text, "text": part, "most": MOST_LOOKED_AT},
        )
        found = [read_public_feed(row[1:]) for row in rows if row[1] is not None]
        if len(found) > limit:
            end: FeedId | None = found[limit - 1].id
        else:
            end = FeedId(rows[-1][0]) if len(rows) == MOST_LOOKED_AT else None
        return PublicFeedPage(feeds=tuple(found[:limit]), next=end)

    async def count(self) -> int:
        row = await self._connections.first(
            "SELECT count(*) FROM feeds WHERE NOT private AND NOT unlisted"
            " AND state NOT IN ('removed', 'track')"
        )
        return int(row[0]) if row else 0

    async def feed(self, feed_id: FeedId) -> PublicFeed | None:
        row = await self._connections.first(f"{_FEEDS} AND f.id = %s", (feed_id,))
        return None if row is None else read_public_feed(row)

    async def entries(
        self, feed_id: FeedId, *, before: tuple[datetime, EntryId] | None, limit: int
    ) -> list[ListedEntry]:
        parameters: dict[str, object] = {"feed": feed_id, "limit": limit}
        following = ""
        if before is not None:
            following = _FOLLOWING
            parameters |= {"dated": before[0], "id": before[1]}
        rows = await self._connections.all(_ENTRIES + following + _ORDERED, parameters)
        return [
            ListedEntry(entry=read_entry(row[1:]), dated=from_milliseconds(row[0]))
            for row in rows
        ]


# --- pages ---

_NEWS: Final = (
    "SELECT n.entry_id, e.sorted_at, f.category, f.url, f.fetch_url,"
    " coalesce(NOT f.private AND NOT f.unlisted AND f.state <> 'removed', FALSE),"
    f" h.head, m.inherits_language, {ENTRY}"
    " FROM page_news n LEFT JOIN entries e ON e.id = n.entry_id"
    " LEFT JOIN page_entries m ON m.entry_id = n.entry_id"
    "  AND m.revision = e.revision AND m.language IS NOT NULL"
    " LEFT JOIN feeds f ON f.id = e.feed_id"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
    " ORDER BY n.entry_id LIMIT %s"
)
# Entries hidden since then are left out at once.
_PAGES: Final = (
    f"SELECT {PAGE_COLUMNS}"
    " FROM {source} JOIN entries e ON e.id = {shown}.entry_id AND NOT e.deleted"
    "  AND NOT e.unlisted JOIN feeds f ON f.id = e.feed_id"
    "  AND NOT f.private AND NOT f.unlisted AND f.state <> 'removed'"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
    " WHERE {shown}.entry_id > 0 AND {where} ORDER BY {order} LIMIT %(limit)s"
)
_ALL: Final = partial(_PAGES.format, source="pages p", shown="p")
_OF_SECTION: Final = partial(
    _PAGES.format,
    source="section_pages s JOIN pages p ON p.id = s.page_id",
    shown="s",
)
# A feed that was moved may have left the section.
_IN_SECTION: Final = (
    "s.section = %(section)s AND {after} AND NOT EXISTS"
    " (SELECT 1 FROM page_feeds n WHERE n.feed_id = e.feed_id AND n.is_moved)"
)
_BY_ID: Final = _ALL(where="p.id > %(after)s", order="p.id")
_BY_CHANGE: Final = _ALL(where="p.change > %(after)s", order="p.change")
_BY_ID_IN_SECTION: Final = _OF_SECTION(
    where=_IN_SECTION.format(after="s.page_id > %(after)s"), order="s.page_id"
)
_BY_CHANGE_IN_SECTION: Final = _OF_SECTION(
    where=_IN_SECTION.format(after="s.change > %(after)s"), order="s.change"
)
_FORMER: Final = "right(origin, length(%(ending)s)) <> %(ending)s"


class PostgresPages:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def feed_news(self, limit: int) -> list[FeedNews]:
        rows = await self._connections.all(
            "SELECT n.feed_id, n.is_moved, o.origin, f.url, f.fetch_url, h.head"
            " FROM page_feeds n LEFT JOIN page_origins o ON o.feed_id = n.feed_id"
            " LEFT JOIN feeds f ON f.id = n.feed_id"
            " LEFT JOIN feed_heads h ON h.feed_id = n.feed_id"
            " ORDER BY n.feed_id LIMIT %s",
            (limit,),
        )
        return [
            FeedNews(
                feed_id=FeedId(feed_id),
                is_moved=is_moved,
                origin=origin,
                urls=present_urls(url, fetch_url),
                head=head,
            )
            for feed_id, is_moved, origin, url, fetch_url, head in rows
        ]

    async def set_origin(self, news: FeedNews, origin: str) -> None:
        await self._connections.write(
            "SELECT set_feed_origin(%s, %s, %s, %s, %s::bytea, %s)",
            (
                *(news.feed_id, origin, news.origin, news.is_moved, news.head),
                "".join(news.urls[1:]),
            ),
        )

    async def news(self, limit: int) -> list[PageNews]:
        rows = await self._connections.all(_NEWS, (limit,))
        return [read_page_news(row) for row in rows]

    async def update(self, entries: Sequence[EntryVisibility], now: datetime) -> None:
        await self._connections.write(
            "SELECT update_pages(convert_from(%s, 'UTF8')::jsonb, %s)",
            (to_jsonb([_encode_visibility(each) for each in entries]), now),
        )

    async def note_former(self, ending: str) -> None:
        parameters = {"ending": ending}
        found = await self._connections.first(
            f"SELECT 1 FROM page_origins WHERE {_FORMER} LIMIT 1", parameters
        )
        if found is not None:
            await self._connections.write(
                "INSERT INTO page_feeds SELECT feed_id, FALSE FROM page_origins"
                f" WHERE {_FORMER} ORDER BY feed_id ON CONFLICT (feed_id) DO NOTHING",
                parameters,
            )

    async def position(self) -> int:
        row = await self._connections.first("SELECT last_page_change()")
        return row[0] if row else 0

    async def sections(self) -> list[PageSection]:
        rows = await self._connections.all(
            "SELECT s.name, coalesce((SELECT sum(total) FROM page_withdrawals w"
            "  WHERE w.section = s.name), 0)::bigint FROM page_sections s ORDER BY name"
        )
        return [PageSection(name=name, withdrawals=count) for name, count in rows]

    async def pages(
        self, section: str, *, after: PageId, limit: int
    ) -> list[PublishedPage]:
        sql = _BY_ID_IN_SECTION if section else _BY_ID
        return await self._read(sql, section, after, limit)

    async def changed(
        self, section: str, *, after: int, limit: int
    ) -> list[PublishedPage]:
        sql = _BY_CHANGE_IN_SECTION if section else _BY_CHANGE
        return await self._read(sql, section, after, limit)

    async def _read(
        self, sql: str, section: str, after: int, limit: int
    ) -> list[PublishedPage]:
        parameters = {"after": after, "limit": limit, "section": section}
        rows = await self._connections.all(sql, parameters)
        return [read_page(row) for row in rows]


def _encode_visibility(entry: EntryVisibility) -> dict[str, Any]:
    return {
        "entry_id": entry.entry_id,
        "revision": entry.revision,
        "feed_id": entry.feed_id,
        "url": entry.url,
        "url_hash": hash_key(entry.url),
        "section": entry.section,
        "rank": entry.rank,
        "owner": entry.owner,
        "language": entry.language,
        "inherits_language": entry.inherits_language,
        "dated": to_milliseconds_or_none(entry.dated),
        "modified": to_milliseconds_or_none(entry.modified),
        "is_dropped": entry.is_dropped,
    }


# --- the list of pages ---


def _stretches(level: int) -> str:
    """SQL for the stretch of a level that the wanted place lies in.

    Each row also tells how many pages are before the stretch.
    """
    source, bounds, before = "page_counts c", "", ""
    if level:
        within = f"level{level - 1}"
        source = f"{within}, page_counts c"
        before = f"{within}.before + "
        bounds = (
            f" AND c.bucket >= {within}.bucket << 7"
            f" AND c.bucket < ({within}.bucket + 1) << 7"
        )
    return (
        "SELECT bucket, before FROM (SELECT c.bucket,"
        f" ({before}sum(c.pages) OVER (ORDER BY c.bucket DESC) - c.pages)::bigint"
        f" AS before FROM {source}"
        f" WHERE c.level = {level} AND c.pages > 0{bounds}) s"
        " WHERE before <= %(skip)s ORDER BY before DESC LIMIT 1"
    )


_PLACE: Final = "WITH " + ", ".join(
    f"level{level} AS MATERIALIZED ({_stretches(level)})"
    for level in range(len(SHIFTS))
)
"""Ends in ``level3``: the shortest stretch that the place lies in."""
_COLUMNS: Final = f"p.shown_at, p.changed_at, {PAGE_COLUMNS.format(shown='p')}"
# Entries hidden since then are left out at once.
_SHOWN: Final = (
    " {join} JOIN entries e ON e.id = p.entry_id AND NOT e.deleted AND NOT e.unlisted"
    " AND EXISTS (SELECT 1 FROM feeds f WHERE f.id = e.feed_id"
    "  AND NOT f.private AND NOT f.unlisted AND f.state <> 'removed')"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
)
_LISTED: Final = _SHOWN.format(join="")
_PAGE: Final = (
    f"{_PLACE}, places AS MATERIALIZED (SELECT id FROM pages WHERE entry_id > 0"
    f" AND dated < ((SELECT bucket FROM level3) + 1) << {SHIFTS[-1]}"
    " ORDER BY dated DESC, id DESC LIMIT %(limit)s"
    " OFFSET coalesce(%(skip)s - (SELECT before FROM level3), 0))"
    f" SELECT {_COLUMNS} FROM places JOIN pages p ON p.id = places.id"
    f"{_LISTED} ORDER BY p.dated DESC, p.id DESC"
)
_ONE: Final = (
    f"SELECT {_COLUMNS} FROM pages p{_LISTED} WHERE p.url_hash = %s AND p.entry_id > 0"
)
_OF_ENTRIES: Final = (
    f"SELECT {_COLUMNS} FROM page_entries m JOIN pages p ON p.id = m.page_id"
    f" AND p.entry_id = m.entry_id{_LISTED} WHERE m.entry_id = ANY(%s::bigint[])"
)
_CHANGES: Final = (
    f"SELECT {_COLUMNS} FROM pages p{_SHOWN.format(join='LEFT')}"
    " WHERE p.change > %s AND p.change <= %s ORDER BY p.change LIMIT %s"
)
_STATE: Final = (
    "SELECT (SELECT coalesce(sum(pages), 0)::bigint FROM page_counts WHERE level = 0),"
    " p.change, p.changed_at FROM (SELECT 1) one LEFT JOIN"
    " (SELECT change, changed_at FROM pages ORDER BY change DESC LIMIT 1) p ON TRUE"
)


class PostgresPageList:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def state(self) -> PagesState:
        row = await self._connections.first(_STATE)
        count, change, changed_at = row or (0, None, None)
        return PagesState(
            count=count,
            change=change or 0,
            changed_at=from_milliseconds(changed_at or 0),
        )

    async def page(self, *, skip: int, limit: int) -> list[ListedPage]:
        rows = await self._connections.all(_PAGE, {"skip": skip, "limit": limit})
        return [read_listed_page(row) for row in rows]

    async def find(self, url: str) -> ListedPage | None:
        row = await self._connections.first(_ONE, (hash_key(url),))
        return None if row is None else read_listed_page(row)

    async def of_entries(self, ids: Sequence[EntryId]) -> list[ListedPage]:
        rows = await self._connections.all(_OF_ENTRIES, (list(ids),))
        return [read_listed_page(row) for row in rows]

    async def last_before(self, moment: datetime) -> int:
        row = await self._connections.first(
            "SELECT change FROM pages WHERE changed_at < %s"
            " ORDER BY changed_at DESC, change DESC LIMIT 1",
            (moment,),
        )
        return row[0] if row else 0

    async def changes(
        self, *, after: int, through: int, limit: int
    ) -> list[PageChange]:
        rows = await self._connections.all(_CHANGES, (after, through, limit))
        return [read_page_change(row) for row in rows]
