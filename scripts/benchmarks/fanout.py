"""One topic, 1,000 callbacks with a secret each, a body of about 4 kB.

The hub: a record is committed, and the dispatcher delivers it, durably. The clock
stops at the last 2xx; CPU counts until every acknowledgement is stored. The floor:
`bare.post_all` with as many workers, a body of that size and the same signatures;
with ``--engine both`` it is the hub on SQLite.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import aiohttp

from hub.delivery.dispatcher import DeliveryLimits
from hub.http import HttpNetwork
from scripts.benchmarks.bare import bare_session, post_all
from scripts.benchmarks.engines import Engine, named, opened
from scripts.benchmarks.measuring import (
    Finding,
    Run,
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
from scripts.benchmarks.working_hub import delivering
from storage.contract import Storage
from storage.records import (
    FeedId,
    Format,
)

CALLBACKS = 1_000
CONCURRENCY = 256
BODY = b"<!-- " + b"x" * (BODY_BYTES - 9) + b" -->"
_FORMATS = {Format.AS_IS: "application/atom+xml", Format.JSON: "application/json"}


LEAST_OF_SQLITES = 0.9
"""Deliveries a second."""


async def measure(
    directory: Path, size: Size, engine: Engine = Engine.SQLITE
) -> AsyncIterator[Finding]:
    count = size.pick(CALLBACKS, CALLBACKS, 50)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        peer = await enter(running_peer(directory, ["127.0.0.1"]))
        storages = await enter(opened(directory, engine))
        network = await enter(HttpNetwork(allow_callbacks=(ip_network("127.0.0.0/8"),)))
        session = await enter(bare_session(connections=CONCURRENCY))
        limits = DeliveryLimits(requests=CONCURRENCY)
        for storage in storages:
            await enter(delivering(storage, network, limits))
        for format, content_type in _FORMATS.items():
            publishing: list[Run] = []
            for number, storage in enumerate(storages):
                deliveries = callbacks(peer.port, f"{format}-{number}", count)
                feed_id = await add_topic(storage, format, deliveries, format)
                publishing.append(partial(_publish, storage, feed_id, peer, count))
            samples = await alternate(
                size.pick(11, 1, 1),
                hub=publishing[0],
                floor=publishing[1]
                if engine is Engine.BOTH
                else partial(_post, session, peer, content_type, count),
            )
            name = named(f"fanout {format}", engine)
            for finding in _findings(name, engine, samples["hub"], samples["floor"]):
                yield finding


def _findings(
    name: str, engine: Engine, hub: list[Sample], floor: list[Sample]
) -> list[Finding]:
    is_compared = engine is Engine.BOTH
    least, most = (LEAST_OF_SQLITES, None) if is_compared else (0.8, 1.35)
    return [
        rate_finding(name, "deliveries", hub, floor, least),
        cpu_finding(name, "delivery", hub, floor, most),
    ]


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
