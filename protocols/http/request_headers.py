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
    noun = "subscriber" if subscribers == 1 else "subscribers"
    facts = (
        _whereabouts(url, contact),
        "" if subscribers is None else f"{subscribers} {noun}",
        "" if feed_id is None else f"feed-id={feed_id}",
    )
    comment = "; ".join(filter(None, facts))
    return header_value(f"{product} ({comment})" if comment else product)


@lru_cache(64)
def _whereabouts(url: str, contact: str) -> str:
    """What all feeds are told alike, put together once."""
    named = "; ".join(filter(None, (f"+{url}" if url else "", contact)))
    return named.translate(_NO_PARENTHESES)
