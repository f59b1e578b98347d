"""What is around the hub and outlives it: publishers, callbacks, and their memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from enum import StrEnum
from random import Random
from urllib.parse import parse_qs, urlsplit

from hub.http import Request
from tests.simulation.asgi_requests import AsgiRequest, AsgiResponse
from tests.simulation.callback_behaviour import GONE, behaviours
from tests.simulation.other_hubs import OtherHub
from tests.support.http_server import ServerAnswer, ServerRequest
from tests.support.publisher import PublishedFeed
from tests.support.subscribers import Receipt, Subscriber

FORMATS = ("json", "atom", "as-is")
HUB_OF_OTHERS = "https://hub{}.elsewhere.example/"
HEARD_OF = 30.0
"""Seconds after which everybody has heard that a feed is back."""
SLOWEST_WAY = 2.0
"""Seconds that a request of others to the hub takes at most, and its answer."""

Host = Callable[[AsgiRequest], Awaitable[AsgiResponse | None]]
"""Whoever is reached where the hub is; None: the connection was lost."""


class Presence(StrEnum):
    """Of a feed in the hub, as far as anybody outside knows."""

    THERE = "there"
    REMOVED = "removed"
    IN_DOUBT = "in doubt"  # the hub died when it was told


class World:
    """Drawn by a seed; answers requests by their URL, and remembers what came."""

    def __init__(self, random: Random, count: Callable[[str], None]) -> None:
        """``count`` is told of what others do to the hub."""
        self.random = random
        self.host: Host | None = None  # None: nobody listens
        self.presence: dict[str, Presence] = {}  # of feeds, by URL
        self.other_hubs: dict[str, OtherHub] = {}  # by URL
        self._there_since: dict[str, float] = {}
        self._count = count
        self.feeds: dict[str, PublishedFeed] = {}  # by URL
        self.subscribers: dict[str, Subscriber] = {}  # by callback
        self.exempt_hosts: set[str] = set()
        self.strays: list[str] = []
        self.posts: list[tuple[str, float]] = []  # to callbacks: when each began
        self.is_odd = False
        self.is_alive = True  # False: what the hub asks is heard by nobody any more
        self._trace = hashlib.sha256()
        for number in range(1, random.randint(1, 2) + 1):
            self._add_hub(number)
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

    def url(self, feed: PublishedFeed) -> str:
        return next(url for url, each in self.feeds.items() if each is feed)

    def feed(self, number: int) -> PublishedFeed:
        return next(each for each in self.feeds.values() if each.number == number)

    def is_there(self, url: str) -> bool:
        return self.presence[url] is Presence.THERE

    def secret_of(self, callback: str) -> str:
        """What pushes to it are signed with; "" if there are none."""
        secrets = (hub.secret_of(callback) for hub in self.other_hubs.values())
        return next(filter(None, secrets), "")

    def has_been_there(self, url: str) -> bool:
        """For so long that everybody has heard of it."""
        now = asyncio.get_running_loop().time()
        return self.is_there(url) and now > self._there_since.get(url, 0.0) + HEARD_OF

    def take_out(self, url: str, presence: Presence) -> None:
        self.presence[url] = presence
        for hub in self.other_hubs.values():
            hub.leave(url, self.feeds[url].number)

    def put_back(self, url: str) -> None:
        self.presence[url] = Presence.THERE
        self._there_since[url] = asyncio.get_running_loop().time()

    def relive(self, url: str, presence: Presence) -> None:
        """The hub is as it was, and owes nothing of what it was pushed since."""
        for hub in self.other_hubs.values():
            hub.acknowledged.clear()
        if presence is Presence.THERE:
            self.put_back(url)
        else:
            self.take_out(url, presence)

    def fail_poll(self, url: str) -> None:
        """A feed was asked in vain: what was pushed, and went with a process, comes
        when the hub asks again, by its plan."""
        for hub in self.other_hubs.values():
            hub.acknowledged.pop(self.feeds[url].number, None)

    def publish(self) -> PublishedFeed:
        url, feed = self.random.choice(list(self.feeds.items()))
        for _ in range(self.random.randint(1, 3)):
            feed.count += 1
        self.note(f"published {feed.number}/{feed.count}")
        for hub_url, hub in self.other_hubs.items():
            if hub_url in feed.links:
                hub.tell(feed, url)
        return feed

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """What goes on out there, whether or not the hub lives."""
        return {task for hub in self.other_hubs.values() for task in hub.tasks}

    async def send_request(self, request: AsgiRequest) -> AsgiResponse | None:
        """Of somebody else at the hub; on its way there or back it may get lost."""
        await asyncio.sleep(self.random.uniform(0.001, SLOWEST_WAY))
        throw = self.random.random() if self.is_odd else 1.0
        if self.host is None or throw < 0.05:
            return None
        heard = await self.host(request)
        self.note(f"was told {heard.status if heard else 0}")
        return None if throw < 0.1 else heard

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

    def trouble(self) -> None:
        self.is_odd = True
        for hub in self.other_hubs.values():
            hub.is_odd = True

    def heal(self) -> None:
        self.is_odd = False
        for hub in self.other_hubs.values():
            hub.is_odd = False
        for feed in self.feeds.values():
            feed.instead = None

    def unheard(self, request: Request) -> None:
        """The answer to it was lost on its way, to a hub that waited for it."""
        subscriber = self.subscribers.get(request.url)
        if subscriber is None or request.method != "POST" or not self.is_alive:
            return
        if subscriber.receipts:  # a mutant may have kept it from getting there
            subscriber.receipts[-1].status = 0

    async def answer(self, request: Request) -> ServerAnswer | None:
        """None resets the connection."""
        if request.url in self.feeds:
            return self._serve(self.feeds[request.url], request)
        if request.url in self.other_hubs:
            return await self.other_hubs[request.url].answer(request)
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
            self.fail_poll(request.url)
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
        receipt = subscriber.receipt_of(_as_server_request(request), loop.time())
        reply = next(subscriber.answers, ServerAnswer())
        if reply.status == GONE:
            subscriber.has_left = True
        try:
            await asyncio.sleep(reply.delay)
            receipt.status = reply.status
        finally:  # whoever is cut off has not answered
            if self.is_alive:
                receipt.answered = loop.time()
                self._remember(subscriber, receipt)
        return reply if reply.status else None

    def _remember(self, subscriber: Subscriber, receipt: Receipt) -> None:
        subscriber.receipts.append(receipt)
        if receipt.status:  # what is cut off together ends in any order
            self.note(f"{subscriber.name} {receipt.status} {len(receipt.request.body)}")

    def _add_hub(self, number: int) -> None:
        self.other_hubs[HUB_OF_OTHERS.format(number)] = OtherHub(
            Random(self.random.random()), self.send_request, self.is_there, self._count
        )

    def _add_feed(self, number: int) -> None:
        feed = PublishedFeed(number=number)
        url = f"https://feeds{number}.example/{number}"
        self.feeds[url] = feed
        self.presence[url] = Presence.THERE
        if self.random.random() < 0.6:
            hub = self.random.choice(list(self.other_hubs))
            feed.links = (
                f'<link rel="hub" href="{hub}"/><link rel="self" href="{url}"/>'
            )
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
            url=f"https://{host}/{name}",
            secret=f"the secret of {name}" if self.random.random() < 0.8 else "",
            format=self.random.choice(FORMATS),
        )
        subscriber.answers = behaviours(
            Random(self.random.random()), lambda: self.is_odd
        )
        self.subscribers[subscriber.url] = subscriber
        if self.random.random() < 0.5:
            self.exempt_hosts.add(host)
        return subscriber


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
