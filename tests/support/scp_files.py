"""Collections as a publisher makes them, and readings of them in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import orjson

from protocols.scp.read.collection_heads import HeadRules
from protocols.scp.read.collection_reader import CollectionPage, CollectionReader
from protocols.scp.read.unpacking import SizeLimits

NOW = datetime(2026, 1, 3, tzinfo=UTC)
RULES = HeadRules(now=NOW)
HEAD: dict[str, Any] = {
    "id": "all-1",
    "section": "all",
    "type": "snapshot",
    "generated": "2026-01-02T00:00:00Z",
    "version": "0.1",
}
PAGE: dict[str, Any] = {
    "url": "https://example.com/a",
    "title": "A page",
    "description": "What it is about",
    "modified": "2026-01-01T12:00:00Z",
    "language": "en",
    "content": [{"type": "text", "text": "Words"}],
}


def page(**changes: Any) -> dict[str, Any]:
    """A page; members that are None are left out."""
    return {
        name: value for name, value in (PAGE | changes).items() if value is not None
    }


def head(**changes: Any) -> dict[str, Any]:
    members = {name: v for name, v in (HEAD | changes).items() if v is not None}
    return {"collection": members}


def lines(*documents: Any) -> bytes:
    return b"".join(orjson.dumps(each) + b"\n" for each in documents)


def collection(*pages: Any, **changes: Any) -> bytes:
    """A collection. ``changes``: those of its head."""
    return lines(head(**changes), *pages)


def in_pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = [0, *sorted({min(each, len(data)) for each in cuts}), len(data)]
    return [data[a:b] for a, b in pairwise(places)]


def read(
    pieces: bytes | Sequence[bytes],
    rules: HeadRules = RULES,
    limits: SizeLimits | None = None,
) -> tuple[CollectionReader, list[CollectionPage]]:
    reader = CollectionReader(rules, limits)
    pages = []
    for piece in [pieces] if isinstance(pieces, bytes) else pieces:
        pages += list(reader.feed(piece))
    return reader, [*pages, *reader.finish()]
