"""One topic, 1,000 callbacks with a secret each, a body of about 4 kB.

The hub: a record is committed, and the dispatcher delivers it, durably. The clock
stops at the last 2xx; CPU counts until every acknowledgement is stored. The floor:
`bare.post_all` with as many workers, a body of that size and the same signatures.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import aiohttp

from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.http import HttpNetwork
from hub.runtime.clock import SystemClock
from scripts.benchmarks.bare import bare_session, post_all
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Size,
    Stopwatch,
    alternate,
    cpu_finding,
    rate_finding,
    until,
)
from scripts.benchmarks.peers import Peer, running_peer
from scripts.benchmarks.topics import (
    BODY_BYTES,
    add_topic,
    callbacks,
    is_recorded,
    news,
)
from storage.contract import Storage
from storage.records import (
    FeedId,
    Format,
)
from storage.sqlite import open_database

CALLBACKS = 1_000
CONCURRENCY = 256
BODY = b"<!-- " + b"x" * (BODY_BYTES - 9) + b" -->"
_FORMATS = {Format.AS_IS: "application/atom+xml", Format.JSON: "application/json"}


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    count = size.pick(CALLBACKS, CALLBACKS, 50)
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(running_peer(directory, ["127.0.0.1"]))
        storage = await open_database(directory / "hub.db")
        stack.push_async_callback(storage.close)
        network = await stack.enter_async_context(
            HttpNetwork(allow_callbacks=(ip_network("127.0.0.0/8"),))
        )
        session = await stack.enter_async_context(bare_session(connections=CONCURRENCY))
        dispatcher = asyncio.create_task(_dispatcher(storage, network).run())
        for format, content_type in _FORMATS.items():
            deliveries = callbacks(peer.port, format, count)
            feed_id = await add_topic(storage, format, deliveries, format)
            samples = await alternate(
                size.pick(11, 1, 1),
                hub=partial(_publish, storage, feed_id, peer, count),
                floor=partial(_post, session, peer, content_type, count),
            )
            for finding in _findings(format, samples["hub"], samples["floor"]):
                yield finding
        dispatcher.cancel()


def _findings(format: Format, hub: list[Sample], floor: list[Sample]) -> list[Finding]:
    name = f"fanout {format}"
    return [
        rate_finding(name, "deliveries", hub, floor, 0.8),
        cpu_finding(name, "delivery", hub, floor, 1.35),
    ]


def _dispatcher(storage: Storage, network: HttpNetwork) -> Dispatcher:
    limits = DeliveryLimits(requests=CONCURRENCY)
    return Dispatcher(
        storage, network, SystemClock(), "https://hub.example/hub", limits
    )


async def _publish(storage: Storage, feed_id: FeedId, peer: Peer, count: int) -> Sample:
    expected = peer.requests + count
    commit = news(feed_id)
    watch = Stopwatch()
    await storage.log.commit(commit)
    await peer.wait_for(expected)
    ended = peer.last
    await until(partial(is_recorded, storage), pause=0.02)
    return watch.sample(count, ended)


async def _post(
    session: aiohttp.ClientSession, peer: Peer, content_type: str, count: int
) -> Sample:
    deliveries = callbacks(peer.port, "floor", count)
    watch = Stopwatch()
    await post_all(session, deliveries, BODY, content_type, CONCURRENCY)
    return watch.sample(count)
