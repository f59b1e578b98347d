"""Small feed documents for tests, and the context they are read in."""

from __future__ import annotations

from datetime import UTC, datetime

from protocols.feeds import ParseContext

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
