"""A hub in this process, whole or the parts that work by themselves, and feeds for it
to poll."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from typing import Final

from hub.composition import build_hub
from hub.core.schedule.poll_period import PollingRules
from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.http import HttpNetwork, Purpose, ResponseLimits
from hub.ingest.document_parser import WorkerParser
from hub.ingest.fetcher import Fetcher
from hub.ingest.poller import Poller
from hub.limits.host_limiter import HostLimiter
from hub.main import run_until_stopped
from hub.runtime.clock import SystemClock
from hub.runtime.node_membership import NodeMembership
from hub.settings import Settings
from hub.web.server.http_server import listening_socket
from scripts.benchmarks.peers import loopback_addresses
from storage.contract import Storage
from storage.records import NewFeed

HOSTS: Final = 1_000
POLLS: Final = 100
"""A second."""


async def add_polled(
    storage: Storage, port: int, period: int, rate: int = POLLS
) -> None:
    """As many feeds as fill the period, due one after the other."""
    now = SystemClock().now()
    hosts = loopback_addresses(HOSTS)
    urls = [
        f"http://{hosts[number % HOSTS]}:{port}/feed/{number}"
        for number in range(rate * period)
    ]
    added = await asyncio.gather(
        *(storage.feeds.add(NewFeed(url=url), now) for url in urls)
    )
    gap = timedelta(seconds=1) / rate
    start = SystemClock().now() + timedelta(seconds=1)
    await storage.feeds.defer(
        [(feed.id, start + number * gap) for number, (feed, _) in enumerate(added)]
    )


@asynccontextmanager
async def serving_hub(storage: Storage, settings: Settings) -> AsyncIterator[int]:
    """A whole hub at work, on its own server; its port."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listening_socket("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        built = await build_hub(
            settings, storage, "token", f"http://127.0.0.1:{port}", stack
        )
        stop = asyncio.Event()
        running = asyncio.create_task(run_until_stopped(built, listener, stop))
        try:
            yield port
        finally:
            stop.set()
            await running


@asynccontextmanager
async def delivering(
    storage: Storage, network: HttpNetwork, limits: DeliveryLimits | None = None
) -> AsyncIterator[None]:
    """The dispatcher of a hub that has joined the database, until left."""
    membership = NodeMembership(storage)
    await membership.ensure_joined()
    dispatcher = Dispatcher(
        storage,
        network,
        SystemClock(),
        "https://hub.example/hub",
        limits,
        membership=membership,
    )
    tasks = [asyncio.create_task(work) for work in (membership.run(), dispatcher.run())]
    try:
        yield
    finally:
        for task in tasks:
            await _end(task)


class Working:
    """The dispatcher and the poller, until left."""

    def __init__(self, storage: Storage, period: int) -> None:
        self._storage = storage
        self._rules = PollingRules(min_period=period, max_period=period)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> None:
        enter, clock = self._stack.enter_async_context, SystemClock()
        loopback = (ip_network("127.0.0.0/8"),)
        network = await enter(
            HttpNetwork(allow_callbacks=loopback, allow_topics=loopback)
        )
        parser = await enter(WorkerParser())
        poller = Poller(
            self._storage,
            Fetcher(network, clock, ResponseLimits()),
            parser,
            HostLimiter(clock, partial(network.is_exempt, purpose=Purpose.TOPIC)),
            clock,
            self._rules,
        )
        dispatcher = Dispatcher(
            self._storage, network, clock, "https://hub.example/hub"
        )
        for work in (poller.run(), dispatcher.run()):
            self._stack.push_async_callback(_end, asyncio.create_task(work))

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
