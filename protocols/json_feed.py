"""A feed as JSON Feed 1.1, read as https://www.jsonfeed.org/version/1.1/ says.

A key whose value is not known is absent, but for those that the format requires.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import orjson

from protocols.enclosures import enclosed_files
from protocols.languages import language_tag
from protocols.model import Author, Entry, Feed, Link, Text
from protocols.superfeedr.atom_syntax import media_type
from protocols.text import text_of_html

JSON_FEED_TYPE: Final = "application/feed+json"
VERSION: Final = "https://jsonfeed.org/version/1.1"
UNKNOWN_MEDIA: Final = "application/octet-stream"
"""Of an attachment that does not say what it is: "mime_type (required, string)"."""

_MARKUP: Final = frozenset({"html", "xhtml", "text/html"})
_PICTURES: Final = ("image", "picture", "thumbnail")
_UTC_SECONDS: Final = orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS
JsonObject: TypeAlias = dict[str, Any]


def render_json_feed(
    head: Feed,
    entries: Iterable[Entry],
    *,
    url: str,
    hub: str,
    title: str,
    next_url: str | None = None,
) -> bytes:
    """``url`` is this page's own, ``title`` what stands in for one that is missing."""
    document = {
        "version": VERSION,
        "title": head.title or title,
        "home_page_url": _href(head.links, "alternate"),
        "feed_url": url,
        "description": text_of_html(head.subtitle),
        "next_url": next_url,
        "icon": head.logo,
        "favicon": head.icon,
        "authors": _authors(head.authors),
        "language": language_tag(head.language),
        "hubs": [{"type": "WebSub", "url": hub}],
    }
    known = _known(document)
    return orjson.dumps(
        {**known, "items": [item_object(each) for each in entries]},
        option=_UTC_SECONDS,
    )


def item_object(entry: Entry) -> JsonObject:
    """ "id (required, string)" and "one or both must be present" of the contents."""
    links = entry.links
    item = {
        "url": _href(links, "alternate"),
        "external_url": _href(links, "related"),
        "title": entry.title,
        **_contents(entry),
        "image": _href(links, *_PICTURES),
        "banner_image": _href(links, "banner"),
        "date_published": entry.published,
        "date_modified": entry.updated,
        "authors": _authors(entry.authors),
        "tags": [each.label or each.term for each in entry.categories],
        "language": language_tag(entry.language),
        "attachments": _attachments(entry),
    }
    return {"id": entry.id, **_known(item), **_required(item)}


def _contents(entry: Entry) -> JsonObject:
    """Without any content the summary is what there is to show."""
    content = entry.content or entry.summary
    if content is None:
        return {}
    name = "content_html" if content.type in _MARKUP else "content_text"
    summary = entry.summary if entry.content else None
    return {name: content.value, "summary": _plain(summary) if summary else ""}


def _required(item: JsonObject) -> JsonObject:
    """The title where there is no content at all; "" where there is none either."""
    if item.get("content_html") or item.get("content_text"):
        return {}
    return {"content_text": item["title"]}


def _plain(text: Text) -> str:
    """ "summary (optional, string) is a plain text sentence or two"."""
    return text_of_html(text.value) if text.type in _MARKUP else text.value


def _authors(people: Sequence[Author]) -> list[JsonObject]:
    """ "If you provide an author object, then at least one is required"."""
    found = [
        _known(
            {
                "name": each.name,
                "url": each.uri or _href(each.links, "alternate"),
                "avatar": _href(each.links, *_PICTURES),
            }
        )
        for each in people
    ]
    return [each for each in found if each]


def _attachments(entry: Entry) -> list[JsonObject]:
    """The enclosures; no further sources, which would be other attachments."""
    lengths = {it.href: it.length for it in entry.links if it.rel == "enclosure"}
    return [
        _known(
            {
                "url": file.href,
                "mime_type": media_type(file.type) or UNKNOWN_MEDIA,
                "title": file.title,
                "size_in_bytes": lengths[file.href],
                "duration_in_seconds": file.seconds or None,
            }
        )
        for file in enclosed_files(entry)
        if file.is_linked
    ]


def _href(links: Iterable[Link], *rels: str) -> str:
    return next((link.href for link in links if link.rel in rels), "")


def _known(facts: JsonObject) -> JsonObject:
    return {key: value for key, value in facts.items() if value not in (None, "", [])}
