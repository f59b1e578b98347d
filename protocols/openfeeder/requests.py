"""What an OpenFeeder endpoint is asked for (3.1)."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

LIMIT: Final = 50
"""The most that the specification allows; above 100 there are servers that refuse."""


def index_url(endpoint: str, page: int) -> str:
    return _with_query(endpoint, f"page={page}&limit={LIMIT}")


def changes_url(endpoint: str, since: str) -> str:
    """A ``+`` must not go as it is: it would be read as a space."""
    return _with_query(endpoint, f"since={quote(since, safe='')}&limit={LIMIT}")


def page_url(endpoint: str, reference: str) -> str:
    """Of the page that the site calls ``reference``, in its own spelling."""
    return _with_query(endpoint, f"url={quote(reference, safe='')}&limit={LIMIT}")


def _with_query(endpoint: str, query: str) -> str:
    parts = urlsplit(endpoint)
    whole = f"{parts.query}&{query}" if parts.query else query
    return urlunsplit((parts.scheme, parts.netloc, parts.path, whole, ""))
