"""``robots.txt``, as far as it names sitemaps."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from protocols.urls import is_web_url, resolve

MOST_SITEMAPS: Final = 50
_MOST_LOOKED_AT: Final = 500
LARGEST: Final = 512 * 1024
"""RFC 9309, 2.5: crawlers read at least 500 kibibytes."""
_SITEMAP = re.compile(r"[ \t]*sitemap[ \t]*:[ \t]*([^\s#]\S*)", re.IGNORECASE)


def sitemaps_of_robots(body: bytes, url: str) -> tuple[str, ...]:
    """The addresses behind ``Sitemap:``, each once, in their order; ``url`` is that of
    the ``robots.txt``."""
    text = body[:LARGEST].decode("utf-8-sig", "replace")
    matches = filter(None, map(_SITEMAP.match, text.splitlines()))
    named = (resolve(match[1], url) for match in islice(matches, _MOST_LOOKED_AT))
    return tuple(dict.fromkeys(filter(is_web_url, named)))[:MOST_SITEMAPS]
