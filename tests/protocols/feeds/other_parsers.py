"""What other parsers make of a feed document, as far as all can say it.

`feedparser` is the one that everybody compares with; `fastfeedparser` was written
later and apart from it. None of them is right always.
"""

from __future__ import annotations

import calendar
import html
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from urllib.parse import urljoin

import fastfeedparser
import feedparser

from protocols.languages import language_tag
from protocols.model import Entry, Feed, ParsedFeed

_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Values that can be compared: texts without markup and white space."""

    id: str = ""
    link: str = ""
    title: str = ""
    published: str = ""
    updated: str = ""
    text: frozenset[str] = frozenset()  # summary and content
    authors: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    enclosures: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    title: str = ""
    link: str = ""
    subtitle: str = ""
    language: str = ""
    entries: tuple[Item, ...] = ()


class Unreadable(Exception):
    """The parser raised something, or found no feed."""


def read_with_feedparser(body: bytes, url: str) -> Document:
    headers = {"content-type": "application/xml", "content-location": url}
    result = feedparser.parse(
        BytesIO(body),
        response_headers=headers,
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    if not result["version"]:
        raise Unreadable
    return Document(
        title=plain(_get(result["feed"], "title")),
        link=_get(result["feed"], "link"),
        subtitle=plain(_get(result["feed"], "subtitle")),
        language=language_tag(_get(result["feed"], "language")),
        entries=tuple(_feedparser_item(each) for each in result["entries"]),
    )


def _feedparser_item(entry: Mapping[str, Any]) -> Item:
    contents = [content["value"] for content in entry.get("content", ())]
    return Item(
        id=_get(entry, "id"),
        link=_get(entry, "link"),
        title=plain(_get(entry, "title")),
        published=_time(entry, "published_parsed"),
        updated=_time(entry, "updated_parsed"),
        text=_plain_set([_get(entry, "summary"), *contents]),
        authors=_plain_set(
            author.get("name") or author.get("email", "")
            for author in entry.get("authors", ())
        ),
        categories=_plain_set(tag.get("term") or "" for tag in entry.get("tags", ())),
        enclosures=frozenset(
            each.get("href", "") for each in entry.get("enclosures", ())
        ),
    )


def read_with_fastfeedparser(body: bytes, url: str) -> Document:
    try:
        with warnings.catch_warnings(action="ignore"):
            result = fastfeedparser.parse(body)
    except Exception as error:  # it has no error of its own
        raise Unreadable from error
    return Document(
        title=plain(_get(result.feed, "title")),
        link=_get(result.feed, "link"),
        subtitle=plain(_get(result.feed, "subtitle")),
        language=language_tag(_get(result.feed, "language")),
        entries=tuple(_fastfeedparser_item(each, url) for each in result.entries),
    )


def _fastfeedparser_item(entry: Mapping[str, Any], url: str) -> Item:
    contents = [content["value"] for content in entry.get("content") or ()]
    return Item(
        id=_get(entry, "id"),
        link=_absolute(_get(entry, "link"), url),
        title=plain(_get(entry, "title")),
        published=_get(entry, "published")[:19],
        updated=_get(entry, "updated")[:19],
        text=_plain_set([_get(entry, "description"), *contents]),
        authors=_plain_set([_get(entry, "author")]),
        categories=_plain_set(tag.get("term") or "" for tag in entry.get("tags") or ()),
        enclosures=frozenset(
            _absolute(each["url"], url) for each in entry.get("enclosures") or ()
        ),
    )


def as_document(parsed: ParsedFeed) -> Document:
    """Our own reading in the same terms."""
    return Document(
        title=plain(parsed.feed.title),
        link=_first_link(parsed.feed),
        subtitle=plain(parsed.feed.subtitle),
        language=parsed.feed.language,
        entries=tuple(_our_item(entry) for entry in parsed.entries),
    )


def _our_item(entry: Entry) -> Item:
    texts = [text.value for text in (entry.summary, entry.content) if text]
    return Item(
        id=entry.id if entry.id_source == "feed" else "",
        link=_first_link(entry),
        title=plain(entry.title),
        published=_seconds(entry.published),
        updated=_seconds(entry.updated),
        text=_plain_set(texts),
        authors=_plain_set(author.name or author.email for author in entry.authors),
        categories=_plain_set(category.term for category in entry.categories),
        enclosures=frozenset(
            link.href for link in entry.links if link.rel == "enclosure"
        ),
    )


def plain(markup: str) -> str:
    """The letters of a text, whatever was escaped and however often."""
    for _ in range(3):
        markup = html.unescape(_TAG.sub("", markup))
    return "".join(markup.split())


def _plain_set(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(plain(text) for text in texts) - {""}


def _get(fields: Mapping[str, Any], name: str) -> str:
    """feedparser makes up missing fields, with a warning, unless it is asked so."""
    value = dict.get(fields, name) if isinstance(fields, dict) else fields.get(name)
    return value if isinstance(value, str) else ""


def _time(entry: Mapping[str, Any], name: str) -> str:
    value = dict.get(entry, name) if isinstance(entry, dict) else None
    if value is None:
        return ""
    return _seconds(datetime.fromtimestamp(calendar.timegm(value), UTC))


def _seconds(moment: datetime | None) -> str:
    return moment.isoformat()[:19] if moment else ""


def _first_link(part: Entry | Feed) -> str:
    links = (link.href for link in part.links if link.rel == "alternate")
    return next(links, "")


def _absolute(reference: str, url: str) -> str:
    return urljoin(url, reference) if reference else ""


Parser = Callable[[bytes, str], Document]
OTHER_PARSERS: Mapping[str, Parser] = {
    "feedparser": read_with_feedparser,
    "fastfeedparser": read_with_fastfeedparser,
}
