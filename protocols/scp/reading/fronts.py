"""A sitemap with SCP's elements as what a site is registered by."""

from __future__ import annotations

import zlib
from urllib.parse import urljoin, urlsplit

from protocols.model import Feed, FeedFormat, Link, ParsedFeed
from protocols.scp.reading.sitemaps import read_sitemap
from protocols.scp.reading.unpacking import GZIP
from protocols.scp.sitemap import EXTENSION

_BEGINNING = 4_096
_EXTENSION = EXTENSION.encode()


def site_of_sitemap(body: bytes, url: str) -> ParsedFeed | None:
    """Without entries, for it only says where they are; None for any other document.

    Raises a `FeedError` for such a sitemap that cannot be read.
    """
    is_packed = body.startswith(GZIP)
    beginning = _unpacked_beginning(body) if is_packed else body[:_BEGINNING]
    if b"urlset" not in beginning or _EXTENSION not in beginning:
        return None
    sitemap = read_sitemap(body, url)
    if is_packed and not sitemap.files:
        return None
    return ParsedFeed(format=FeedFormat.SCP, feed=head_of_site(url))


def _unpacked_beginning(body: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(body, _BEGINNING)
    except zlib.error:
        return b""


def head_of_site(url: str) -> Feed:
    """Of the site of a sitemap, which says nothing of itself but where it is."""
    home = urljoin(url, "/")
    return Feed(title=urlsplit(url).hostname or "", links=(Link(href=home),))
