"""`storage.interface.PageStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial

from storage.records import (
    EntryId,
    FeedId,
    FeedNews,
    JudgedEntry,
    PageId,
    PageNews,
    PageSection,
    PublishedPage,
)
from storage.sqlite.log_rows import ENTRY, read_entry
from storage.sqlite.page_judging import LAST_CHANGE, judge_all
from storage.sqlite.page_rows import PAGE_COLUMNS, read_page
from storage.sqlite.readers import Readers, Row
from storage.sqlite.times import from_milliseconds_or_none, to_milliseconds
from storage.sqlite.writer import Writer

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
# What has been hidden since it was judged is left out at once.
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
                urls=_urls(url, fetch_url),
                head=head,
            )
            for feed_id, is_moved, origin, url, fetch_url, head in rows
        ]

    async def judge_feed(self, news: FeedNews, origin: str) -> None:
        await self._writer.submit(partial(_judge_feed, news, origin))

    async def news(self, limit: int) -> list[PageNews]:
        return [_read_news(row) for row in await self._readers.all(_NEWS, (limit,))]

    async def judge(self, judged: Sequence[JudgedEntry], now: datetime) -> None:
        unit = partial(judge_all, judged, to_milliseconds(now))
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


def _judge_feed(news: FeedNews, origin: str, connection: sqlite3.Connection) -> None:
    if news.is_moved or origin != news.origin:
        connection.execute(
            "INSERT OR IGNORE INTO page_news SELECT id FROM entries WHERE feed_id = ?",
            (news.feed_id,),
        )
    if news.is_moved:
        # What sections showed of it was taken back as it moved (see the triggers).
        connection.execute(
            "DELETE FROM page_shown WHERE feed_id = ? AND section <> ''",
            (news.feed_id,),
        )
    connection.execute(  # of a feed that was purged meanwhile nothing is noted
        "INSERT OR REPLACE INTO page_origins SELECT id, ? FROM feeds WHERE id = ?",
        (origin, news.feed_id),
    )
    # What has changed once more meanwhile stays news.
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


def _read_news(row: Row) -> PageNews:
    entry_id, dated, section, url, fetch_url, is_public, head, inherits, *entry = row
    return PageNews(
        entry_id=EntryId(entry_id),
        entry=None if entry[0] is None else read_entry(tuple(entry)),
        dated=from_milliseconds_or_none(dated),
        is_public=bool(is_public),
        section=section or "",
        urls=_urls(url, fetch_url),
        head=head,
        inherits_language=None if inherits is None else bool(inherits),
    )


def _urls(url: str | None, fetch_url: str | None) -> tuple[str, ...]:
    """None for a feed that is there no more."""
    return tuple(filter(None, (url, fetch_url)))
