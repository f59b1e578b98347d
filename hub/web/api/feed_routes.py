"""``/api/feeds``: the feeds the hub polls, and lists of such as it might."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hub.core.findings import FindingKind
from hub.runtime.offloading import run_in_thread
from hub.services import FeedReportService, FeedService
from hub.services.errors import SeveralFeeds
from hub.services.feed_requests import LONGEST_WAIT, AddFeed, EditFeed
from hub.services.lists import ListService
from hub.sites.feed_finder import LookupKind
from hub.web.decoding import (
    DEFAULT_PAGE,
    LARGEST_PAGE,
    Document,
    path_id,
    query_choice,
    query_number,
    query_page,
    read_body,
)
from hub.web.encoding import (
    Members,
    explanation_document,
    feed_document,
    feed_links,
    feed_report_document,
    findings_document,
    hubs_document,
    imported_document,
    json_response,
    page_document,
    sight_document,
)
from protocols.errors import InvalidValue
from protocols.outline_walk import DEEPEST, MOST_LISTS, OutlineWalk
from storage.interface import Storage
from storage.packing import unpack_bytes, unpacked_size
from storage.records import Credentials, FeedId, FeedState

PART = 5_000
"""Feeds in one answer."""


class ListsToRead(Document):
    """The body of ``POST /api/lists``; ``depth``: how deep these are themselves,
    ``skip``: feeds that are known from the parts before."""

    urls: list[str]
    depth: int = 0
    skip: int = 0


class ListRoutes:
    def __init__(self, lists: ListService) -> None:
        self._lists = lists

    def routes(self) -> list[Route]:
        return [Route("/lists", self.read, methods=["POST"])]

    async def read(self, request: Request) -> Response:
        body = await read_body(request, ListsToRead)
        if not 1 <= len(body.urls) <= MOST_LISTS:
            raise InvalidValue("urls", f"1 to {MOST_LISTS} of them")
        if not 0 <= body.depth <= DEEPEST:
            raise InvalidValue("depth", f"0 to {DEEPEST}")
        if body.skip < 0:
            raise InvalidValue("skip", "a number of feeds")
        walk = await self._lists.part(body.urls, depth=body.depth, skip=body.skip)
        return json_response(walk_document(walk, body.skip))


def walk_document(walk: OutlineWalk, skip: int) -> Members:
    end = skip + PART
    return {
        "feeds": [
            {
                "url": feed.url,
                "title": feed.title,
                "description": feed.description,
                "section": feed.section,
            }
            for feed in walk.feeds[skip:end]
        ],
        "total": len(walk.feeds),
        "next": end if end < len(walk.feeds) else None,
        "lists": [
            {"url": each.url, "feeds": each.feeds, "trouble": each.trouble}
            for each in walk.lists
        ],
        "notes": walk.notes,
    }


_NO_CREDENTIALS = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "te"),
        *("trailer", "upgrade", "expect", "accept-encoding", "range", "if-range"),
        *("if-none-match", "if-modified-since", "if-match", "if-unmodified-since"),
    }
)
"""Headers by which a request is framed, or made conditional: the hub sets them."""
MOST_AT_ONCE = 500
"""Feeds of one request to add many."""


class FeedTerms(Document, kw_only=True):
    """On what terms feeds are added; ``basic`` is ``user:password``."""

    section: str = ""
    private: bool = False
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    basic: str = ""
    publish_secret: str = ""
    subscription_callback: str | None = None
    discover: bool = False
    kind: LookupKind = LookupKind.ANY


class FeedToAdd(FeedTerms, kw_only=True):
    """The body of ``POST /api/feeds``."""

    url: str
    title: str = ""
    description: str = ""


class FeedOfMany(Document):
    """One of many; a ``section`` of its own goes before that of all."""

    url: str
    section: str = ""
    title: str = ""
    description: str = ""


class FeedsToAdd(FeedTerms, kw_only=True):
    """The body of ``POST /api/imports``."""

    feeds: list[FeedOfMany]
    dry_run: bool = False
    keeps_known: bool = False


class FeedToEdit(Document):
    """The body of ``PATCH /api/feeds/{id}``: what is not named stays as it is.

    Of the credentials, ``basic`` and ``headers``, whichever is named replaces both.
    """

    private: bool | None = None
    section: str | None = None
    headers: dict[str, str] | None = None
    basic: str | None = None
    publish_secret: str | None = None
    subscription_callback: str | None = None


class PageToLookAt(Document):
    """The body of ``POST /api/discover``."""

    url: str
    kind: LookupKind = LookupKind.ANY


class FeedRoutes:
    def __init__(
        self, feeds: FeedService, reports: FeedReportService, storage: Storage
    ) -> None:
        self._storage = storage
        self._feeds = feeds
        self._reports = reports

    def routes(self) -> list[Route]:
        one = "/feeds/{id}"
        return [
            Route("/feeds", self.page, methods=["GET"]),
            Route("/feeds", self.add, methods=["POST"]),
            Route("/imports", self.add_all, methods=["POST"]),
            Route("/discover", self.discover, methods=["POST"]),
            Route("/hubs", self.hubs, methods=["GET"]),
            Route("/findings", self.findings, methods=["GET"]),
            Route(one, self.show, methods=["GET"]),
            Route(one, self.edit, methods=["PATCH"]),
            Route(one, self.remove, methods=["DELETE"]),
            Route(f"{one}/raw", self.raw, methods=["GET"]),
            Route(f"{one}/plan", self.explain, methods=["GET"]),
            Route(f"{one}/fetch", self.fetch, methods=["POST"]),
            Route(f"{one}/pause", self.pause, methods=["POST"]),
            Route(f"{one}/resume", self.resume, methods=["POST"]),
        ]

    async def add(self, request: Request) -> Response:
        wait = query_number(request, "wait", int(LONGEST_WAIT), int(LONGEST_WAIT))
        body = await read_body(request, FeedToAdd)
        try:
            added = await self._feeds.add(_request(body, body, wait))
        except SeveralFeeds as several:
            return json_response(
                {"url": several.url, "feeds": feed_links(several.feeds)},
                HTTPStatus.MULTIPLE_CHOICES,
            )
        status = HTTPStatus.CREATED if added.is_new else HTTPStatus.OK
        document = feed_document(added.feed)
        return json_response({**document, "added": added.is_new}, status)

    async def add_all(self, request: Request) -> Response:
        wait = query_number(request, "wait", 0, int(LONGEST_WAIT))
        body = await read_body(request, FeedsToAdd)
        if not 1 <= len(body.feeds) <= MOST_AT_ONCE:
            raise InvalidValue("feeds", f"1 to {MOST_AT_ONCE} of them")
        wanted = [_request(each, body, wait) for each in body.feeds]
        imported = await self._feeds.add_all(
            wanted, is_dry=body.dry_run, keeps_known=body.keeps_known
        )
        return json_response({"feeds": [imported_document(each) for each in imported]})

    async def edit(self, request: Request) -> Response:
        body = await read_body(request, FeedToEdit)
        credentials = None
        if body.basic is not None or body.headers is not None:
            given = _credentials(body.basic or "", body.headers or {})
            credentials = given or Credentials()
        edited = await self._feeds.edit(
            _feed_id(request),
            EditFeed(
                private=body.private,
                section=body.section,
                credentials=credentials,
                publish_secret=body.publish_secret,
                subscription_callback=body.subscription_callback,
            ),
        )
        return json_response(
            {
                **feed_document(edited.feed),
                "follows": edited.follows,
                "subscriptions_ended": edited.ended,
            }
        )

    async def discover(self, request: Request) -> Response:
        body = await read_body(request, PageToLookAt)
        return json_response(
            sight_document(await self._feeds.discover(body.url, kind=body.kind))
        )

    async def page(self, request: Request) -> Response:
        url = request.query_params.get("url")
        if url is not None:
            feed = await self._feeds.find(url)
            found = [] if feed is None else [feed_document(feed)]
            return json_response({"feeds": found, "next": None})
        after, limit = query_page(request)
        state = query_choice(request, "state", FeedState)
        feeds = await self._storage.feeds.page(
            after=FeedId(after), limit=limit, state=state
        )
        return json_response(
            page_document("feeds", [feed_document(feed) for feed in feeds], limit)
        )

    async def findings(self, request: Request) -> Response:
        after, limit = query_page(request)
        kind = query_choice(request, "kind", FindingKind)
        page = await self._reports.findings(after=FeedId(after), limit=limit, kind=kind)
        return json_response(findings_document(page))

    async def hubs(self, request: Request) -> Response:
        limit = query_number(request, "limit", DEFAULT_PAGE, LARGEST_PAGE)
        return json_response(hubs_document(await self._storage.pushes.hubs(limit)))

    async def show(self, request: Request) -> Response:
        report = await self._reports.get(_feed_id(request))
        return json_response(feed_report_document(report))

    async def raw(self, request: Request) -> Response:
        document = await self._reports.raw(_feed_id(request))
        return Response(
            await run_in_thread(
                partial(unpack_bytes, document.body), unpacked_size(document.body)
            ),
            media_type=document.content_type,
            headers={"X-Content-Type-Options": "nosniff"},
        )

    async def explain(self, request: Request) -> Response:
        explained = await self._reports.explain(_feed_id(request))
        return json_response(explanation_document(explained))

    async def fetch(self, request: Request) -> Response:
        result = await self._feeds.fetch(_feed_id(request))
        document = feed_document(result.feed)
        return json_response({**document, "fetched": result.is_fetched})

    async def pause(self, request: Request) -> Response:
        feed = await self._feeds.pause(_feed_id(request))
        return json_response(feed_document(feed))

    async def resume(self, request: Request) -> Response:
        feed = await self._feeds.resume(_feed_id(request))
        return json_response(feed_document(feed))

    async def remove(self, request: Request) -> Response:
        ended = await self._feeds.remove(_feed_id(request))
        return json_response({"subscriptions_ended": ended})


def _feed_id(request: Request) -> FeedId:
    return FeedId(path_id(request, "feed"))


def _request(feed: FeedToAdd | FeedOfMany, terms: FeedTerms, wait: float) -> AddFeed:
    return AddFeed(
        url=feed.url,
        private=terms.private,
        section=feed.section or terms.section,
        title=feed.title,
        description=feed.description,
        credentials=_credentials(terms.basic, terms.headers),
        publish_secret=terms.publish_secret,
        subscription_callback=terms.subscription_callback,
        wait=wait,
        discover=terms.discover,
        kind=terms.kind,
    )


def _credentials(basic: str, headers: dict[str, str]) -> Credentials | None:
    if not basic and not headers:
        return None
    username, separator, password = basic.partition(":")
    if basic and not separator:
        raise InvalidValue("basic", "user:password")
    return Credentials(
        username=username, password=password, headers=_checked_headers(headers)
    )


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        is_name = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not is_name:
            raise InvalidValue("headers", "header names of letters, digits and -", name)
        if name.lower() in _NO_CREDENTIALS:
            raise InvalidValue("headers", "none that the hub sets by itself", name)
        if not value.isprintable() or not value.isascii():
            raise InvalidValue("headers", f"printable ASCII as the value of {name}")
    return headers
