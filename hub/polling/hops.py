"""Where a redirect leads, and which are not followed. Pure.

Only what can be said of the URL is decided here; whether its address may be reached is
the guard's to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import urljoin, urlsplit

from protocols.urls import requested_url

MOST_HOPS = 5

_USER_INFORMATION = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int | None]
"""Scheme, host in lower case, port."""


class RedirectRefused(Exception):
    """A redirect that is not followed; the message is for people."""


def bare_url(url: str) -> str:
    """The URL as it is requested: no fragment, no user information, no spaces.

    All spellings of scheme, host and port are one; the rest stays as it is.
    """
    bare = url.strip()
    if "@" in bare:
        bare = _USER_INFORMATION.sub(r"\1", bare)
    return requested_url(bare.replace(" ", "%20"))


def origin(url: str) -> Origin:
    """The origin (RFC 6454, 4) that credentials belong to; raises ValueError."""
    parts = urlsplit(url)
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return parts.scheme, parts.hostname or "", port


def redirect_target(url: str, location: str, visited: Collection[str]) -> str:
    """The URL a redirect of ``url`` leads to; ``visited`` were requested before.

    Raises RedirectRefused for more than five hops, loops, a step from https down to
    http, and whatever is no http or https URL.
    """
    if not location:
        raise RedirectRefused("the redirect names no target")
    try:
        target = bare_url(urljoin(url, _printable(location)))
        scheme, host, _ = origin(target)
    except ValueError:
        raise RedirectRefused("the redirect's target is not a valid URL") from None
    if scheme not in _DEFAULT_PORTS or not host:
        raise RedirectRefused("the redirect's target is not an http or https URL")
    if scheme == "http" and url.startswith("https:"):
        raise RedirectRefused("a redirect from https to http is not followed")
    if target in visited:
        raise RedirectRefused("the redirects go round in a circle")
    if len(visited) > MOST_HOPS:
        raise RedirectRefused(f"more than {MOST_HOPS} redirects")
    return target


def _printable(location: str) -> str:
    """`urljoin` would drop tabs and line breaks silently; they are refused."""
    if not location.isprintable():
        raise ValueError
    return location
