"""Whose page makes a request, as far as browsers tell."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection


def is_foreign(connection: HTTPConnection) -> bool:
    """Whether a page of another origin makes the request."""
    origin = connection.headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc != connection.headers.get("host")
    except ValueError:
        return True


def is_of_another_site(connection: HTTPConnection) -> bool:
    """The same by ``Sec-Fetch-Site``; which browsers send to https and to this machine
    only. Where it is missing, ``Origin`` is what every POST of another's page has."""
    site = connection.headers.get("sec-fetch-site")
    if site is None:
        return is_foreign(connection)
    return site in ("cross-site", "same-site")
