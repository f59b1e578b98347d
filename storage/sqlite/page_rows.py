"""Rows of pages."""

from __future__ import annotations

from storage.records import PageId, PublishedPage
from storage.sqlite.log_rows import ENTRY, read_entry
from storage.sqlite.readers import Row
from storage.sqlite.times import from_milliseconds

PAGE_COLUMNS = (
    "p.id, p.url, coalesce({shown}.language, ''), {shown}.modified, {shown}.change,"
    " {shown}.revision, h.head,"
    f" {ENTRY}"
)
"""Of pages p, of what shows an entry of them, and of their feeds' heads h."""


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
