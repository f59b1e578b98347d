"""The demonstration itself: from an empty directory to a table of delays."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import connect

from hub.composition import build_hub
from hub.demo.arrivals import Announce, Arrivals, Way
from hub.demo.demo_servers import DemoServers, entry_ids
from hub.demo.hub_requests import DemoFailed, ask_hub
from hub.demo.samples import FeedKind
from hub.main import run_until_stopped
from hub.runtime.clock import Clock, SystemClock
from hub.services.token_authentication import ADMINISTRATOR
from hub.settings import Settings
from hub.web.server.http_server import create_server, listening_socket
from protocols.live.live_messages import NotificationMessage
from protocols.live.message_decoding import read_server_message
from storage.contract import Storage
from storage.database_url import open_storage
from storage.records import NewFeed, SubscriptionId, SubscriptionState

EVERY_SECONDS = 3.0
"""Seconds between two new entries of each feed."""
READY_SECONDS = 30.0
LOOK_SECONDS = 0.05
LAST_SECONDS = 10.0
"""Seconds for which the arrivals of the last entries are waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A running hub, its storage, and the publisher and callback around it."""

    url: str
    storage: Storage
    servers: DemoServers
    arrivals: Arrivals
    clock: SystemClock


async def demonstrate(
    seconds: float, announce: Callable[[str], None], arrived: Announce
) -> Arrivals:
    """Publish for ``seconds``, and return the arrivals. Raises `DemoFailed`.

    ``announce`` is called with lines to print, ``arrived`` with each arrival.
    """
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory("-fanfare"))
        own, others = (
            stack.enter_context(listening_socket("127.0.0.1", 0)) for _ in range(2)
        )
        storage = await open_storage(f"sqlite:{Path(directory) / 'demo.db'}")
        stack.push_async_callback(storage.close)
        clock = SystemClock()
        arrivals = Arrivals(arrived)
        stage = Stage(
            url=_url(own),
            storage=storage,
            servers=DemoServers(_url(others), f"{_url(own)}/hub", arrivals, clock),
            arrivals=arrivals,
            clock=clock,
        )
        announce(
            f"a hub runs at {stage.url}, a publisher and a callback at {_url(others)}"
        )
        try:
            await _perform(stage, directory, seconds, announce, own, others, stack)
        except* Exception as failures:
            raise DemoFailed(_reason(failures)) from failures
    return arrivals


async def _perform(
    stage: Stage,
    directory: str,
    seconds: float,
    announce: Callable[[str], None],
    own: socket.socket,
    others: socket.socket,
    stack: AsyncExitStack,
) -> None:
    for topic in stage.servers.topics.values():
        await stage.storage.feeds.add(NewFeed(url=topic), stage.clock.now())
    built = await build_hub(
        _settings(directory), stage.storage, secrets.token_hex(16), stage.url, stack
    )
    link = await built.services.sessions.make_link(ADMINISTRATOR)
    announce(f"its pages, by a link that works once: {link.url}")
    around = create_server(stage.servers.application())
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(around.serve(sockets=[others]))
        running = group.create_task(run_until_stopped(built, own, stop))
        await _play(stage, seconds)
        stop.set()
        await running
        around.stop()
        await serving


async def _play(stage: Stage, seconds: float) -> None:
    topics = stage.servers.topics
    await _until(lambda: _all_fetched(stage), "the first fetches")
    for topic in topics.values():
        await ask_hub(stage.url, HTTPStatus.ACCEPTED, _subscription(stage, topic))
    await _until(lambda: _all_subscribed(stage), "the subscriptions of the webhook")
    cursor = str(await stage.storage.log.end())
    listeners = DemoListeners(
        stage.url, topics.values(), cursor, stage.arrivals, stage.clock
    )
    async with asyncio.TaskGroup() as group:
        listening = [
            group.create_task(listeners.listen_by_websocket()),
            group.create_task(listeners.listen_by_events()),
        ]
        await _publish(stage, seconds)
        for each in listening:
            each.cancel()


async def _publish(stage: Stage, seconds: float) -> None:
    """Publish an entry of each feed and ping the hub, until the time is over.

    Then wait a while until all of them have arrived.
    """
    end = stage.clock.monotonic() + seconds
    while True:
        for kind in FeedKind:
            stage.servers.publish(kind)
            ping = {"hub.mode": "publish", "hub.url": stage.servers.topics[kind]}
            await ask_hub(stage.url, HTTPStatus.NO_CONTENT, ping)
        if stage.clock.monotonic() + EVERY_SECONDS > end:
            break
        await asyncio.sleep(EVERY_SECONDS)
    try:
        async with asyncio.timeout(LAST_SECONDS):
            await stage.arrivals.wait_complete()
    except TimeoutError:
        return  # the table says what is missing


def _subscription(stage: Stage, topic: str) -> dict[str, str]:
    return {
        "hub.mode": "subscribe",
        "hub.topic": topic,
        "hub.callback": stage.servers.callback,
        "hub.secret": stage.servers.secret,
        "format": "json",
    }


async def _all_fetched(stage: Stage) -> bool:
    found = [
        await stage.storage.feeds.find(topic) for topic in stage.servers.topics.values()
    ]
    return all(feed and feed.polling.last_success for feed in found)


async def _all_subscribed(stage: Stage) -> bool:
    found = await stage.storage.subscriptions.page(after=SubscriptionId(0), limit=10)
    active = [each for each in found if each.state is SubscriptionState.ACTIVE]
    return len(active) == len(FeedKind)


async def _until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    for _ in range(round(READY_SECONDS / LOOK_SECONDS)):
        if await condition():
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise DemoFailed(f"{what} took over {READY_SECONDS:g} s")


def _settings(directory: str) -> Settings:
    """Return settings with polls every 2 seconds, too many for anybody else's feeds."""
    return Settings(
        database=f"sqlite:{Path(directory) / 'demo.db'}",
        allow_networks=(ipaddress.ip_network("127.0.0.0/8"),),
        min_period=1.0,
        max_period=2.0,
        default_floor=1.0,
        earned_floor=1.0,
    )


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _reason(failures: BaseExceptionGroup[Exception]) -> str:
    first: BaseException = failures
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return str(first) or type(first).__name__


LARGEST_CHUNK = 16 * 1024 * 1024


class DemoListeners:
    """Listens from a cursor on: what is published before it connects is not missed."""

    def __init__(
        self,
        url: str,
        topics: Iterable[str],
        cursor: str,
        arrivals: Arrivals,
        clock: Clock,
    ) -> None:
        self._parts = urlsplit(url)
        self._query = urlencode(
            [*(("topic", topic) for topic in topics), ("cursor", cursor)]
        )
        self._arrivals = arrivals
        self._clock = clock

    async def listen_by_websocket(self) -> None:
        async with connect(f"ws://{self._parts.netloc}/stream?{self._query}") as socket:
            async for message in socket:
                self._take(Way.WEBSOCKET, message)

    async def listen_by_events(self) -> None:
        reader, writer = await asyncio.open_connection(
            self._parts.hostname, self._parts.port, limit=LARGEST_CHUNK
        )
        try:
            writer.write(
                f"GET /stream?{self._query} HTTP/1.1\r\nHost: {self._parts.netloc}\r\n"
                "Accept: text/event-stream\r\n\r\n".encode()
            )
            async for line in _lines(reader):
                if line.startswith(b"data: "):
                    self._take(Way.SSE, line.removeprefix(b"data: "))
        finally:
            writer.close()

    def _take(self, way: Way, message: str | bytes) -> None:
        read = read_server_message(message)
        if isinstance(read, NotificationMessage):
            now = self._clock.monotonic()
            for entry_id in entry_ids(read.body):
                self._arrivals.arrive(way, entry_id, now)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a chunked answer (RFC 9112 7.1), until it ends."""
    await reader.readuntil(b"\r\n\r\n")
    rest = b""
    while size := int(await reader.readline(), 16):
        chunk = await reader.readexactly(size + len(b"\r\n"))
        *lines, rest = (rest + chunk[:size]).split(b"\n")
        for line in lines:
            yield line
