"""`storage.contract.publishing` on SQLite: public feeds, pages, and their list."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial

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
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    pack_ids,
    to_milliseconds,
)
from storage.sqlite.readers import Readers, Row
from storage.sqlite.rows import ENTRY, hash_key, read_entry
from storage.sqlite.shown_pages import LAST_CHANGE, PLACE, SHIFTS, update_pages
from storage.sqlite.trigrams import folded, quoted, rare_trigrams_of
from storage.sqlite.writer import Writer

# --- rows ---

PAGE_COLUMNS = (
    "p.id, p.url, coalesce({shown}.language, ''), {shown}.modified, {shown}.change,"
    " {shown}.revision, h.head,"
    f" {ENTRY}"
)
"""Columns of pages ``p``, of the row that says what a page shows (``{shown}``), of
feeds' heads ``h``, and of entries ``e``."""


def read_page(row: Row) -> PublishedPage:
    page_id, url, language, modified, change, revision, head, *entry = row
    found = read_entry(tuple(entry))
    return PublishedPage(
        id=PageId(page_id),
        url=url,
        language=language,
        modified=from_milliseconds(modified * 1_000),
        change=change,
        entry=found,
        head=head,
        is_stale=found.revision != revision,
    )


# --- public feeds ---

_FROM = (
    " LEFT JOIN feed_heads h ON h.feed_id = f.id"
    " LEFT JOIN given_names g ON g.feed_id = f.id"
)
_COLUMNS_OF_FEED = (
    "f.id, f.url, f.title, coalesce(g.description, ''), f.section, f.created_at, h.head"
)
_FEEDS = (
    f"SELECT {_COLUMNS_OF_FEED} FROM feeds f{_FROM}"
    " WHERE NOT f.private AND f.state <> 'removed'"
)
_MAY_BE_LISTED = (
    "NOT f.private AND NOT f.unlisted AND f.state NOT IN ('removed', 'track')"
)
TOPICS = (
    f"SELECT {_COLUMNS_OF_FEED} FROM feeds f INDEXED BY feeds_public{_FROM}"
    f" WHERE {_MAY_BE_LISTED} AND f.id < :before ORDER BY f.id DESC LIMIT :limit"
)
TOPICS_BY_TEXT = (
    "WITH looked AS MATERIALIZED (SELECT rowid AS id FROM feed_texts"
    " WHERE feed_texts MATCH :match AND rowid < :before ORDER BY rowid DESC"
    " LIMIT :most)"
    f" SELECT l.id, {_COLUMNS_OF_FEED} FROM looked l"
    f" LEFT JOIN feeds f ON f.id = l.id AND {_MAY_BE_LISTED}"
    "  AND (instr(fold(f.url), :text) OR instr(fold(f.title), :text))"
    f"{_FROM} ORDER BY l.id DESC"
)
"""One row for each feed that is looked at; NULLs if the feed is not to be shown."""
MOST_LOOKED_AT = 500
_BEHIND_ALL = (1 << 63) - 1
_ENTRIES = (
    f"SELECT e.sorted_at, {ENTRY} FROM entries e"
    " WHERE feed_id = :feed_id AND deleted = 0"
)
_ORDERED = " ORDER BY sorted_at DESC, id LIMIT :limit"
_FOLLOWING = " AND sorted_at <= :dated AND (sorted_at < :dated OR id > :id)"


class SqlitePublic:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def feeds(self, *, after: FeedId, limit: int) -> list[PublicFeed]:
        rows = await self._readers.all(
            f"{_FEEDS} AND f.id > ? ORDER BY f.id LIMIT ?", (after, limit)
        )
        return [read_public_feed(row) for row in rows]

    async def count(self) -> int:
        row = await self._readers.first("SELECT total FROM public_count")
        return int(row[0]) if row else 0

    async def topics(
        self, *, text: str = "", before: FeedId | None, limit: int
    ) -> PublicFeedPage:
        parameters = {"before": _BEHIND_ALL if before is None else before}
        if text:
            return await self._topics_by_text(text, limit, parameters)
        rows = await self._readers.all(TOPICS, {**parameters, "limit": limit + 1})
        feeds = tuple(read_public_feed(row) for row in rows[:limit])
        return PublicFeedPage(
            feeds=feeds, next=feeds[-1].id if len(rows) > limit else None
        )

    async def _topics_by_text(
        self, text: str, limit: int, parameters: dict[str, int]
    ) -> PublicFeedPage:
        part = folded(text)
        rows = await self._readers.all(
            TOPICS_BY_TEXT,
            {
                **parameters,
                "text": part,
                "match": " AND ".join(map(quoted, rare_trigrams_of(part))),
                "most": MOST_LOOKED_AT,
            },
        )
        found = [read_public_feed(row[1:]) for row in rows if row[1] is not None]
        if len(found) > limit:
            end: FeedId | None = found[limit - 1].id
        else:
            end = FeedId(rows[-1][0]) if len(rows) == MOST_LOOKED_AT else None
        return PublicFeedPage(feeds=tuple(found[:limit]), next=end)

    async def feed(self, feed_id: FeedId) -> PublicFeed | None:
        row = await self._readers.first(f"{_FEEDS} AND f.id = ?", (feed_id,))
        return None if row is None else read_public_feed(row)

    async def entries(
        self, feed_id: FeedId, *, before: tuple[datetime, EntryId] | None, limit: int
    ) -> list[ListedEntry]:
        parameters: dict[str, object] = {"feed_id": feed_id, "limit": limit}
        if before is None:
            rows = await self._readers.all(_ENTRIES + _ORDERED, parameters)
        else:
            dated, entry_id = before
            parameters |= {"dated": to_milliseconds(dated), "id": entry_id}
            rows = await self._readers.all(_ENTRIES + _FOLLOWING + _ORDERED, parameters)
        return [
            ListedEntry(entry=read_entry(row[1:]), dated=from_milliseconds(row[0]))
            for row in rows
        ]


def read_public_feed(row: Row) -> PublicFeed:
    feed_id, url, title, description, category, created_at, head = row
    return PublicFeed(
        id=FeedId(feed_id),
        url=url,
        title=title,
        description=description,
        category=category,
        created_at=from_milliseconds(created_at),
        head=head,
    )


# --- pages ---

_NEWS = (
    "SELECT n.entry_id, e.sorted_at, f.section, f.url, f.fetch_url,"
    " coalesce(NOT f.private AND NOT f.unlisted AND f.state <> 'removed', FALSE),"
    " h.head, m.inherits_language,"
    f" {ENTRY}"
    " FROM page_news n LEFT JOIN entries e ON e.id = n.entry_id"
    " LEFT JOIN page_entries m ON m.entry_id = n.entry_id"
    "  AND m.revision = e.revision AND m.language IS NOT NULL"
    " LEFT JOIN feeds f ON f.id = e.feed_id"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
    " ORDER BY n.entry_id LIMIT ?"
)
# Entries hidden since then are left out at once.
_PAGES = (
    f"SELECT {PAGE_COLUMNS}"
    " FROM {source} CROSS JOIN entries e ON e.id = {shown}.entry_id AND e.deleted = 0"
    "  AND NOT e.unlisted CROSS JOIN feeds f ON f.id = e.feed_id"
    "  AND NOT f.private AND NOT f.unlisted AND f.state <> 'removed'"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
    " WHERE {shown}.entry_id > 0 AND {where} ORDER BY {order} LIMIT :limit"
)
_ALL = partial(_PAGES.format, source="pages p", shown="p")
_OF_SECTION = partial(
    _PAGES.format,
    source="section_pages s CROSS JOIN pages p ON p.id = s.page_id",
    shown="s",
)
# A feed that was moved may have left the section.
_IN_SECTION = (
    "s.section = :section AND {after} AND NOT EXISTS"
    " (SELECT 1 FROM page_feeds n WHERE n.feed_id = e.feed_id AND n.is_moved)"
)
_BY_ID = _ALL(where="p.id > :after", order="p.id")
_BY_CHANGE = _ALL(where="p.change > :after", order="p.change")
_BY_ID_IN_SECTION = _OF_SECTION(
    where=_IN_SECTION.format(after="s.page_id > :after"), order="s.page_id"
)
_BY_CHANGE_IN_SECTION = _OF_SECTION(
    where=_IN_SECTION.format(after="s.change > :after"), order="s.change"
)


class SqlitePages:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def feed_news(self, limit: int) -> list[FeedNews]:
        rows = await self._readers.all(
            "SELECT n.feed_id, n.is_moved, o.origin, f.url, f.fetch_url, h.head"
            " FROM page_feeds n LEFT JOIN page_origins o ON o.feed_id = n.feed_id"
            " LEFT JOIN feeds f ON f.id = n.feed_id"
            " LEFT JOIN feed_heads h ON h.feed_id = n.feed_id"
            " ORDER BY n.feed_id LIMIT ?",
            (limit,),
        )
        return [
            FeedNews(
                feed_id=FeedId(feed_id),
                is_moved=bool(is_moved),
                origin=origin,
                urls=present_urls(url, fetch_url),
                head=head,
            )
            for feed_id, is_moved, origin, url, fetch_url, head in rows
        ]

    async def set_origin(self, news: FeedNews, origin: str) -> None:
        await self._writer.submit(partial(_set_origin, news, origin))

    async def news(self, limit: int) -> list[PageNews]:
        return [read_page_news(row) for row in await self._readers.all(_NEWS, (limit,))]

    async def update(self, entries: Sequence[EntryVisibility], now: datetime) -> None:
        unit = partial(update_pages, entries, to_milliseconds(now))
        await self._writer.submit(unit)

    async def note_former(self, ending: str) -> None:
        found = await self._readers.first(
            "SELECT 1 FROM page_origins WHERE substr(origin, -length(?1)) <> ?1"
            " LIMIT 1",
            (ending,),
        )
        if found is not None:
            await self._writer.execute(
                "INSERT INTO page_feeds SELECT feed_id, 0 FROM page_origins"
                " WHERE substr(origin, -length(?1)) <> ?1"
                " ON CONFLICT (feed_id) DO NOTHING",
                (ending,),
            )

    async def position(self) -> int:
        row = await self._readers.first(LAST_CHANGE)
        return row[0] if row else 0

    async def sections(self) -> list[PageSection]:
        rows = await self._readers.all(
            "SELECT name, withdrawals FROM page_sections ORDER BY name"
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
        parameters: dict[str, object] = {"after": after, "limit": limit}
        if section:
            parameters["section"] = section
        return [read_page(row) for row in await self._readers.all(sql, parameters)]


def _set_origin(news: FeedNews, origin: str, connection: sqlite3.Connection) -> None:
    if news.is_moved or origin != news.origin:
        connection.execute(
            "INSERT OR IGNORE INTO page_news SELECT id FROM entries WHERE feed_id = ?",
            (news.feed_id,),
        )
    if news.is_moved:
        # Triggers took back what sections showed of the feed when it moved.
        connection.execute(
            "DELETE FROM page_shown WHERE feed_id = ? AND section <> ''",
            (news.feed_id,),
        )
    connection.execute(  # nothing is noted of a feed that was purged meanwhile
        "INSERT OR REPLACE INTO page_origins SELECT id, ? FROM feeds WHERE id = ?",
        (origin, news.feed_id),
    )
    # The row stays if the feed has changed once more meanwhile.
    connection.execute(
        "DELETE FROM page_feeds WHERE feed_id = :feed_id AND is_moved <= :is_moved"
        " AND (SELECT head FROM feed_heads WHERE feed_id = :feed_id) IS :head"
        " AND coalesce((SELECT fetch_url FROM feeds WHERE id = :feed_id), '') = :moved",
        {
            "feed_id": news.feed_id,
            "is_moved": news.is_moved,
            "head": news.head,
            "moved": "".join(news.urls[1:]),
        },
    )


def read_page_news(row: Row) -> PageNews:
    entry_id, dated, category, url, fetch_url, is_public, head, inherits, *entry = row
    return PageNews(
        entry_id=EntryId(entry_id),
        entry=None if entry[0] is None else read_entry(tuple(entry)),
        dated=from_milliseconds_or_none(dated),
        is_public=bool(is_public),
        category=category or "",
        urls=present_urls(url, fetch_url),
        head=head,
        inherits_language=None if inherits is None else bool(inherits),
    )


def present_urls(url: str | None, fetch_url: str | None) -> tuple[str, ...]:
    """The URLs that a feed has, of its two; none if the feed is gone."""
    return tuple(filter(None, (url, fetch_url)))


# --- the list of pages ---

_COLUMNS = f"p.shown_at, p.changed_at, {PAGE_COLUMNS.format(shown='p')}"
# Entries hidden since then are left out at once.
_SHOWN = (
    " {join} JOIN entries e ON e.id = p.entry_id AND e.deleted = 0 AND NOT e.unlisted"
    " AND EXISTS (SELECT 1 FROM feeds f WHERE f.id = e.feed_id"
    "  AND NOT f.private AND NOT f.unlisted AND f.state <> 'removed')"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
)
PAGE = (
    f"{PLACE}, places AS MATERIALIZED (SELECT id FROM pages WHERE entry_id > 0"
    f" AND dated < ((SELECT bucket FROM level3) + 1) << {SHIFTS[-1]}"
    " ORDER BY dated DESC, id DESC"
    " LIMIT :limit OFFSET coalesce(:skip - (SELECT before FROM level3), 0))"
    f" SELECT {_COLUMNS} FROM places CROSS JOIN pages p ON p.id = places.id"
    f"{_SHOWN.format(join='CROSS')} ORDER BY p.dated DESC, p.id DESC"
)
_ONE = (
    f"SELECT {_COLUMNS} FROM pages p{_SHOWN.format(join='CROSS')}"
    " WHERE p.url_hash = ? AND p.entry_id > 0"
)
_OF_ENTRIES = (
    f"SELECT {_COLUMNS} FROM page_entries m CROSS JOIN pages p ON p.id = m.page_id"
    f" AND p.entry_id = m.entry_id{_SHOWN.format(join='CROSS')}"
    " WHERE m.entry_id IN (SELECT value FROM json_each(?))"
)
CHANGES = (
    f"SELECT {_COLUMNS}"
    f" FROM pages p{_SHOWN.format(join='LEFT')}"
    " WHERE p.change > :after AND p.change <= :through ORDER BY p.change LIMIT :limit"
)
LAST_BEFORE = (
    "SELECT change FROM pages WHERE changed_at < ?"
    " ORDER BY changed_at DESC, change DESC LIMIT 1"
)
_STATE = (
    "SELECT (SELECT coalesce(sum(pages), 0) FROM page_counts WHERE level = 0),"
    " p.change, p.changed_at FROM (SELECT 1) LEFT JOIN"
    " (SELECT change, changed_at FROM pages ORDER BY change DESC LIMIT 1) p ON TRUE"
)


class SqlitePageList:
    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def state(self) -> PagesState:
        row = await self._readers.first(_STATE)
        count, change, changed_at = row or (0, None, None)
        return PagesState(
            count=count,
            change=change or 0,
            changed_at=from_milliseconds(changed_at or 0),
        )

    async def page(self, *, skip: int, limit: int) -> list[ListedPage]:
        rows = await self._readers.all(PAGE, {"skip": skip, "limit": limit})
        return [read_listed_page(row) for row in rows]

    async def find(self, url: str) -> ListedPage | None:
        row = await self._readers.first(_ONE, (hash_key(url),))
        return None if row is None else read_listed_page(row)

    async def of_entries(self, ids: Sequence[EntryId]) -> list[ListedPage]:
        rows = await self._readers.all(_OF_ENTRIES, (pack_ids(ids),))
        return [read_listed_page(row) for row in rows]

    async def last_before(self, moment: datetime) -> int:
        row = await self._readers.first(LAST_BEFORE, (to_milliseconds(moment),))
        return row[0] if row else 0

    async def changes(
        self, *, after: int, through: int, limit: int
    ) -> list[PageChange]:
        parameters = {"after": after, "through": through, "limit": limit}
        return [
            read_page_change(row)
            for row in await self._readers.all(CHANGES, parameters)
        ]


def read_listed_page(row: Row) -> ListedPage:
    shown_at, _, *page = row
    return ListedPage(page=read_page(tuple(page)), shown_at=from_milliseconds(shown_at))


def read_page_change(row: Row) -> PageChange:
    """Read a page and its change; a row without an entry is a page that is gone."""
    _, changed_at, _, url, _, _, change, _, _, *entry = row
    return PageChange(
        change=change,
        url=url,
        changed_at=from_milliseconds(changed_at),
        page=None if entry[0] is None else read_listed_page(row),
    )
