"""The documents of a server (OpenFeeder 2.1, 3.2 to 3.4 and 8), as bytes.

Members come in the order of the specification; the same values give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from protocols.openfeeder.write.content_queries import (
    ErrorCode,
    SyncPoint,
    encode_token,
    format_moment,
)
from protocols.openfeeder.write.page_chunks import Chunk, EntryPage, PageFacts
from protocols.scp.collection import timestamp

VERSION: Final = "1.0"
SCHEMA: Final = "openfeeder/1.0"
_Members = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherFacts:
    """The content of the discovery document. ``contact`` "": none."""

    name: str
    url: str
    language: str
    description: str
    contact: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A page with its relevance; None if there was no query."""

    facts: PageFacts
    relevance: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    url: str
    deleted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """What has changed. ``as_of`` is where a reader continues.

    ``tracks_deletions`` False: ``deleted`` may lack pages that are gone.
    ``is_truncated``: there is more after ``as_of``.
    """

    since: datetime | None
    until: datetime | None
    as_of: SyncPoint
    added: Sequence[PageFacts] = ()
    updated: Sequence[PageFacts] = ()
    deleted: Sequence[Tombstone] = ()
    tracks_deletions: bool = True
    is_truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """How long ago a page was made from its entry; None: just now."""

    seconds: int | None = None


def render_discovery(
    site: PublisherFacts, endpoint: str, capabilities: Sequence[str]
) -> bytes:
    about: _Members = {
        "name": site.name,
        "url": site.url,
        "language": site.language,
        "description": site.description,
    }
    document: _Members = {
        "version": VERSION,
        "site": about,
        "feed": {"endpoint": endpoint, "type": "paginated"},
        "capabilities": list(capabilities),
    }
    if site.contact:
        document["contact"] = site.contact
    return orjson.dumps(document)


def render_index(items: Sequence[Scored], *, page: int, total_pages: int) -> bytes:
    """The index of all pages, or of those that match a query."""
    return orjson.dumps(
        {
            "schema": SCHEMA,
            "type": "index",
            "page": page,
            "total_pages": total_pages,
            "items": [_scored(each) for each in items],
        }
    )


def render_page(
    page: EntryPage,
    chunks: Sequence[Chunk],
    scores: Mapping[str, float],
    cached: Cached,
) -> bytes:
    """``chunks`` are those returned; ``scores`` are by chunk id, if there was a
    query.
    """
    facts = page.facts
    return orjson.dumps(
        {
            "schema": SCHEMA,
            "url": facts.url,
            "title": facts.title,
            "author": facts.author or None,
            "published": _moment(facts.published),
            "updated": _moment(facts.updated),
            "language": facts.language,
            "summary": facts.summary,
            "chunks": [
                {
                    "id": each.id,
                    "text": each.text,
                    "type": each.type,
                    "relevance": scores.get(each.id),
                }
                for each in chunks
            ],
            "meta": {
                "total_chunks": len(page.chunks),
                "returned_chunks": len(chunks),
                "cached": cached.seconds is not None,
                "cache_age_seconds": cached.seconds,
            },
        }
    )


def render_sync(result: SyncResult) -> bytes:
    """A differential answer (3.4); ``since`` and ``until`` are repeated if
    requested.
    """
    sync: _Members = {}
    if result.since is not None:
        sync["since"] = format_moment(result.since)
    if result.until is not None:
        sync["until"] = format_moment(result.until)
    sync["as_of"] = format_moment(result.as_of.moment)
    sync["sync_token"] = encode_token(result.as_of)
    if not result.tracks_deletions:
        sync["deleted_tracking"] = False
    if result.is_truncated:
        sync["truncated"] = True
    sync["counts"] = {
        "added": len(result.added),
        "updated": len(result.updated),
        "deleted": len(result.deleted),
    }
    return orjson.dumps(
        {
            "openfeeder_version": VERSION,
            "sync": sync,
            "added": [_changed(each) for each in result.added],
            "updated": [_changed(each) for each in result.updated],
            "deleted": [
                {"url": each.url, "deleted_at": format_moment(each.deleted_at)}
                for each in result.deleted
            ],
        }
    )


def render_error(code: ErrorCode, message: str) -> bytes:
    error = {"code": code, "message": message}
    return orjson.dumps({"schema": SCHEMA, "error": error})


def _scored(each: Scored) -> _Members:
    item = _item(each.facts)
    return item if each.relevance is None else {**item, "relevance": each.relevance}


def _item(facts: PageFacts) -> _Members:
    return {
        "url": facts.url,
        "title": facts.title,
        "published": _moment(facts.published),
        "summary": facts.summary,
    }


def _changed(facts: PageFacts) -> _Members:
    return {**_item(facts), "updated": _moment(facts.updated)}


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else timestamp(moment)
