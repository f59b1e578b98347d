"""``/`` and ``/about``: small pages for people, and the files they need.

Their Content-Security-Policy allows nothing inline and nothing from elsewhere, so the
title of a feed can never become part of the page's program.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from hub.services.public_pages import AboutPage, FrontPage, FrontPageService
from hub.web.conditional_requests import is_current, not_modified, validators
from hub.web.operation import HTML, Operation, Routes
from storage.records import StoredFeed

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
ASSETS = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
}
LONGEST_QUERY = 6_000
"""Characters of topics in the page's one request to ``/stream``."""
_HEEDED = (
    "Disallow it in your robots.txt, for the User-agent Fanfare or for all: it is read"
    " once a day."
)
_UNHEEDED = (
    "This hub does not read robots.txt: it fetches what people have subscribed to, and"
    " follows no links."
)
EXAMPLE_TOPIC = "https://example.org/feed.xml"


def _asset(name: str) -> Operation:
    return Operation(
        method="GET",
        path=f"/{name}",
        id=f"get_{name.replace('.', '_')}",
        summary="A file of the page",
        answers={200: {ASSETS[name].partition(";")[0]: str}, 304: None},
    )


class FrontPageRoutes(Routes):
    tag = "pages"

    def __init__(self, front: FrontPageService) -> None:
        self._front = front

    @Operation(
        method="GET",
        path="/",
        id="get_front_page",
        summary="A page for people",
        answers={200: {HTML: str}},
        problems=(429, 503),
    )
    async def show(self, request: Request) -> Response:
        return Response(
            render(await self._front.show()),
            media_type="text/html",
            headers={**SECURITY, "Cache-Control": "no-cache"},
        )

    @Operation(
        method="GET",
        path="/about",
        id="get_about_page",
        summary="A page for publishers: who requests their feeds",
        answers={200: {HTML: str}},
    )
    async def about(self, request: Request) -> Response:
        """What publishers find at the address that the User-Agent names."""
        return Response(
            render_about(self._front.about),
            media_type="text/html",
            headers={**SECURITY, "Cache-Control": "max-age=3600"},
        )

    @_asset("page.css")
    @_asset("page.js")
    @_asset("favicon.svg")
    async def asset(self, request: Request) -> Response:
        name = request.url.path.lstrip("/")
        body = _read(name)
        etag = hashlib.sha256(body).hexdigest()[:16]
        known = validators(etag, None)
        headers = {**SECURITY, **known, "Cache-Control": "max-age=300"}
        if is_current(request, etag, None):
            return not_modified(headers)
        return Response(body, headers={**headers, "Content-Type": ASSETS[name]})


def render(page: FrontPage) -> str:
    """The page as HTML; everything that comes from elsewhere is escaped."""
    scheme, _, rest = page.url.partition("://")
    socket = f"{'wss' if scheme == 'https' else 'ws'}://{rest}"
    topic = page.feeds[0].url if page.feeds else EXAMPLE_TOPIC
    items = "".join(_item(feed, is_live) for feed, is_live in _chosen(page.feeds))
    return Template(_read("front.html").decode()).substitute(
        state=escape(_state(page)),
        feeds=f"<ul>{items}</ul>" if items else "<p>There are no public feeds yet.</p>",
        url=escape(page.url),
        socket=escape(socket),
        topic=escape(topic),
        shell=escape(shlex.quote(topic)),
        json=escape(json.dumps(topic)),
        version=escape(page.version),
    )


def render_about(page: AboutPage) -> str:
    contact = f"Contact: {page.contact}." if page.contact else ""
    return Template(_read("about.html").decode()).substitute(
        agent=escape(page.user_agent),
        url=escape(page.url),
        contact=escape(contact),
        robots=escape(_HEEDED if page.heeds_robots else _UNHEEDED),
        version=escape(page.version),
    )


def _state(page: FrontPage) -> str:
    if not page.feeds:
        return "This hub has no public feeds yet."
    return "Entries appear here as they arrive. This requires JavaScript."


def _chosen(feeds: tuple[StoredFeed, ...]) -> list[tuple[StoredFeed, bool]]:
    """Each with whether the page listens to it: as many as one query can name."""
    room = LONGEST_QUERY
    chosen = []
    for feed in feeds:
        room -= len("&topic=") + len(quote(feed.url, safe=""))
        chosen.append((feed, room >= 0))
    return chosen


def _item(feed: StoredFeed, is_live: bool) -> str:
    url = escape(feed.url)
    live = f' data-live="{url}"' if is_live else ""
    mark = ' <span class="error">failing</span>' if feed.polling.error else ""
    title = escape(feed.title or feed.url)
    return f'<li{live}><a href="{url}" rel="nofollow">{title}</a>{mark}</li>'


@cache
def _read(name: str) -> bytes:
    return (files("hub.web") / "pages" / name).read_bytes()
