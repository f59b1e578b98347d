"""JSON Feed 1.0 and 1.1 (jsonfeed.org)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec.structs import replace

from protocols.dates import parse_date
from protocols.feeds.assembly import assemble
from protocols.feeds.constructs import make_link
from protocols.feeds.context import ParseContext
from protocols.feeds.drafts import Draft, EntryDraft, HeadDraft
from protocols.feeds.extensions import Groups, Json, keep_value
from protocols.feeds.jsonvalues import list_of, objects_of, shallow, string_of, text_of
from protocols.feeds.known_entries import read_unknown
from protocols.feeds.limits import MAX_ENTRIES, newest
from protocols.identity import fingerprint
from protocols.languages import language_tag
from protocols.model import Author, FeedFormat, ParsedFeed, Text
from protocols.protocol_errors import InvalidDocument, NotAFeed
from protocols.text import collapse
from protocols.urls import is_web_url, resolve

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
"""Control characters, which no other format allows: an id must be the same in all."""
_PLAIN: Final = (str, int, float)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("attachments", "authors", "hubs", "tags"), (list,)),
    "author": (dict,),
    "items": (object,),  # not an extension of the head, whatever their type
}
"""The types of keys whose values are neither text nor number."""
_AUTHOR_KEYS: Final = frozenset({"name", "url", "avatar"})
_ATTACHMENT_KEYS: Final = frozenset({"url", "mime_type", "title", "size_in_bytes"})


def read_head(feed: dict[str, Json], base: str) -> HeadDraft:
    head = HeadDraft(
        title=collapse(text_of(feed, "title")),
        subtitle=collapse(text_of(feed, "description")),
        language=language_tag(text_of(feed, "language")),
        logo=resolve(text_of(feed, "icon"), base),
        icon=resolve(text_of(feed, "favicon"), base),
    )
    head.authors = _authors(feed, base, head.extensions)
    _link(head, feed, "home_page_url", base, "alternate")
    _link(head, feed, "feed_url", base, "self", "application/feed+json")
    _link(head, feed, "next_url", base, "next", "application/feed+json")
    for hub in objects_of(feed, "hubs"):
        # Other types, such as rssCloud, work differently and are not ``rel=hub``.
        is_websub = text_of(hub, "type").lower() == "websub"
        if is_websub:
            _link(head, hub, "url", base, "hub")
        if not is_websub or len(hub) > 2:
            keep_value(head.extensions, "jsonfeed", "hubs", shallow(hub))
    _keep_others(head, feed, _HEAD_KEYS)
    return head


def read_item(item: dict[str, Json], base: str) -> EntryDraft:
    html, text = text_of(item, "content_html"), text_of(item, "content_text")
    summary = text_of(item, "summary")
    draft = EntryDraft(
        id=_CONTROLS.sub("", text_of(item, "id")),
        title=collapse(text_of(item, "title")),
        content=Text(value=html or text, type="html" if html else "text")
        if html or text
        else None,
        summary=Text(value=summary, type="text") if summary else None,
        language=language_tag(text_of(item, "language")),
        base=base,
    )
    draft.published = _date(item, "date_published", draft.extensions)
    draft.updated = _date(item, "date_modified", draft.extensions)
    draft.authors = _authors(item, base, draft.extensions)
    _link(draft, item, "url", base, "alternate")
    _link(draft, item, "external_url", base, "related")
    _link(draft, item, "image", base, "image")
    _link(draft, item, "banner_image", base, "banner")
    for attachment in objects_of(item, "attachments"):
        _attach(draft, attachment, base)
    for tag in list_of(item, "tags"):
        draft.add_category(collapse(string_of(tag)))
    _keep_others(draft, item, _ITEM_KEYS if html else _ITEM_KEYS | {"content_text"})
    return draft


def date_of_item(item: dict[str, Json]) -> datetime | None:
    """The date of an item that has not been read yet; None if it has none."""
    return parse_date(text_of(item, "date_published")) or parse_date(
        text_of(item, "date_modified")
    )


def _date(item: dict[str, Json], name: str, extensions: Groups) -> datetime | None:
    """Read a date; one that cannot be read is kept as an extension."""
    written = text_of(item, name)
    date = parse_date(written)
    if date is None and written:
        keep_value(extensions, "jsonfeed", name, written)
    return date


def _attach(draft: EntryDraft, attachment: dict[str, Json], base: str) -> None:
    href = resolve(text_of(attachment, "url"), base)
    if href:
        draft.add_link(
            make_link(
                href,
                "enclosure",
                text_of(attachment, "mime_type"),
                collapse(text_of(attachment, "title")),
                text_of(attachment, "size_in_bytes"),
            )
        )
    if not _ATTACHMENT_KEYS.issuperset(attachment):
        keep_value(draft.extensions, "jsonfeed", "attachments", shallow(attachment))


def _authors(holder: dict[str, Json], base: str, extensions: Groups) -> list[Author]:
    """Read ``authors`` (version 1.1), or without them the ``author`` of 1.0."""
    listed = objects_of(holder, "authors")
    single = holder.get("author")
    if not listed and isinstance(single, dict):
        listed = [single]
    elif listed and isinstance(single, dict) and single not in listed:
        keep_value(extensions, "jsonfeed", "author", shallow(single))
    for author in listed:
        if not _AUTHOR_KEYS.issuperset(author):
            keep_value(extensions, "jsonfeed", "authors", shallow(author))
    authors = [_author(each, base) for each in listed]
    return [author for author in authors if author != Author()]


def _author(author: dict[str, Json], base: str) -> Author:
    avatar = resolve(text_of(author, "avatar"), base)
    return Author(
        name=collapse(text_of(author, "name")),
        uri=resolve(text_of(author, "url"), base),
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
    href = resolve(text_of(holder, name), base)
    if href:
        draft.add_link(make_link(href, rel, type))


def _keep_others(draft: Draft, holder: dict[str, Json], known: frozenset[str]) -> None:
    """Keep what has not been read as extensions.

    These are custom keys (``_name``), keys for which the entry model has no field,
    values of another type than the key requires, and a language that is none.
    """
    for name, value in holder.items():
        is_read = name in known and isinstance(value, _TYPES.get(name, _PLAIN))
        if name == "language" and not draft.language:
            is_read = False
        if not is_read and value not in (None, "", [], {}):
            keep_value(draft.extensions, "jsonfeed", name, shallow(value))


Problems = tuple[str, ...]

MOST_PROBLEMS: Final = 10
_VERSION_HOST: Final = "jsonfeed.org/version/"
_ID_KEYS: Final = frozenset({"id", "url"})
_TELLING_KEYS: Final = frozenset({"content_html", "content_text", "date_published"})


def is_json_feed(document: dict[str, Json]) -> bool:
    """Whether its version is a URL of jsonfeed.org."""
    return _VERSION_HOST in text_of(document, "version")


def read_json_feed(value: Json, body: bytes, context: ParseContext) -> ParsedFeed:
    """Read a JSON Feed. ``value`` is the decoded UTF-8 body.

    Raises `NotAFeed` for any other JSON, and `InvalidDocument` if ``items`` is not an
    array.
    """
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
    """The items, and notes on those that are left out. Missing items count as none."""
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
    """A hash of everything an item's content depends on except the item
    (`assemble`).
    """
    parts = (
        FeedFormat.JSON_FEED.value,
        base,
        head.first_link("alternate"),
        head.language,
        head.authors,
    )
    return fingerprint(repr(parts))


def _feed_of(document: Json) -> tuple[dict[str, Json] | None, str]:
    """The feed, and a note on what it lacks, a version or the head; None if it is no
    feed.
    """
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
    """Whether the values have keys that only items of a JSON Feed have."""
    return bool(values) and all(
        isinstance(each, dict)
        and _ID_KEYS.intersection(each)
        and _TELLING_KEYS.intersection(each)
        for each in values
    )


def _make_ids_exact(items: list[dict[str, Json]], body: bytes) -> None:
    """Restore ids of more than 64 bits: they are read as floats, which may collide."""
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
