"""Facts about a database that the text of its setting tells."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_on_server(url: str) -> bool:
    return url.partition(":")[0] in ("postgresql", "postgres")


def name_location(url: str) -> str:
    """The location of a database on a server, for people: without passwords, and
    without parameters, which may hold some."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return f"postgresql://{user.partition(':')[0]}{at}{host}{parts.path}"
