"""Where a site's OpenFeeder discovery document may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin

from protocols.feeds.discovery import parse_page
from protocols.http.links import parse_typed_links
from protocols.urls import is_web_url, resolve

WELL_KNOWN: Final = "/.well-known/openfeeder.json"
WORDPRESS: Final = "/wp-json/openfeeder/v1/discovery"
"""There, where a server has no rewriting of addresses."""
MOST_PLACES: Final = 4
_NAME: Final = "openfeeder"
_READ_BYTES: Final = 1_000_000
_SIGNS_OF_WORDPRESS: Final = (b"wp-content/", b"wp-json", b"wp-includes/")


def discovery_places(url: str, link: str, page: bytes) -> tuple[str, ...]:
    """What a page's header and the page itself name, then the usual places.

    ``link`` is the value of its ``Link`` header, ``page`` its bytes, b"" if it has
    none that matter.
    """
    named = (
        each.href
        for each in parse_typed_links(link, url)
        if _NAME in each.relations and is_web_url(each.href)
    )
    signs = (sign in page for sign in _SIGNS_OF_WORDPRESS)
    is_wordpress = "wp-json" in link or any(signs)
    places = [*named, *_named_in(page, url), urljoin(url, WELL_KNOWN)]
    if is_wordpress:
        places.append(urljoin(url, WORDPRESS))
    return tuple(dict.fromkeys(places))[:MOST_PLACES]


def _named_in(page: bytes, url: str) -> Iterator[str]:
    """``<meta name=openfeeder content=…>``, and links."""
    root = parse_page(page[:_READ_BYTES]) if _NAME.encode() in page.lower() else None
    for element in () if root is None else root.iter():
        if element.tag not in ("meta", "link"):
            continue
        is_meta = element.tag == "meta"
        names = (element.get("name" if is_meta else "rel") or "").lower().split()
        href = resolve(element.get("content" if is_meta else "href"), url)
        if _NAME in names and is_web_url(href):
            yield href
