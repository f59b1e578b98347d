"""Where a site's OpenFeeder discovery document may be, and the URLs of requests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from protocols.feeds.feed_links import MOST_LINKS, parse_page
from protocols.http.headers import parse_typed_links
from protocols.urls import is_web_url, resolve

LIMIT: Final = 50
"""The most that the specification allows; some servers refuse more than 100."""


def index_url(endpoint: str, page: int) -> str:
    return _with_query(endpoint, f"page={page}&limit={LIMIT}")


def changes_url(endpoint: str, since: str) -> str:
    """The URL of a differential request. A ``+`` in ``since`` is escaped, or it would
    be read as a space.
    """
    return _with_query(endpoint, f"since={quote(since, safe='')}&limit={LIMIT}")


def page_url(endpoint: str, reference: str) -> str:
    """The URL for requesting the page that the site calls ``reference``."""
    return _with_query(endpoint, f"url={quote(reference, safe='')}&limit={LIMIT}")


def _with_query(endpoint: str, query: str) -> str:
    parts = urlsplit(endpoint)
    whole = f"{parts.query}&{query}" if parts.query else query
    return urlunsplit((parts.scheme, parts.netloc, parts.path, whole, ""))


WELL_KNOWN: Final = "/.well-known/openfeeder.json"
WORDPRESS: Final = "/wp-json/openfeeder/v1/discovery"
"""Where a WordPress site has it if its server cannot rewrite URLs."""
ENDPOINT: Final = "/openfeeder"
"""Where it is tried if only a header tells that the site has OpenFeeder."""
LLMS: Final = "/llms.txt"
MOST_PLACES: Final = 4
MOST_OF_LLMS: Final = 2
_WORD: Final = re.compile(r"[^\s<>()\[\]\"'`]++")
_DOCUMENT: Final = "openfeeder.json"
_LONGEST: Final = 500
"""Characters before the document's name."""
_MOST_LOOKED_AT: Final = 50
_NAME: Final = "openfeeder"
_READ_BYTES: Final = 1_000_000
_SIGNS_OF_WORDPRESS: Final = (b"wp-content/", b"wp-json", b"wp-includes/")


def discovery_urls(
    url: str, link: str, page: bytes, *, is_spoken: bool = False
) -> tuple[str, ...]:
    """Where the discovery document may be: URLs named by a page, then the usual ones.

    ``link`` is the value of the page's ``Link`` header, ``page`` its bytes, b"" if it
    need not be read; ``is_spoken``: the answer had an ``X-OpenFeeder`` header.
    """
    named = (
        each.href
        for each in parse_typed_links(link, url)
        if _is_named(each.relations, each.title) and is_web_url(each.href)
    )
    signs = (sign in page for sign in _SIGNS_OF_WORDPRESS)
    is_wordpress = "wp-json" in link or any(signs)
    places = [*named, *_named_in(page, url), urljoin(url, WELL_KNOWN)]
    if is_wordpress:
        places.append(urljoin(url, WORDPRESS))
    if is_spoken:
        places.append(urljoin(url, ENDPOINT))
    return tuple(dict.fromkeys(places))[:MOST_PLACES]


def urls_in_llms(body: bytes, url: str) -> tuple[str, ...]:
    """The discovery documents that an ``llms.txt`` names; ``url`` is the URL of that
    file.
    """
    text = body[:_READ_BYTES].decode("utf-8-sig", "replace")
    words = dict.fromkeys(islice(_documents_in(text), _MOST_LOOKED_AT))
    named = (resolve(word, url) for word in words)
    return tuple(dict.fromkeys(filter(is_web_url, named)))[:MOST_OF_LLMS]


def _documents_in(text: str) -> Iterator[str]:
    """The beginning of each word up to its last mention of such a document."""
    for match in _WORD.finditer(text):
        at = match[0].lower().rfind(_DOCUMENT)
        if at >= 0:
            yield match[0][max(0, at - _LONGEST) : at + len(_DOCUMENT)]


def _is_named(relations: Collection[str], title: str) -> bool:
    """Whether a link names the document: by its own relation, or as a titled
    alternate.
    """
    is_titled = "alternate" in relations and title.strip().lower() == _NAME
    return _NAME in relations or is_titled


def _named_in(page: bytes, url: str) -> Iterator[str]:
    """The URLs in ``<meta name=openfeeder content=…>`` and in links."""
    root = parse_page(page[:_READ_BYTES]) if _NAME.encode() in page.lower() else None
    elements = () if root is None else root.iter("meta", "link")
    for element in islice(elements, MOST_LINKS):
        is_meta = element.tag == "meta"
        names = (element.get("name" if is_meta else "rel") or "").lower().split()
        title = "" if is_meta else element.get("title") or ""
        href = resolve(element.get("content" if is_meta else "href"), url)
        if _is_named(names, title) and is_web_url(href):
            yield href
