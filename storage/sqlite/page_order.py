"""`storage.interface.PageListStore` on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from storage.records import (
    EntryId,
    ListedPage,
    PageChange,
    PagesState,
)
from storage.sqlite.id_lists import pack_ids
from storage.sqlite.log_rows import hash_key
from storage.sqlite.page_counts import PLACE, SHIFTS
from storage.sqlite.page_rows import PAGE_COLUMNS, read_page
from storage.sqlite.readers import Readers, Row
from storage.sqlite.times import from_milliseconds, to_milliseconds

_COLUMNS = f"p.shown_at, p.changed_at, {PAGE_COLUMNS.format(shown='p')}"
# What has been hidden since it was judged is left out at once.
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
        return [_read_listed(row) for row in rows]

    async def find(self, url: str) -> ListedPage | None:
        row = await self._readers.first(_ONE, (hash_key(url),))
        return None if row is None else _read_listed(row)

    async def of_entries(self, ids: Sequence[EntryId]) -> list[ListedPage]:
        rows = await self._readers.all(_OF_ENTRIES, (pack_ids(ids),))
        return [_read_listed(row) for row in rows]

    async def last_before(self, moment: datetime) -> int:
        row = await self._readers.first(LAST_BEFORE, (to_milliseconds(moment),))
        return row[0] if row else 0

    async def changes(
        self, *, after: int, through: int, limit: int
    ) -> list[PageChange]:
        parameters = {"after": after, "through": through, "limit": limit}
        return [
            _read_change(row) for row in await self._readers.all(CHANGES, parameters)
        ]


def _read_listed(row: Row) -> ListedPage:
    shown_at, _, *page = row
    return ListedPage(page=read_page(tuple(page)), shown_at=from_milliseconds(shown_at))


def _read_change(row: Row) -> PageChange:
    """Without an entry to show, the page is gone."""
    _, changed_at, _, url, _, _, change, _, _, *entry = row
    return PageChange(
        change=change,
        url=url,
        changed_at=from_milliseconds(changed_at),
        page=None if entry[0] is None else _read_listed(row),
    )
