"""One topic, 1,000 callbacks with a secret each, a body of about 4 kB.

The hub: a record is committed, and the dispatcher delivers it, durably. The clock
stops at the last 2xx; CPU counts until every acknowledgement is stored. The floor:
`bare.post_all` with as many workers, a body of that size and the same signatures.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import aiohttp

from hub.clock import SystemClock
from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.net import HttpNetwork
from protocols.model import Entry, Feed, Status, Text
from scripts.benchmarks.bare import Delivery, bare_session, post_all
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Stopwatch,
    alternate,
    cpu_finding,
    rate_finding,
    until,
)
from scripts.benchmarks.peers import Peer, running_peer
from storage.interface import Storage
from storage.packing import pack, pack_bytes
from storage.records import (
    OPERATOR,
    EntryWrite,
    FeedId,
    FetchCommit,
    Format,
    NewFeed,
    NewSubscription,
    Polling,
    RecordKind,
    RecordWrite,
    StoredBody,
)
from storage.sqlite import open_database

CALLBACKS = 1_000
CONCURRENCY = 256
BODY = b"<!-- " + b"x" * 4_086 + b" -->"
_FORMATS = {Format.AS_IS: "application/atom+xml", Format.JSON: "application/json"}


async def measure(directory: Path, *, is_quick: bool) -> list[Finding]:
    findings: list[Finding] = []
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
            feed_id = await _add_topic(storage, peer, format)
            samples = await alternate(
                1 if is_quick else 11,
                hub=partial(_publish, storage, feed_id, peer),
                floor=partial(_post, session, peer, content_type),
            )
            findings += _findings(format, samples["hub"], samples["floor"])
        dispatcher.cancel()
    return findings


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


async def _add_topic(storage: Storage, peer: Peer, format: Format) -> FeedId:
    now = SystemClock().now()
    topic = f"https://publisher.example/{format}"
    feed, _is_new = await storage.feeds.add(NewFeed(url=topic), now)
    async with asyncio.TaskGroup() as group:
        for delivery in _deliveries(peer, format):
            new = NewSubscription(
                account=OPERATOR,
                topic=topic,
                feed_id=feed.id,
                callback=delivery.url,
                secret=delivery.secret.decode(),
                format=format,
            )
            group.create_task(storage.subscriptions.add(new, now))
    return feed.id


def _deliveries(peer: Peer, format: str) -> list[Delivery]:
    return [
        Delivery(
            url=f"http://127.0.0.1:{peer.port}/{format}/{number}",
            secret=f"the secret of {number}".encode(),
        )
        for number in range(CALLBACKS)
    ]


async def _publish(storage: Storage, feed_id: FeedId, peer: Peer) -> Sample:
    expected = peer.requests + CALLBACKS
    commit = _news(feed_id, SystemClock().now())
    watch = Stopwatch()
    await storage.log.commit(commit)
    await peer.wait_for(expected)
    ended = peer.last
    await until(partial(_is_recorded, storage), pause=0.02)
    return watch.sample(CALLBACKS, ended)


async def _is_recorded(storage: Storage) -> bool:
    """Whether nothing is left to deliver or to acknowledge."""
    backlog = await storage.backlog()
    if backlog.stragglers:
        raise RuntimeError("a delivery took too long or failed")
    return not backlog.fanouts and not backlog.chunks


async def _post(
    session: aiohttp.ClientSession, peer: Peer, content_type: str
) -> Sample:
    deliveries = _deliveries(peer, "floor")
    watch = Stopwatch()
    await post_all(session, deliveries, BODY, content_type, CONCURRENCY)
    return watch.sample(CALLBACKS)


def _news(feed_id: FeedId, now: datetime) -> FetchCommit:
    """One new entry, as a fetch finds it."""
    key = f"urn:bench:{now.timestamp()}"
    entry = Entry(
        key=key,
        id=key,
        title="News",
        content=Text(value="x" * 3_200),
        published=datetime(2026, 1, 1, tzinfo=UTC),
    )
    status = Status(code=200, http="Fetched (ring) 200 900", title="Bench")
    return FetchCommit(
        feed_id=feed_id,
        at=now,
        next_fetch=now + timedelta(days=1),
        polling=Polling(),
        head=pack(Feed(title="Bench")),
        entries=(EntryWrite(key=key, body=pack(entry)),),
        records=(
            RecordWrite(kind=RecordKind.ENTRIES, status=status, entries=((key, True),)),
        ),
        body=StoredBody(content_type="application/atom+xml", body=pack_bytes(BODY)),
    )
