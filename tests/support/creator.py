"""Creators' ``feed.json`` documents with as few words as a test needs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from protocols.feeds import ParseContext, parse
from protocols.model import ParsedFeed

URL = "https://mara.example/feed.json"
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def an_item(slug: str, **changes: Any) -> dict[str, Any]:
    """A valid item; a change to ``...`` leaves the member out."""
    item = {
        "slug": slug,
        "title": f"On {slug}",
        "summary": f"What there is to say of {slug}.",
        "url": f"https://mara.example/posts/{slug}",
        "publishedAt": "2026-04-20T10:00:00Z",
        "updatedAt": "2026-04-20T10:00:00Z",
        "kinds": ["text"],
        **changes,
    }
    return {name: value for name, value in item.items() if value is not ...}


def a_creator_feed(*items: Any, **changes: Any) -> dict[str, Any]:
    """A document of items, or of items with these slugs."""
    made = [an_item(each) if isinstance(each, str) else each for each in items]
    document = {
        "version": 1,
        "creator": {"handle": "mara", "language": "en"},
        "items": made,
        **changes,
    }
    return {name: value for name, value in document.items() if value is not ...}


def read(document: Any, *, known: bytes | None = None) -> ParsedFeed:
    context = ParseContext(url=URL, now=NOW, known=known)
    return parse(json.dumps(document).encode(), context)
