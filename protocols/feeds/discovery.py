"""The feeds and hubs that a page names in ``link`` elements, or in its header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from lxml import etree

from protocols.errors import FeedLink
from protocols.feeds.element import Element
from protocols.http.links import parse_typed_links
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
"""Of a page; what names its feeds stands at its beginning."""
MOST_LINKS: Final = 1_000
"""Elements of a page that are looked at."""
_MOST_NAMED: Final = 50
MOST_ATTRIBUTES: Final = 4_000
"""Of one element of a page: to have so many takes libxml2 squared time."""
_OVERLOADED: Final = re.compile(
    rb"<[a-zA-Z][^\s/><]{0,63}+"
    rb"(?:[\s/]{1,64}+"  # as HTML cuts names and values; long ones count several times
    rb"|[^\s/>][^\s/>=<]{0,63}+"
    rb"(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]{0,63}+))?+"
    rb"){%d}" % (2 * MOST_ATTRIBUTES)  # with what is between them
)
_WORDPRESS_API: Final = "/wp-json/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovered:
    """What a page names, in its order, absolute."""

    feeds: tuple[FeedLink, ...] = ()
    hubs: tuple[str, ...] = ()


def discover(page: bytes, url: str) -> Discovered:
    """Read a page in UTF-8. Whatever the bytes are, this is no error: see nothing."""
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
    """The feeds that an answer's ``Link`` header names, absolute."""
    return tuple(
        FeedLink(href=link.href, title=collapse(link.title), type=link.type)
        for link in parse_typed_links(header, url)
        if _names_a_feed(link.href, link.relations, link.type)
    )[:_MOST_NAMED]


def parse_page(page: bytes) -> Element | None:
    """The tree of a page in UTF-8, None for nothing, and for an element that has about
    `MOST_ATTRIBUTES`.

    HTML is never ill-formed to this parser: it recovers from everything.
    """
    if _OVERLOADED.search(page):
        return None
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
    )
    root: Element | None = etree.fromstring(page, parser)
    return root


def _names_a_feed(href: str, relations: Sequence[str], type: str) -> bool:
    """WordPress offers its API the same way; that is JSON, but no feed.

    Nor is what cannot be asked for: another scheme, or no host and port.
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
