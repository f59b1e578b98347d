"""``robots.txt``, as far as it names sitemaps."""

from __future__ import annotations

import re
from typing import Final

from protocols.urls import is_web_url, resolve

MOST_SITEMAPS: Final = 50
LARGEST: Final = 512 * 1024
"""RFC 9309, 2.5: crawlers read at least 500 kibibytes."""
_SITEMAP = re.compile(r"[ \t]*sitemap[ \t]*:[ \t]*([^\s#]\S*)", re.IGNORECASE)


def sitemaps_of_robots(body: bytes, url: str) -> tuple[str, ...]:
    """The addresses behind ``Sitemap:``, each once, in their order; ``url`` is that of
    the ``robots.txt``."""
    text = body[:LARGEST].decode("utf-8-sig", "replace")
    found: dict[str, None] = {}
    for line in text.splitlines():
        match = _SITEMAP.match(line)
        address = resolve(match[1], url) if match else ""
        if address and is_web_url(address):
            found[address] = None
    return tuple(found)[:MOST_SITEMAPS]
