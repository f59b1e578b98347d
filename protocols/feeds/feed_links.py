"""The feeds and hubs that a page names in ``link`` elements, and how one is chosen.

Of several feeds one is chosen by these rules, in order:

1. Feeds of comments do not count unless there are no others.
2. Links with the type of a feed are preferred to those that may be anything
   (``application/json``, ``application/xml``, ``text/xml``).
3. If a single one is left, it is chosen.
4. Feeds whose titles differ only in the name of a format are one feed in several
   formats: Atom is preferred to RSS to JSON Feed to others, then the first.
5. Otherwise none is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

from lxml import etree

from protocols.feeds.element import Element
from protocols.http.headers import parse_typed_links
from protocols.protocol_errors import FeedLink
from protocols.text import collapse
from protocols.urls import is_web_url, resolve

FEED_TYPES: Final = frozenset(
    {
        "application/atom+xml",
        "application/feed+json",
        "application/json",
        "application/rdf+xml",
        "application/rss+xml",
        "application/x.atom+xml",
        "application/xml",
        "text/xml",
    }
)
_READ_BYTES: Final = 1_000_000
"""Bytes of a page that are read; the links to feeds are near the beginning."""
MOST_LINKS: Final = 1_000
"""The number of a page's elements that are looked at."""
_MOST_NAMED: Final = 50
MOST_ATTRIBUTES: Final = 1_000
"""The attributes that one element may have: libxml2 takes quadratic time for them."""
_START: Final = re.compile(rb"<[a-zA-Z][^\s/><]*+")
_ATTRIBUTE: Final = (
    rb"(?:[\s/]++"
    rb"|[^\s/>][^\s/>=<]*+"
    rb"(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+))?+)"
)
_ATTRIBUTES: Final = re.compile(
    rb"(%b{%d})|%b*+" % (_ATTRIBUTE, 2 * MOST_ATTRIBUTES, _ATTRIBUTE)
)  # with the separators
_ORDINARY: Final = re.compile(
    rb"(?:[^<]++|<(?![a-zA-Z])|<[a-zA-Z]"
    rb"(?:[^<>\"'=]|=(?!\s*[\"'])|=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+')){0,%d}+>)*+"
    % (2 * MOST_ATTRIBUTES - 1)
)  # tags too short for so many attributes, whose end no quote can hide
_MOST_PASSES: Final = 4
_WORDPRESS_API: Final = "/wp-json/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """The feeds and hubs that a page names, in its order, with absolute URLs."""

    feeds: tuple[FeedLink, ...] = ()
    hubs: tuple[str, ...] = ()


def discover(page: bytes, url: str) -> Discovered:
    """Find the feeds and hubs in a page in UTF-8.

    Never fails, whatever the bytes are.
    """
    root = parse_page(page[:_READ_BYTES])
    if root is None:
        return Discovered()
    bases = (resolve(each.get("href"), url) for each in root.iter("base"))
    base = next(filter(None, islice(bases, MOST_LINKS)), url)
    feeds: dict[str, FeedLink] = {}
    hubs: dict[str, None] = {}
    for element in islice(root.iter("link"), MOST_LINKS):
        href = resolve(element.get("href"), base)
        relations = (element.get("rel") or "").lower().split()
        if not href:
            continue
        if "hub" in relations:
            hubs.setdefault(href)
        if _names_a_feed(href, relations, _type(element)):
            feeds.setdefault(href, _feed_link(element, href))
    return Discovered(
        feeds=tuple(feeds.values())[:_MOST_NAMED], hubs=tuple(hubs)[:_MOST_NAMED]
    )


def discover_in_header(header: str, url: str) -> tuple[FeedLink, ...]:
    """The feeds that an answer's ``Link`` header names, with absolute URLs."""
    return tuple(
        FeedLink(href=link.href, title=collapse(link.title), type=link.type)
        for link in parse_typed_links(header, url)
        if _names_a_feed(link.href, link.relations, link.type)
    )[:_MOST_NAMED]


def parse_page(page: bytes) -> Element | None:
    """The tree of a page in UTF-8.

    None if it is empty, or if an element has about `MOST_ATTRIBUTES` or more. HTML is
    never ill-formed to this parser: it recovers from every error.
    """
    if _is_overloaded(page):
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
    )
    root: Element | None = etree.fromstring(page, parser)
    return root


def _is_overloaded(page: bytes) -> bool:
    """Whether an element has about `MOST_ATTRIBUTES` or more.

    A tag that begins before the next ``>`` is counted with the tag that it is in. The
    text after a ``>`` that seems to be inside quotes is scanned again, because the
    quote may not be one. A page that needs more such passes than any harmless one
    counts as overloaded.
    """
    room = _MOST_PASSES * len(page)
    at = _end_of_ordinary(page, 0)
    while (start := _START.match(page, at)) is not None:
        attributes = _ATTRIBUTES.match(page, start.end())
        if attributes is None or attributes[1] is not None:
            return True
        room -= attributes.end() - start.start()
        if room < 0:
            return True
        if (end := page.find(b">", start.end())) < 0:
            break
        at = _end_of_ordinary(page, end + 1)
    return False


def _end_of_ordinary(page: bytes, at: int) -> int:
    ordinary = _ORDINARY.match(page, at)
    return ordinary.end() if ordinary else at


def _names_a_feed(href: str, relations: Sequence[str], type: str) -> bool:
    """Whether a link is to a feed.

    WordPress links to its API in the same way, which is JSON but not a feed. A URL that
    cannot be requested is not a feed, either: another scheme, or no readable host and
    port.
    """
    if _WORDPRESS_API in href or not is_web_url(href):
        return False
    if not {"alternate", "feed"}.intersection(relations):
        return False
    return "feed" in relations or type in FEED_TYPES


def _feed_link(element: Element, href: str) -> FeedLink:
    title = collapse(element.get("title") or "")
    return FeedLink(href=href, title=title, type=_type(element))


def _type(element: Element) -> str:
    return (element.get("type") or "").partition(";")[0].strip().lower()


_COMMENTS: Final = re.compile(
    r"\b(?:comments?|kommentare?|commentaires?|comentarios?|commenti|reacties)\b",
    re.IGNORECASE,
)
_VAGUE_TYPES: Final = frozenset({"", "application/json", "application/xml", "text/xml"})
_FORMAT_WORDS: Final = re.compile(
    r"\b(?:rss|atom|rdf|xml|json|feed|(?:0\.9\d?|[012]\.\d)(?=\b))\b|[^\w]+",
    re.IGNORECASE,
)
_PREFERRED: Final = (
    "application/atom+xml",
    "application/rss+xml",
    "application/feed+json",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``best`` is None if there is no feed or no clear choice; ``reason`` is for
    people.
    """

    feeds: tuple[FeedLink, ...]
    best: FeedLink | None
    reason: str


def choose(feeds: Sequence[FeedLink]) -> Choice:
    """Choose one of the feeds that a page names, in its order, by the rules above."""
    left = list({feed.href: feed for feed in reversed(feeds)}.values())[::-1]
    named = tuple(left)
    if not left:
        return Choice(feeds=(), best=None, reason="no feed was found")
    left = _without(left, _is_of_comments)
    left = _without(left, lambda feed: feed.type in _VAGUE_TYPES)
    if len(left) == 1:
        reason = "the only one" if len(named) == 1 else "the only one of its kind"
        return Choice(feeds=named, best=left[0], reason=reason)
    if len({_bare_title(feed) for feed in left}) == 1:
        best = min(left, key=_rank)
        reason = "one feed in several formats"
        return Choice(feeds=named, best=best, reason=reason)
    return Choice(feeds=named, best=None, reason="several feeds")


def _without(
    feeds: list[FeedLink], is_other: Callable[[FeedLink], bool]
) -> list[FeedLink]:
    return [feed for feed in feeds if not is_other(feed)] or feeds


def _is_of_comments(feed: FeedLink) -> bool:
    path = urlsplit(feed.href).path.replace("/", " ").replace("_", " ")
    return bool(_COMMENTS.search(feed.title) or _COMMENTS.search(path))


def _bare_title(feed: FeedLink) -> str:
    return " ".join(_FORMAT_WORDS.sub(" ", feed.title).lower().split())


def _rank(feed: FeedLink) -> int:
    known = feed.type in _PREFERRED
    return _PREFERRED.index(feed.type) if known else len(_PREFERRED)
