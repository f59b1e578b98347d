"""Which pages the hub has, by their routes, and where they are, by the links of others.

So a new page is found without being named.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urljoin, urlsplit

import lxml.html
from starlette.routing import compile_path

import hub.web.application  # noqa: F401 - it imports all routes
from hub.web.operation import HTML, Operation, every_operation

STARTS: Final = (
    *("/", "/search?q=entry", "/about"),
    *("/admin/login", "/admin", "/account/login", "/account"),
)
"""Addresses that a reader, an operator and a subscriber type."""

Fetch = Callable[[str], Awaitable[str]]
"""The HTML at an address of the hub."""


def _is_page(operation: Operation) -> bool:
    content = operation.answers.get(200)
    is_html = isinstance(content, Mapping) and HTML in content
    return is_html and operation.method == "GET"


PAGES: Final = sorted({each.path for each in every_operation() if _is_page(each)})
"""Paths of the routes that answer with a page."""
_PATTERNS: Final = {path: compile_path(path)[0] for path in PAGES}


def page_of(address: str) -> str | None:
    """The path of the route that an address leads to."""
    path = urlsplit(address).path
    return next((p for p, pattern in _PATTERNS.items() if pattern.match(path)), None)


async def find_addresses(
    fetch: Fetch, starts: Sequence[str], *, most: int
) -> dict[str, list[str]]:
    """By route, ``most`` addresses of pages that are reached from these by links."""
    found: dict[str, list[str]] = {}
    waiting = deque(starts)
    while waiting:
        address = waiting.popleft()
        page = page_of(address)
        known = found.setdefault(page, []) if page else []
        if page is None or address in known or len(known) >= most:
            continue
        known.append(address)
        waiting.extend(_links(address, await fetch(address)))
    return found


def _links(address: str, text: str) -> Iterator[str]:
    """Those to other addresses of the same hub."""
    for each in lxml.html.fromstring(text).xpath("//a/@href"):
        target = urlsplit(urljoin(f"//hub{address}", each))
        if target.netloc == "hub":
            yield target._replace(scheme="", netloc="", fragment="").geturl()
