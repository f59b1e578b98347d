"""The pages of a hub with 100,000 feeds, 1,000,000 subscriptions and 1,000,000 failed
requests, against those of a hub with 1,000 of each.

The application is called as a server calls it, over databases of which nobody else
wants anything. Every page is measured that links lead to, and every order and filter
of the lists.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

from starlette.types import ASGIApp, Message

from hub.composition import build_hub
from hub.live.live_connections import (
    ClientWriter,
    ConnectionOpening,
    LiveConnection,
)
from hub.live.live_stream import LiveStream
from hub.runtime.clock import SystemClock
from hub.services.connection_reports import Transport
from hub.settings import Settings
from scripts.benchmarks.blocking import Ticks
from scripts.benchmarks.measuring import Finding, Size, Stopwatch
from scripts.benchmarks.stored_hubs import address_of, category_of
from scripts.benchmarks.stored_lists import ListLengths, open_lists
from scripts.linked_pages import PAGES, STARTS, find_addresses
from storage.records import FeedSort, SubscriptionSort

MANY: Final = ListLengths(feeds=100_000, subscriptions=1_000_000, deliveries=1_000_000)
FEW: Final = ListLengths(feeds=1_000, subscriptions=1_000, deliveries=1_000)
MOST_GROWTH: Final = 2.0
MOST_CPU: Final = 50
"""Milliseconds of a page."""
MOST_BYTES: Final = 100_000
MOST_BLOCKED: Final = 50
"""Milliseconds that one page may hold the event loop."""
NOISE: Final = 1.0
"""Milliseconds that a page may take longer without being called twice as late."""
CONNECTED: Final = 10_000
"""Live connections of the large hub; the small one has 100."""
ADDRESSES: Final = 4
"""Of each route that are measured."""
_PORT: Final = 8_080
_HOST: Final = "127.0.0.1"
_TOKEN: Final = "the token of the bench"  # noqa: S105 - of nothing

SEARCH: Final = "/admin/subscriptions?search=nowhere"
"""What few have is looked for in 20,000 subscriptions at a time, so that this takes
longer than among 1,000, and no longer among more."""
AUDIT: Final = "/admin/audit?account=account-7&operation=remove_feed"
"""As `SEARCH`: of two conditions that nothing fulfils together, 2,000 records are
looked at."""
FULLER: Final = ("/admin/audit?token=7", "/admin/audit?target=feed&id=7")
"""Of a small hub they show a record, of a large one a whole page of them."""
CONNECTIONS: Final = "/admin/live?account="
"""As `SEARCH`: each live connection is looked at."""
BOUNDED: Final = (SEARCH, AUDIT, *FULLER)
"""What may take so long, however long it takes in a small hub."""
LISTS: Final = (
    *(f"/admin/feeds?sort={each}" for each in FeedSort),
    *(f"/admin/feeds?state=failing&sort={each}" for each in FeedSort),
    f"/admin/feeds?category={category_of(7)}&sort=url&limit=20",
    "/admin/feeds?search=00042",
    "/admin/feeds?search=example",
    f"/admin/feeds?host={urlsplit(address_of(7)).netloc}",
    "/admin/feeds?format=atom",
    "/admin/feeds?format=rss",
    "/admin/feeds?since=2h",
    "/admin/feeds?host=nowhere.example",
    *(f"/admin/subscriptions?sort={each}" for each in SubscriptionSort),
    *(f"/admin/subscriptions?state=failing&sort={each}" for each in SubscriptionSort),
    f"/admin/subscriptions?topic={quote(address_of(8), safe='')}&limit=1",
    "/admin/subscriptions?search=callback/17",
    "/admin/subscriptions?account=account-7",
    "/admin/subscriptions?account=account-7&sort=since",
    "/admin/subscriptions?account=account-0&state=failing",
    "/admin/deliveries?status=5xx",
    "/admin/deliveries?status=none",
    "/admin/deliveries?host=s7.example",
    "/admin/deliveries?since=2h",
    "/admin/deliveries?subscription=100",
    f"/admin/deliveries?topic={quote(address_of(8), safe='')}",
    "/admin/deliveries?outcome=delivered",
    "/admin/deliveries/slowest",
    "/admin/audit?account=account-7",
    "/admin/audit?operation=remove_feed",
    *FULLER,
    "/admin/audit?since=2h&until=1h",
    "/admin/audit?outcome=refused",
    AUDIT,
    "/topics?search=example",
    "/topics?search=nowhere",
    SEARCH,
)
"""Beside those that links lead to."""


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """Of each page how much later its first byte is; then the dearest of all."""
    many = size.pick(
        MANY, ListLengths(feeds=10_000, subscriptions=100_000, deliveries=100_000), FEW
    )
    few = size.pick(FEW, FEW, ListLengths(feeds=100, subscriptions=100, deliveries=100))
    rounds = size.pick(15, 5, 1)
    async with AsyncExitStack() as stack:
        large = await _open(directory / "large", many, stack)
        small = await _open(directory / "small", few, stack)
        _connect(large, size.pick(CONNECTED, 1_000, 100))
        _connect(small, 100)
        addresses = await _addresses(small)
        pages = [await _measure(each, large, small, rounds) for each in addresses]
    for page in pages:
        yield page.growth()
    for finding in _dearest(pages):
        yield finding


async def _addresses(hub: CalledHub) -> list[str]:
    found = await find_addresses(hub.text, STARTS, most=ADDRESSES)
    unseen = [each for each in PAGES if "{" not in each]
    linked = [address for each in found.values() for address in each]
    return [*dict.fromkeys((*linked, *unseen, *LISTS))]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    """Until it began."""


@dataclass(slots=True, kw_only=True)
class CalledHub:
    application: ASGIApp
    live: LiveStream
    cookie: str = ""

    async def ask(self, method: str, address: str, body: bytes = b"") -> PageAnswer:
        """As a browser does that shows a page of the hub."""
        began = time.perf_counter()
        target = urlsplit(address)
        headers = {
            "host": f"{_HOST}:{_PORT}",
            "accept": "text/html",
            "sec-fetch-site": "same-origin",
            "content-type": "application/x-www-form-urlencoded",
            "content-length": str(len(body)),
            "cookie": self.cookie,
        }
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": target.path,
            "raw_path": target.path.encode(),
            "query_string": target.query.encode(),
            "root_path": "",
            "headers": [
                (name.encode(), value.encode()) for name, value in headers.items()
            ],
            "client": (_HOST, 50_000),
            "server": (_HOST, _PORT),
        }
        sent: list[tuple[float, Message]] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append((time.perf_counter() - began, message))

        await self.application(scope, receive, send)
        (seconds, start), *rest = sent
        return PageAnswer(
            status=start["status"],
            headers={name.decode(): value.decode() for name, value in start["headers"]},
            body=b"".join(each.get("body", b"") for _, each in rest),
            seconds=seconds,
        )

    async def text(self, address: str) -> str:
        return (await self.ask("GET", address)).body.decode()


async def _open(
    directory: Path, counts: ListLengths, stack: AsyncExitStack
) -> CalledHub:
    """A hub that does nothing by itself, and a session of its operator."""
    directory.mkdir()  # noqa: ASYNC240 - before anything is measured
    path = directory / "hub.db"
    storage = await open_lists(path, counts)
    stack.push_async_callback(storage.close)
    settings = Settings(
        database=f"sqlite:{path}", rate_limit_address=0, log_level="error"
    )
    url = f"http://{_HOST}:{_PORT}"
    built = await build_hub(settings, storage, _TOKEN, url, stack)
    application = cast(ASGIApp, built.server.config.app)
    hub = CalledHub(application=application, live=built.live)
    form = f"token={_TOKEN.replace(' ', '+')}".encode()
    answer = await hub.ask("POST", "/admin/login", form)
    hub.cookie = answer.headers["set-cookie"].partition(";")[0]
    return hub


@dataclass(slots=True, kw_only=True)
class Nobody:
    """The writer of a connection to which nothing is sent."""

    sent_messages: int = 0
    sent_bytes: int = 0
    waiting: int = 0


def _connect(hub: CalledHub, count: int) -> None:
    """As many live connections as operators see them; nobody is there."""
    now = SystemClock().now()
    for number in range(count):
        opening = ConnectionOpening(id=number, transport=Transport.WEBSOCKET, at=now)
        writer, none = cast(ClientWriter, Nobody()), cast(Any, None)
        hub.live.registry.add(LiveConnection(writer, none, none, opening))


@dataclass(slots=True, kw_only=True)
class Page:
    """What one address cost, each time: milliseconds."""

    address: str
    later: list[float] = field(default_factory=list)
    sooner: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    blocked: float = 0.0
    size: int = 0

    def growth(self) -> Finding:
        late, soon = median(self.later), median(self.sooner)
        if self.address in BOUNDED or self.address.startswith(CONNECTIONS):
            return _most(f"ms to the first byte of {self.address}", late, MOST_CPU)
        return Finding(
            bench="pages",
            measure=f"ms to the first byte of {self.address}",
            hub=late,
            floor=soon,
            ratio=late / soon,
            target=f"<= {MOST_GROWTH:g} x",
            met=late <= max(MOST_GROWTH * soon, soon + NOISE),
        )


async def _measure(
    address: str, large: CalledHub, small: CalledHub, rounds: int
) -> Page:
    page = Page(address=address)
    answer = await large.ask("GET", address)
    also = await small.ask("GET", address)
    if {answer.status, also.status} != {HTTPStatus.OK}:
        raise RuntimeError(f"{address} answers {answer.status} and {also.status}")
    page.size = len(answer.body)
    for _ in range(rounds):
        watch = Stopwatch()
        page.later.append((await large.ask("GET", address)).seconds * 1e3)
        page.cpu.append(watch.sample(1).cpu * 1e3)
        page.sooner.append((await small.ask("GET", address)).seconds * 1e3)
    page.blocked = await _blocked(large, address) * 1e3
    return page


async def _blocked(hub: CalledHub, address: str) -> float:
    ticks = Ticks()
    ticking = asyncio.create_task(ticks.run())
    await asyncio.sleep(0)
    await hub.ask("GET", address)
    await asyncio.sleep(0)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    return ticks.longest


def _dearest(pages: list[Page]) -> list[Finding]:
    dearest = max(pages, key=lambda page: median(page.cpu))
    largest = max(pages, key=lambda page: page.size)
    longest = max(pages, key=lambda page: page.blocked)
    return [
        _most(
            f"CPU ms of the dearest page, {dearest.address}",
            median(dearest.cpu),
            MOST_CPU,
        ),
        _most(
            f"bytes of the largest page, {largest.address}", largest.size, MOST_BYTES
        ),
        _most(
            f"longest block of the event loop by a page, {longest.address}, ms",
            longest.blocked,
            MOST_BLOCKED,
        ),
    ]


def _most(measure: str, value: float, most: int) -> Finding:
    return Finding(
        bench="pages",
        measure=measure,
        hub=value,
        target=f"<= {most:,}",
        met=value <= most,
    )
