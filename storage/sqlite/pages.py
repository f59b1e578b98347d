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

from .log_rows import ENTRY, read_entry
from .page_judging import judge_all
from .page_rows import PAGE_COLUMNS, read_page
from .readers import Readers, Row
from .times import from_milliseconds_or_none, to_milliseconds
from .writer import Writer

_NEWS = (
    "SELECT n.entry_id, e.sorted_at, f.section,"
    " coalesce(NOT f.private AND f.state <> 'removed', FALSE), h.head,"
    f" {ENTRY}"
    " FROM page_news n LEFT JOIN entries e ON e.id = n.entry_id"
    " LEFT JOIN feeds f ON f.id = e.feed_id"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
    " ORDER BY n.entry_id LIMIT ?"
)
# What has been hidden since it was judged is left out at once.
_PAGES = (
    f"SELECT {PAGE_COLUMNS}"
    " FROM {source} CROSS JOIN entries e ON e.id = p.entry_id AND e.deleted = 0"
    "  AND NOT e.unlisted CROSS JOIN feeds f ON f.id = e.feed_id"
    "  AND NOT f.private AND NOT f.unlisted AND f.state <> 'removed'"
    " LEFT JOIN feed_heads h ON h.feed_id = e.feed_id"
    " WHERE p.entry_id > 0 AND {where} ORDER BY {order} LIMIT :limit"
)
_ALL = _PAGES.format(source="pages p", where="p.id > :after", order="p.id")
_OF_SECTION = _PAGES.format(
    source="(SELECT DISTINCT page_id FROM page_entries"
    "  WHERE section = :section AND page_id > :after ORDER BY page_id) m"
    " CROSS JOIN pages p ON p.id = m.page_id",
    where="TRUE",
    order="p.id",
)
_CHANGED = _PAGES.format(
    source="pages p",
    where="p.change > :after AND (:section = '' OR EXISTS (SELECT 1"
    " FROM page_entries m WHERE m.page_id = p.id AND m.section = :section))",
    order="p.change",
)


class SqlitePages:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def feed_news(self, limit: int) -> list[FeedNews]:
        rows = await self._readers.all(
            "SELECT n.feed_id, n.is_moved, u.feed_id IS NOT NULL, h.head"
            " FROM page_feeds n LEFT JOIN page_unlisted u ON u.feed_id = n.feed_id"
            " LEFT JOIN feed_heads h ON h.feed_id = n.feed_id"
            " ORDER BY n.feed_id LIMIT ?",
            (limit,),
        )
        return [
            FeedNews(
                feed_id=FeedId(feed_id),
                is_moved=bool(is_moved),
                was_unlisted=bool(was_unlisted),
                head=head,
            )
            for feed_id, is_moved, was_unlisted, head in rows
        ]

    async def judge_feed(self, news: FeedNews, *, is_unlisted: bool) -> None:
        await self._writer.submit(partial(_judge_feed, news, is_unlisted))

    async def news(self, limit: int) -> list[PageNews]:
        return [_read_news(row) for row in await self._readers.all(_NEWS, (limit,))]

    async def judge(self, judged: Sequence[JudgedEntry], now: datetime) -> None:
        unit = partial(judge_all, judged, to_milliseconds(now))
        await self._writer.submit(unit)

    async def position(self) -> int:
        row = await self._readers.first("SELECT coalesce(max(change), 0) FROM pages")
        return row[0] if row else 0

    async def sections(self) -> list[PageSection]:
        rows = await self._readers.all(
            "SELECT name, withdrawn FROM page_sections ORDER BY name"
        )
        return [PageSection(name=name, withdrawn=last) for name, last in rows]

    async def pages(
        self, section: str, *, after: PageId, limit: int
    ) -> list[PublishedPage]:
        parameters: dict[str, object] = {"after": after, "limit": limit}
        if section:
            parameters["section"] = section
        sql = _OF_SECTION if section else _ALL
        return [read_page(row) for row in await self._readers.all(sql, parameters)]

    async def changed(
        self, section: str, *, after: int, limit: int
    ) -> list[PublishedPage]:
        parameters = {"after": after, "section": section, "limit": limit}
        rows = await self._readers.all(_CHANGED, parameters)
        return [read_page(row) for row in rows]


def _judge_feed(
    news: FeedNews, is_unlisted: bool, connection: sqlite3.Connection
) -> None:
    if news.is_moved or is_unlisted != news.was_unlisted:
        connection.execute(
            "INSERT OR IGNORE INTO page_news SELECT id FROM entries WHERE feed_id = ?",
            (news.feed_id,),
        )
    connection.execute("DELETE FROM page_unlisted WHERE feed_id = ?", (news.feed_id,))
    if is_unlisted:
        connection.execute(  # of a feed that was purged meanwhile nothing is noted
            "INSERT INTO page_unlisted SELECT id FROM feeds WHERE id = ?",
            (news.feed_id,),
        )
    # What has changed once more meanwhile stays news.
    connection.execute(
        "DELETE FROM page_feeds WHERE feed_id = :feed_id AND is_moved <= :is_moved"
        " AND (SELECT head FROM feed_heads WHERE feed_id = :feed_id) IS :head",
        {"feed_id": news.feed_id, "is_moved": news.is_moved, "head": news.head},
    )


def _read_news(row: Row) -> PageNews:
    entry_id, dated, section, is_public, head, *entry = row
    return PageNews(
        entry_id=EntryId(entry_id),
        entry=None if entry[0] is None else read_entry(tuple(entry)),
        dated=from_milliseconds_or_none(dated),
        is_public=bool(is_public),
        section=section or "",
        head=head,
    )
