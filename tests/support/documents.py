"""Small documents, and entries as the parser makes them, for tests of what is news."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

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


def rss(
    *items: str,
    head: str = "<title>Feed</title>",
    root: str = "",
    channel: str = "",
    prolog: str = "",
    tail: str = "",
) -> bytes:
    """An RSS document. ``root``, ``channel``: attributes, each after a space."""
    listed = "\n".join(items)
    return (
        f'{prolog}<rss version="2.0"{root}><channel{channel}>{head}{listed}{tail}'
        "</channel></rss>"
    ).encode()


def atom(*entries: str, head: str = "", root: str = "") -> bytes:
    """An Atom document. ``root``: attributes, each after a space."""
    listed = "".join(entries)
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom"{root}>{head}{listed}</feed>'
    ).encode()


def an_entry(key: str, *, link: str = "", text: str = "", **more: Any) -> Entry:
    """An entry as the parser makes it; ``more`` replaces any member."""
    entry = Entry(
        key=key,
        id=f"tag:example.org,2026:{key}",
        title=f"Title of {key}",
        links=(Link(href=link or f"https://example.org/{key}"),),
        content=Text(value=text or f"<p>Content of {key}</p>"),
    )
    return replace(entry, **more)


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
