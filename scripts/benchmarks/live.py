"""1,000 live connections, each sent every message of 1 kB.

The hub: a record is read from the log, rendered and written to all, by its own server;
what committing it costs is not counted. The floor: one prepared frame written to as
many transports of asyncio. Memory: a whole hub with as many idle websockets, each with
one subscription.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Protocol, cast
from urllib.parse import quote

from starlette.applications import Starlette

from hub.live.connection_quotas import MOST_CONNECTIONS, divide_connections
from hub.live.live_stream import LiveStream
from hub.runtime.clock import SystemClock
from hub.runtime.metrics import Metrics
from hub.services.live_access import LiveService
from hub.services.token_authentication import TokenService
from hub.services.topic_addresses import TrackTopics
from hub.web.authentication import Authenticator
from hub.web.server.http_server import create_server, listening_socket
from hub.web.streams.stream_routes import StreamRoutes
from protocols.live.message_encoding import text_frame
from protocols.model import Entry, Feed, Status, Text
from scripts.benchmarks.hub_under_test import running_hub
from scripts.benchmarks.listeners import MARK, Listeners, allow_files, listening
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Size,
    Stopwatch,
    alternate,
    cpu_finding,
    until,
)
from storage.contract import Storage
from storage.records import (
    FeedId,
    FetchCommit,
    NewFeed,
    Polling,
    RecordKind,
    RecordWrite,
)
from storage.sqlite import open_database

CONNECTIONS = 1_000
MESSAGE = 1_024
TOPIC = "https://publisher.example/"
UNHEARD = "https://unheard.example/"
TARGET = f"/stream?topic={quote(TOPIC, safe='')}"
_IDLE_KIB = 40.0


class MessageCounter(Protocol):
    """Those who count what has come."""

    @property
    def messages(self) -> int: ...

    async def wait_for(self, messages: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeds:
    """One that all listen to, and one that nobody does."""

    heard: FeedId
    unheard: FeedId


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    messages, rounds = size.pick((100, 5), (20, 1), (2, 1))
    count = size.pick(CONNECTIONS, CONNECTIONS, 50)
    allow_files(8 * CONNECTIONS)
    yield _idle_finding(await _idle_kibibytes(directory, count))
    storage = await open_database(directory / "hub.db")
    try:
        feeds = await add_feeds(storage)
        async with (
            serving(storage) as (port, metrics),
            accepting() as bare,
            listening(directory, "websocket", port, TARGET, count) as sockets,
            listening(directory, "raw", bare.port, "", count) as raw,
        ):
            await connected(metrics, "websocket", count)
            samples = await alternate(
                rounds,
                hub=partial(speak, storage, feeds, sockets, messages, count),
                floor=partial(write, bare, raw, messages),
            )
        floor = samples["floor"]
        yield cpu_finding("live", "websocket message", samples["hub"], floor, 1.5)
        async with (
            serving(storage) as (port, metrics),
            listening(directory, "sse", port, TARGET, count) as events,
        ):
            await connected(metrics, "sse", count)
            events_sent = await alternate(
                rounds, sse=partial(speak, storage, feeds, events, messages, count)
            )
        sent = events_sent["sse"]
        yield cpu_finding("live", "server-sent event", sent, floor, 2.5)
    finally:
        await storage.close()


def _idle_finding(kibibytes: float) -> Finding:
    return Finding(
        bench="live",
        measure="KiB per idle websocket",
        hub=kibibytes,
        target=f"<= {_IDLE_KIB:g}",
        met=kibibytes <= _IDLE_KIB,
    )


async def add_feeds(storage: Storage) -> Feeds:
    return Feeds(
        heard=await add_feed(storage, TOPIC),
        unheard=await add_feed(storage, UNHEARD),
    )


async def add_feed(storage: Storage, topic: str) -> FeedId:
    now = SystemClock().now()
    feed, _is_new = await storage.feeds.add(NewFeed(url=topic), now)
    await storage.feeds.defer([(feed.id, now + timedelta(days=30))])
    return feed.id


@asynccontextmanager
async def serving(
    storage: Storage, connections: int = MOST_CONNECTIONS
) -> AsyncIterator[tuple[int, Metrics]]:
    """The hub's server with nothing but the live stream behind it."""
    clock, metrics = SystemClock(), Metrics()
    stream = LiveStream(
        storage.log,
        "https://hub.example/hub",
        await storage.log.end(),
        random=Random(1),  # noqa: S311 - no secret
        metrics=metrics,
        quotas=divide_connections(connections, 100),
        clock=clock,
    )
    tracks = TrackTopics(storage.tracking, clock, "https://hub.example")
    live = LiveService(storage.feeds, stream, tracks, is_open=True)
    authenticator = Authenticator(TokenService(storage.tokens, clock), "token")
    server = create_server(Starlette(routes=StreamRoutes(live, authenticator).routes()))
    with listening_socket("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        reading = asyncio.create_task(stream.run())
        try:
            yield listener.getsockname()[1], metrics
        finally:
            await stream.drain()
            server.stop()
            await serving
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def connected(
    metrics: Metrics, transport: str, connections: int = CONNECTIONS
) -> None:
    async def all_are() -> bool:
        return metrics.connections[transport] == connections

    await until(all_are, pause=0.05)
    await asyncio.sleep(1.0)  # until the last subscription has begun


async def speak(
    storage: Storage,
    feeds: Feeds,
    listeners: MessageCounter,
    messages: int,
    connections: int = CONNECTIONS,
) -> Sample:
    """Each received by all before the next, less what commits cost without them."""
    watch = Stopwatch()
    for _ in range(messages):
        await storage.log.commit(message(feeds.unheard))
    unheard = watch.sample(messages)
    watch = Stopwatch()
    for _ in range(messages):
        expected = listeners.messages + connections
        await storage.log.commit(message(feeds.heard))
        await listeners.wait_for(expected)
    heard = watch.sample(messages * connections)
    return replace(heard, cpu=heard.cpu - unheard.cpu)


def message(feed_id: FeedId) -> FetchCommit:
    now = SystemClock().now()
    text = "x" * (MESSAGE - 400) + MARK.decode()
    entry = Entry(key="key", id="id", title="One", summary=Text(value=text))
    return FetchCommit(
        feed_id=feed_id,
        at=now,
        next_fetch=now + timedelta(days=30),
        polling=Polling(),
        head=Feed(title="A feed"),
        entries=(entry,),
        records=(
            RecordWrite(
                kind=RecordKind.ENTRIES,
                status=Status(code=200, http="OK"),
                entries=((entry.key, True),),
            ),
        ),
    )


@dataclass
class Bare:
    port: int
    transports: set[asyncio.Transport] = field(default_factory=set)


class _Accepting(asyncio.Protocol):
    def __init__(self, bare: Bare) -> None:
        self._bare = bare

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._bare.transports.add(cast(asyncio.Transport, transport))


@asynccontextmanager
async def accepting() -> AsyncIterator[Bare]:
    with listening_socket("127.0.0.1", 0) as listener:
        bare = Bare(listener.getsockname()[1])
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Accepting(bare), sock=listener)
        try:
            yield bare
        finally:
            server.close()


async def write(bare: Bare, listeners: Listeners, messages: int) -> Sample:
    frame = text_frame(b"x" * (MESSAGE - len(MARK)) + MARK)
    watch = Stopwatch()
    for _ in range(messages):
        expected = listeners.messages + len(bare.transports)
        for transport in bare.transports:
            transport.write(frame)
        await listeners.wait_for(expected)
    return watch.sample(messages * len(bare.transports))


async def _idle_kibibytes(directory: Path, count: int) -> float:
    """Resident memory that a connection adds to a whole hub."""
    database = directory / "idle" / "hub.db"
    database.parent.mkdir()
    storage = await open_database(database)
    await add_feed(storage, TOPIC)
    await storage.close()
    async with running_hub(database) as hub:
        await hub.wait_ready()
        async with listening(directory, "websocket", hub.port, TARGET, 100):
            await asyncio.sleep(2.0)
            before = hub.megabytes
            async with listening(directory, "websocket", hub.port, TARGET, count):
                await asyncio.sleep(4.0)
                return (hub.megabytes - before) * 1024 / count
