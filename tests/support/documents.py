"""Small documents, and entries as the parser makes them, for tests of what is news."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from protocols.feeds import ParseContext
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

CONTEXT = ParseContext(
    url="https://site.example/feed.xml", now=datetime(2026, 5, 1, tzinfo=UTC)
)


def context(url: str = CONTEXT.url, content_type: str = "") -> ParseContext:
    return ParseContext(url=url, content_type=content_type, now=CONTEXT.now)


def rss(items: str = "", head: str = "<title>Feed</title>", prolog: str = "") -> bytes:
    document = f'{prolog}<rss version="2.0"><channel>{head}{items}</channel></rss>'
    return document.encode()


def atom(inner: str) -> bytes:
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{inner}</feed>'.encode()


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
