"""JSON Feed 1.0 and 1.1 (jsonfeed.org)."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

import orjson

from protocols.dates import parse_date
from protocols.errors import LimitExceeded, MalformedDocument, NotAFeed
from protocols.feeds.assembly import assemble
from protocols.feeds.constructs import make_link
from protocols.feeds.context import ParseContext
from protocols.feeds.drafts import Draft, EntryDraft, HeadDraft
from protocols.feeds.extensions import Groups, Json, keep_value
from protocols.feeds.limits import MAX_ENTRIES, MAX_EXTENSION_DEPTH, MAX_JSON_DEPTH
from protocols.model import Author, Category, FeedFormat, ParsedFeed, Text
from protocols.text import collapse
from protocols.urls import is_web_url, resolve

_VERSION_HOST: Final = "jsonfeed.org/version/"
_ID_KEYS: Final = frozenset({"id", "url"})
_TELLING_KEYS: Final = frozenset({"content_html", "content_text", "date_published"})
_HEAD_KEYS: Final = frozenset(
    [
        "version",
        "title",
        "home_page_url",
        "feed_url",
        "description",
        "icon",
        "favicon",
        "author",
        "authors",
        "language",
        "hubs",
        "items",
        "next_url",
    ]
)
_ITEM_KEYS: Final = frozenset(
    [
        "id",
        "url",
        "external_url",
        "title",
        "content_html",
        "summary",
        "image",
        "banner_image",
        "date_published",
        "date_modified",
        "author",
        "authors",
        "tags",
        "language",
        "attachments",
    ]
)
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""What no other format can say: ids must be the same in all."""
_LIST_KEYS: Final = frozenset({"attachments", "authors", "hubs", "tags"})
_AUTHOR_KEYS: Final = frozenset({"name", "url", "avatar"})
_ATTACHMENT_KEYS: Final = frozenset({"url", "mime_type", "title", "size_in_bytes"})


def read_json_feed(body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a JSON Feed in UTF-8. Raises `NotAFeed` for any other JSON."""
    document, problem = _feed_of(_load(body))
    if document is None:
        raise NotAFeed("a JSON document")
    base = context.url if is_web_url(context.url) else ""
    head = _read_head(document, base)
    items = _objects(document, "items")
    _make_ids_exact(items, body)
    drafts = [_read_item(item, base) for item in items[:MAX_ENTRIES]]
    parsed = assemble(FeedFormat.JSON_FEED, head, drafts, written=len(items))
    if not problem:
        return parsed
    return replace(parsed, path="unlabelled", problems=(problem, *parsed.problems))


def _feed_of(document: Json) -> tuple[dict[str, Json] | None, str]:
    """The feed, if it is one, and what it lacks: a version, or even a head."""
    if isinstance(document, list) and len(document) == 1:
        only = document[0]
        if isinstance(only, dict) and _VERSION_HOST in _text(only, "version"):
            return only, "a list of one feed was read as the feed"
    if isinstance(document, list) and _are_items(document):
        return {"items": document}, "a list was read as the items of a feed"
    if not isinstance(document, dict):
        return None, ""
    if _VERSION_HOST in _text(document, "version"):
        return document, ""
    is_feed = _are_items(_list(document, "items"))
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
    if not any(isinstance(item.get("id"), float) for item in items):
        return
    with suppress(ValueError, RecursionError):
        document = json.loads(body, parse_float=str, parse_int=str)
        if isinstance(document, list):
            document = document[0] if "items" in document[0] else {"items": document}
        for item, exact in zip(items, _objects(document, "items"), strict=True):
            if isinstance(item.get("id"), float):
                item["id"] = exact["id"]


def _load(body: bytes) -> Json:
    try:
        document: Json = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "depth limit" in error.msg:
            raise LimitExceeded("the depth of nested JSON", MAX_JSON_DEPTH) from None
        raise MalformedDocument(error.msg, error.lineno, error.colno) from None
    return document


def _read_head(feed: dict[str, Json], base: str) -> HeadDraft:
    head = HeadDraft(
        title=collapse(_text(feed, "title")),
        subtitle=collapse(_text(feed, "description")),
        language=_text(feed, "language"),
        logo=resolve(_text(feed, "icon"), base),
        icon=resolve(_text(feed, "favicon"), base),
    )
    head.authors = _authors(feed, base, head.extensions)
    _link(head, feed, "home_page_url", base, "alternate")
    _link(head, feed, "feed_url", base, "self", "application/feed+json")
    _link(head, feed, "next_url", base, "next", "application/feed+json")
    for hub in _objects(feed, "hubs"):
        # Other types, such as rssCloud, are told in other ways and no rel=hub.
        is_websub = _text(hub, "type").lower() == "websub"
        if is_websub:
            _link(head, hub, "url", base, "hub")
        if not is_websub or len(hub) > 2:
            keep_value(head.extensions, "jsonfeed", "hubs", _shallow(hub))
    _keep_others(head, feed, _HEAD_KEYS)
    return head


def _read_item(item: dict[str, Json], base: str) -> EntryDraft:
    html, text = _text(item, "content_html"), _text(item, "content_text")
    summary = _text(item, "summary")
    draft = EntryDraft(
        id=_CONTROLS.sub("", _text(item, "id")),
        title=collapse(_text(item, "title")),
        content=Text(value=html or text, type="html" if html else "text")
        if html or text
        else None,
        summary=Text(value=summary, type="text") if summary else None,
        language=_text(item, "language"),
        base=base,
    )
    draft.published = _date(item, "date_published", draft.extensions)
    draft.updated = _date(item, "date_modified", draft.extensions)
    draft.authors = _authors(item, base, draft.extensions)
    _link(draft, item, "url", base, "alternate")
    _link(draft, item, "external_url", base, "related")
    _link(draft, item, "image", base, "image")
    _link(draft, item, "banner_image", base, "banner")
    for attachment in _objects(item, "attachments"):
        _attach(draft, attachment, base)
    for tag in _list(item, "tags"):
        draft.add_category(Category(term=collapse(_string(tag))))
    _keep_others(draft, item, _ITEM_KEYS if html else _ITEM_KEYS | {"content_text"})
    return draft


def _date(item: dict[str, Json], name: str, extensions: Groups) -> datetime | None:
    """A date; one that cannot be read is kept as it is written."""
    written = _text(item, name)
    date = parse_date(written)
    if date is None and written:
        keep_value(extensions, "jsonfeed", name, written)
    return date


def _attach(draft: EntryDraft, attachment: dict[str, Json], base: str) -> None:
    href = resolve(_text(attachment, "url"), base)
    if href:
        draft.add_link(
            make_link(
                href,
                "enclosure",
                _text(attachment, "mime_type"),
                collapse(_text(attachment, "title")),
                _text(attachment, "size_in_bytes"),
            )
        )
    if not _ATTACHMENT_KEYS.issuperset(attachment):
        keep_value(draft.extensions, "jsonfeed", "attachments", _shallow(attachment))


def _authors(holder: dict[str, Json], base: str, extensions: Groups) -> list[Author]:
    """Version 1.1 has ``authors``; the ``author`` of 1.0 counts without them."""
    listed = _objects(holder, "authors")
    single = holder.get("author")
    if not listed and isinstance(single, dict):
        listed = [single]
    elif listed and isinstance(single, dict) and single not in listed:
        keep_value(extensions, "jsonfeed", "author", _shallow(single))
    for author in listed:
        if not _AUTHOR_KEYS.issuperset(author):
            keep_value(extensions, "jsonfeed", "authors", _shallow(author))
    authors = [_author(each, base) for each in listed]
    return [author for author in authors if author != Author()]


def _author(author: dict[str, Json], base: str) -> Author:
    avatar = resolve(_text(author, "avatar"), base)
    return Author(
        name=collapse(_text(author, "name")),
        uri=resolve(_text(author, "url"), base),
        links=(make_link(avatar, "picture"),) if avatar else (),
    )


def _link(
    draft: Draft,
    holder: dict[str, Json],
    name: str,
    base: str,
    rel: str,
    type: str = "",
) -> None:
    href = resolve(_text(holder, name), base)
    if href:
        draft.add_link(make_link(href, rel, type))


def _keep_others(draft: Draft, holder: dict[str, Json], known: frozenset[str]) -> None:
    """Keep custom keys (``_name``), what the entry model has no place for, and what is
    of another type than its key says."""
    for name, value in holder.items():
        is_read = name in known and isinstance(value, _types_of(name))
        if not is_read and value not in (None, "", [], {}):
            keep_value(draft.extensions, "jsonfeed", name, _shallow(value))


def _types_of(name: str) -> tuple[type, ...]:
    if name == "items":
        return (object,)  # whatever they are, they are no extension of the head
    if name in _LIST_KEYS:
        return (list,)
    return (dict,) if name == "author" else (str, int, float)


def _shallow(value: Json, depth: int = MAX_EXTENSION_DEPTH) -> Json:
    """A value without what is nested deeper than any renderer would follow."""
    if not isinstance(value, list | dict):
        return value
    if not depth:
        return None
    if isinstance(value, list):
        return [_shallow(each, depth - 1) for each in value]
    return {name: _shallow(each, depth - 1) for name, each in value.items()}


def _text(holder: dict[str, Json], name: str) -> str:
    return _string(holder.get(name))


def _string(value: Json) -> str:
    """Numbers are taken as text: ids and sizes come as either."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def _list(holder: dict[str, Json], name: str) -> list[Json]:
    value = holder.get(name)
    return value if isinstance(value, list) else []


def _objects(holder: dict[str, Json], name: str) -> list[dict[str, Json]]:
    return [each for each in _list(holder, name) if isinstance(each, dict)]
