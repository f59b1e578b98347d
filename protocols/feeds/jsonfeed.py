"""JSON Feed 1.0 and 1.1 (jsonfeed.org)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

from msgspec.structs import replace

from protocols.errors import InvalidDocument, NotAFeed
from protocols.feeds.assembly import assemble
from protocols.feeds.context import ParseContext
from protocols.feeds.drafts import HeadDraft
from protocols.feeds.extensions import Json
from protocols.feeds.jsonfeeddrafts import date_of_item, read_head, read_item
from protocols.feeds.jsonitems import read_unknown
from protocols.feeds.jsonvalues import (
    list_of,
    objects_of,
    text_of,
)
from protocols.feeds.limits import MAX_ENTRIES, newest
from protocols.identity import fingerprint
from protocols.model import FeedFormat, ParsedFeed
from protocols.urls import is_web_url

Problems = tuple[str, ...]

MOST_PROBLEMS: Final = 10
_VERSION_HOST: Final = "jsonfeed.org/version/"
_ID_KEYS: Final = frozenset({"id", "url"})
_TELLING_KEYS: Final = frozenset({"content_html", "content_text", "date_published"})


def is_json_feed(document: dict[str, Json]) -> bool:
    """Its version is a URL of jsonfeed.org."""
    return _VERSION_HOST in text_of(document, "version")


def read_json_feed(value: Json, body: bytes, context: ParseContext) -> ParsedFeed:
    """Read what a body in UTF-8 says. Raises `NotAFeed` for any other JSON, and
    `InvalidDocument` for one whose items are no array."""
    document, problem = _feed_of(value)
    if document is None:
        raise NotAFeed("a JSON document")
    base = context.url if is_web_url(context.url) else ""
    head = read_head(document, base)
    items, problems = _items_of(document)
    _make_ids_exact(items, body)

    def read(unknown: Sequence[dict[str, Json]]) -> ParsedFeed:
        drafts = [read_item(item, base) for item in newest(unknown, date_of_item)]
        return assemble(FeedFormat.JSON_FEED, head, drafts, written=len(unknown))

    if context.known is None or not 0 < len(items) <= MAX_ENTRIES:
        parsed = read(items)
    else:
        parsed = read_unknown(items, context.known, _setting_of(head, base), read)
    if problem:
        problems = (problem, *problems)
    if not problems:
        return parsed
    path = "unlabelled" if problem else parsed.path
    return replace(parsed, path=path, problems=(*problems, *parsed.problems))


def _items_of(document: dict[str, Json]) -> tuple[list[dict[str, Json]], Problems]:
    """And what is said of those that are left out. None at all is as good as none."""
    listed = document.get("items")
    if listed is None:
        return [], ()
    if not isinstance(listed, list):
        raise InvalidDocument("/items", "expected an array")
    items = [each for each in listed if type(each) is dict]
    if len(items) == len(listed):
        return items, ()
    odd = (n for n, each in enumerate(listed) if type(each) is not dict)
    named = islice(odd, MOST_PROBLEMS)
    return items, tuple(f"/items/{n}: expected an object" for n in named)


def _setting_of(head: HeadDraft, base: str) -> int:
    """A hash of all that an item's reading depends on beside itself (`assemble`)."""
    parts = (
        FeedFormat.JSON_FEED.value,
        base,
        head.first_link("alternate"),
        head.language,
        head.authors,
    )
    return fingerprint(repr(parts))


def _feed_of(document: Json) -> tuple[dict[str, Json] | None, str]:
    """The feed, if it is one, and what it lacks: a version, or even a head."""
    if isinstance(document, list) and len(document) == 1:
        only = document[0]
        if isinstance(only, dict) and is_json_feed(only):
            return only, "a list of one feed was read as the feed"
    if isinstance(document, list) and _are_items(document):
        return {"items": document}, "a list was read as the items of a feed"
    if not isinstance(document, dict):
        return None, ""
    if is_json_feed(document):
        return document, ""
    is_feed = _are_items(list_of(document, "items"))
    return (document, "a feed without a version") if is_feed else (None, "")


def _are_items(values: list[Json]) -> bool:
    """Whether these have what only items of a JSON Feed have."""
    return bool(values) and all(
        isinstance(each, dict)
        and _ID_KEYS.intersection(each)
        and _TELLING_KEYS.intersection(each)
        for each in values
    )


def _make_ids_exact(items: list[dict[str, Json]], body: bytes) -> None:
    """Numbers of more than 64 bits are read as floats, which many of them share."""
    for item in items:
        if type(item.get("id")) is float:
            break
    else:
        return
    with suppress(ValueError, RecursionError):
        document = json.loads(body, parse_float=str, parse_int=str)
        if isinstance(document, list):
            document = document[0] if "items" in document[0] else {"items": document}
        for item, exact in zip(items, objects_of(document, "items"), strict=True):
            if isinstance(item.get("id"), float):
                item["id"] = exact["id"]
