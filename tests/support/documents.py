"""Entries and documents as the parser would make them, for tests of what is news."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from protocols.model import (
    Deletion,
    Entry,
    Feed,
    FeedFormat,
    Hints,
    Link,
    ParsedFeed,
    Text,
)


def an_entry(
    key: str,
    *,
    title: str = "",
    link: str = "",
    content: str = "",
    published: datetime | None = None,
    updated: datetime | None = None,
) -> Entry:
    return Entry(
        key=key,
        id=key,
        title=title or f"title of {key}",
        links=(Link(href=link or f"https://feed.example/{key}"),),
        content=Text(value=content or f"content of {key}"),
        published=published,
        updated=updated,
    )


def a_document(
    *entries: Entry,
    deletions: Iterable[Deletion] = (),
    hints: Hints | None = None,
    format: FeedFormat = FeedFormat.RSS,
    title: str = "A feed",
) -> ParsedFeed:
    return ParsedFeed(
        format=format,
        feed=Feed(title=title),
        entries=entries,
        deletions=tuple(deletions),
        hints=hints or Hints(),
    )


def entries_named(*keys: str) -> tuple[Entry, ...]:
    return tuple(an_entry(key) for key in keys)
