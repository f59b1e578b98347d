"""Everything that the hub connects to: a publisher and a callback."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from http import HTTPStatus

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hub.demo.arrivals import Arrivals, Way
from hub.demo.samples import CONTENT_TYPES, FeedKind, SampleEntry, SampleFeed
from hub.runtime.clock import Clock
from protocols.websub.signatures import verify

CALLBACK = "/callback"


class DemoServers:
    """The publisher of the sample feeds, and the callback that is subscribed to them.

    ``url`` is where `application` is served, ``hub_url`` the hub that the feeds name.
    """

    def __init__(
        self, url: str, hub_url: str, arrivals: Arrivals, clock: Clock
    ) -> None:
        self.secret = secrets.token_hex(20)
        self.callback = f"{url}{CALLBACK}"
        self._url = url
        self._hub_url = hub_url
        self._arrivals = arrivals
        self._clock = clock
        self._feeds = {kind: SampleFeed(kind) for kind in FeedKind}
        for feed in self._feeds.values():
            feed.add(clock.now())  # what was there before is not news

    @property
    def topics(self) -> dict[FeedKind, str]:
        return {kind: f"{self._url}/{kind}" for kind in FeedKind}

    def publish(self, kind: FeedKind) -> SampleEntry:
        entry = self._feeds[kind].add(self._clock.now())
        self._arrivals.publish(entry, self._clock.monotonic())
        return entry

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                *(Route(f"/{kind}", self._show, methods=["GET"]) for kind in FeedKind),
                Route(CALLBACK, self._confirm, methods=["GET"]),
                Route(CALLBACK, self._receive, methods=["POST"]),
            ]
        )

    async def _show(self, request: Request) -> Response:
        kind = FeedKind(request.url.path.lstrip("/"))
        body = self._feeds[kind].document(self.topics[kind], self._hub_url)
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag})
        headers = {"ETag": etag, "Content-Type": CONTENT_TYPES[kind]}
        return Response(body, headers=headers)

    async def _confirm(self, request: Request) -> Response:
        """WebSub 5.3.1: "echo back" the challenge for topics that were asked for."""
        query = request.query_params
        if query.get("hub.topic") not in self.topics.values():
            return Response(status_code=HTTPStatus.NOT_FOUND)
        return PlainTextResponse(query.get("hub.challenge", ""))

    async def _receive(self, request: Request) -> Response:
        """Note what a delivery brings, if its signature shows that it is the hub's."""
        body = await request.body()
        if verify(request.headers.get("x-hub-signature", ""), self.secret, body):
            now = self._clock.monotonic()
            for entry_id in entry_ids(body):
                self._arrivals.arrive(Way.WEBHOOK, entry_id, now)
        return Response(status_code=HTTPStatus.NO_CONTENT)


def entry_ids(notification: bytes | str) -> Iterator[str]:
    """Yield the ids of the entries in a JSON notification."""
    for item in orjson.loads(notification).get("items") or ():
        yield item["id"]
