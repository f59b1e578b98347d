"""What the hub says of itself, and of what it has, when it asks for a feed."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from protocols.http.values import header_value

ACCEPT: Final = (
    "application/atom+xml, application/rss+xml, application/feed+json, "
    "application/json;q=0.9, application/xml;q=0.9, text/xml;q=0.8, */*;q=0.1"
)
ACCEPT_ENCODING: Final = "gzip, br"
"""Only what the hub decodes."""

_NO_PARENTHESES = str.maketrans({"(": "%28", ")": "%29", "\\": "%5C"})


def conditional_headers(etag: str, last_modified: str) -> dict[str, str]:
    """What makes a request conditional; empty strings are what the server never sent.

    Both byte for byte as they came: an ETag is opaque, and a date that is written
    anew is no longer the one the server knows.
    """
    headers = {}
    if etag:
        headers["If-None-Match"] = etag
    if last_modified:
        headers["If-Modified-Since"] = last_modified
    return headers


def user_agent(
    product: str,
    *,
    url: str = "",
    contact: str = "",
    subscribers: int | None = None,
    feed_id: int | None = None,
) -> str:
    """``Fanfare/1.0 (+https://hub.example; a@b.example; 12 subscribers; feed-id=7)``.

    ``product`` has its version; what is empty or None is left out.
    """
    before, after = _around(product, url, contact, subscribers, feed_id is not None)
    return before + after if feed_id is None else f"{before}{feed_id}{after}"


@lru_cache(1024)
def _around(
    product: str, url: str, contact: str, subscribers: int | None, has_id: bool
) -> tuple[str, str]:
    """What comes before the feed's id and behind it, put together once for all."""
    noun = "subscriber" if subscribers == 1 else "subscribers"
    facts = (
        _whereabouts(url, contact),
        "" if subscribers is None else f"{subscribers} {noun}",
        "feed-id=" if has_id else "",
    )
    comment = "; ".join(filter(None, facts))
    before = header_value(f"{product} ({comment}" if comment else product)
    return before, ")" if comment else ""


def _whereabouts(url: str, contact: str) -> str:
    named = "; ".join(filter(None, (f"+{url}" if url else "", contact)))
    return named.translate(_NO_PARENTHESES)
