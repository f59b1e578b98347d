"""What is around the hub and outlives it: publishers, callbacks, and their memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from urllib.parse import parse_qs, urlsplit

from hub.net import Request
from tests.support.publisher import PublishedFeed, entries_named_in
from tests.support.subscribers import Receipt, Reply, Subscriber
from tests.support.web_server import ServerAnswer, ServerRequest

GONE = 410
PATIENCES = (
    "0",
    "7",
    "120",
    "-5",
    "1000000000",
    "soon",
    "",
    "Mon, 01 Jan 1990 00:00:00 GMT",
    "Mon, 02 Mar 2026 00:01:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
)
"""What callbacks say about when to try again."""
FORMATS = ("json", "atom", "as-is")


class World:
    """Drawn by a seed; answers requests by their URL, and remembers what came."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.feeds: dict[str, PublishedFeed] = {}  # by URL
        self.subscribers: dict[str, Subscriber] = {}  # by callback
        self.exempt_hosts: set[str] = set()
        self.strays: list[str] = []
        self.is_moody = False
        self.is_alive = True  # False: what the hub asks is heard by nobody any more
        self._trace = hashlib.sha256()
        for number in range(1, random.randint(2, 4)):
            self._add_feed(number)

    def note(self, event: str) -> None:
        """A line of what happens, for a fingerprint of the run."""
        now = asyncio.get_running_loop().time()
        self._trace.update(f"{now:.6f} {event}\n".encode())

    @property
    def fingerprint(self) -> str:
        return self._trace.hexdigest()[:16]

    @property
    def counts(self) -> dict[int, int]:
        """Of the feeds by their numbers: how many entries they have."""
        return {feed.number: feed.count for feed in self.feeds.values()}

    def publish(self) -> PublishedFeed:
        feed = self.random.choice(list(self.feeds.values()))
        for _ in range(self.random.randint(1, 3)):
            feed.count += 1
        self.note(f"published {feed.number}/{feed.count}")
        return feed

    def disturb(self) -> None:
        """A publisher is in trouble, or is out of it again."""
        feed = self.random.choice(list(self.feeds.values()))
        feed.instead = self.random.choice(
            (
                None,
                None,
                ServerAnswer(status=500),
                ServerAnswer(status=404),
                ServerAnswer(status=503, headers={"Retry-After": "30"}),
                ServerAnswer(body=b"<html><title>Under construction</title>"),
                ServerAnswer(body=feed.document()[: self.random.randint(0, 150)]),
            )
        )

    def heal(self) -> None:
        self.is_moody = False
        for feed in self.feeds.values():
            feed.instead = None

    def unheard(self, request: Request) -> None:
        """The answer to it was lost on its way, to a hub that waited for it."""
        subscriber = self.subscribers.get(request.url)
        if subscriber is not None and request.method == "POST" and self.is_alive:
            last = subscriber.receipts[-1]
            subscriber.receipts[-1] = replace(last, status=0)

    async def answer(self, request: Request) -> ServerAnswer | None:
        """None resets the connection."""
        if request.url in self.feeds:
            return self._serve(self.feeds[request.url], request)
        callback = request.url.partition("?")[0]
        subscriber = self.subscribers.get(callback)
        if subscriber is None:
            self.strays.append(request.url)
            return ServerAnswer(status=404)
        if request.method == "GET":
            return _confirm(request)
        return await self._receive(subscriber, request)

    def _serve(self, feed: PublishedFeed, request: Request) -> ServerAnswer:
        if feed.instead is not None:
            return feed.instead
        body = feed.document()
        etag = f'"{feed.count}"'
        headers = {"Content-Type": "application/atom+xml", "ETag": etag}
        if request.headers.get("If-None-Match") == etag:
            return ServerAnswer(status=304, headers=headers)
        return ServerAnswer(headers=headers, body=body)

    async def _receive(
        self, subscriber: Subscriber, request: Request
    ) -> ServerAnswer | None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        reply = next(subscriber.replies, Reply())
        received = _as_server_request(request)
        status = 0  # whoever is cut off has not answered
        if reply.status == GONE:
            subscriber.has_left = True
        try:
            await asyncio.sleep(reply.after)
            status = reply.status
        finally:
            if self.is_alive:
                self._remember(subscriber, received, started, status)
        return ServerAnswer(status=status, headers=reply.headers) if status else None

    def _remember(
        self,
        subscriber: Subscriber,
        request: ServerRequest,
        started: float,
        status: int,
    ) -> None:
        subscriber.receipts.append(
            Receipt(
                entries=tuple(entries_named_in(request.body.decode())),
                delivery_id=request.headers.get("webhook-id", ""),
                signature_valid=subscriber.owns(request),
                started=started,
                answered=asyncio.get_running_loop().time(),
                status=status,
                request=request,
            )
        )
        if status:  # what is cut off together ends in any order
            self.note(f"{subscriber.name} {status} {len(request.body)}")

    def _add_feed(self, number: int) -> None:
        feed = PublishedFeed(number=number)
        url = f"https://feeds{number}.example/{number}"
        self.feeds[url] = feed
        if self.random.random() < 0.5:
            self.exempt_hosts.add(f"feeds{number}.example")
        for index in range(self.random.randint(1, 6)):
            self.add_subscriber(feed, url, index)

    def add_subscriber(self, feed: PublishedFeed, topic: str, index: int) -> Subscriber:
        host = f"callbacks{self.random.randint(1, 4)}.example"
        name = f"s{feed.number}-{index}"
        subscriber = Subscriber(
            name=name,
            feed=feed.number,
            topic=topic,
            callback=f"https://{host}/{name}",
            secret=f"the secret of {name}" if self.random.random() < 0.8 else "",
            format=self.random.choice(FORMATS),
        )
        subscriber.replies = self._moods(Random(self.random.random()))
        self.subscribers[subscriber.callback] = subscriber
        if self.random.random() < 0.5:
            self.exempt_hosts.add(host)
        return subscriber

    def _moods(self, random: Random) -> Iterator[Reply]:
        while True:
            throw = random.random()
            if not self.is_moody or throw < 0.7:
                yield Reply(after=random.uniform(0, 0.2))
            elif throw < 0.705:
                yield Reply(status=GONE)
            elif throw < 0.76:
                yield Reply(status=random.choice((500, 503, 429, 404, 302)))
            elif throw < 0.8:
                patience = {"Retry-After": random.choice(PATIENCES)}
                yield Reply(status=random.choice((429, 503)), headers=patience)
            elif throw < 0.9:
                yield Reply(after=random.uniform(1, 19))
            elif throw < 0.95:
                yield Reply(status=0)  # a reset
            else:
                yield Reply(after=random.uniform(20, 60))  # longer than anybody waits


def _confirm(request: Request) -> ServerAnswer:
    """A question whether the subscription is meant; a denial gets the same answer."""
    query = parse_qs(urlsplit(request.url).query)
    return ServerAnswer(body=query.get("hub.challenge", [""])[0].encode())


def _as_server_request(request: Request) -> ServerRequest:
    return ServerRequest(
        method=request.method,
        target=urlsplit(request.url).path,
        headers={name.lower(): value for name, value in request.headers.items()},
        body=request.body or b"",
    )
