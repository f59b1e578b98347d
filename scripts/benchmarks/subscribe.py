"""Verified subscriptions: 1,000 callbacks subscribe to one topic at the open hub.

The hub: a whole one, on its own server. From ``POST /hub`` over its 202 and the GET
that asks the callback to the subscription that is active in the database; CPU counts
until all are. The floor: one GET for each, of the same URLs and from the same
callbacks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from itertools import count
from pathlib import Path

import aiohttp

from hub.runtime.clock import SystemClock
from hub.settings import Settings
from hub.websub.callback_challenge import draw_challenge
from protocols.websub.verification import verification_url
from scripts.benchmarks.bare import bare_session, get_each
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
from scripts.benchmarks.subscribers import Subscribers, running_subscribers
from scripts.benchmarks.working_hub import serving_hub
from storage.contract import Storage
from storage.records import FeedId, FetchCommit, NewFeed, Polling
from storage.sqlite import open_database

SUBSCRIPTIONS = 1_000
CONCURRENCY = 64
TOPIC = "https://publisher.example/feed"


@dataclass(frozen=True, slots=True)
class _Scene:
    storage: Storage
    feed_id: FeedId
    subscribers: Subscribers
    port: int
    rounds: count[int] = field(default_factory=count)


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    async with AsyncExitStack() as stack:
        subscribers = await stack.enter_async_context(running_subscribers(directory))
        storage = await open_database(directory / "hub.db")
        stack.push_async_callback(storage.close)
        feed_id = await _add_topic(storage)
        port = await stack.enter_async_context(
            serving_hub(storage, _settings(directory))
        )
        session = await stack.enter_async_context(bare_session(connections=CONCURRENCY))
        scene = _Scene(storage, feed_id, subscribers, port)
        each = size.pick(SUBSCRIPTIONS, SUBSCRIPTIONS, 50)
        samples = await alternate(
            size.pick(11, 1, 1),
            hub=partial(_subscribe, scene, each),
            floor=partial(_get, session, subscribers, each),
        )
    hub, floor = samples["hub"], samples["floor"]
    yield cpu_finding("subscribe", "subscription", hub, floor, 5)
    yield rate_finding("subscribe", "subscriptions", hub, floor, None)


async def _add_topic(storage: Storage) -> FeedId:
    """A public topic whose baseline is stored."""
    now = SystemClock().now()
    feed, _is_new = await storage.feeds.add(NewFeed(url=TOPIC), now)
    later = now + timedelta(days=30)
    polling = Polling(last_fetch=now, code=200)
    await storage.log.commit(
        FetchCommit(feed_id=feed.id, at=now, next_fetch=later, polling=polling)
    )
    return feed.id


def _settings(directory: Path) -> Settings:
    return Settings(
        database=f"sqlite:{directory / 'hub.db'}",
        allow_callback_networks=(ip_network("127.0.0.0/8"),),
        rate_limit_address=10_000_000,  # counted, but not reached
        log_level="error",
    )


async def _subscribe(scene: _Scene, each: int) -> Sample:
    subscribers = scene.subscribers
    expected = subscribers.confirmed + each
    active = await scene.storage.subscriptions.count(scene.feed_id) + each
    watch = Stopwatch()
    path = f"/callbacks/{next(scene.rounds)}"
    subscribers.ask(scene.port, TOPIC, path, each)
    await subscribers.wait_for(expected)
    ended = subscribers.last
    are_active = partial(_are_active, scene.storage, scene.feed_id, active)
    await until(are_active, pause=0.02)
    return watch.sample(each, ended)


async def _are_active(storage: Storage, feed_id: FeedId, expected: int) -> bool:
    """Whether all are subscribed, and nothing is left to verify."""
    return (
        await storage.subscriptions.count(feed_id) == expected
        and await storage.verifications.next_due() is None
    )


async def _get(
    session: aiohttp.ClientSession, subscribers: Subscribers, each: int
) -> Sample:
    urls = [
        verification_url(
            callback=f"http://127.0.0.1:{subscribers.port}/floor/{number}",
            mode="subscribe",
            topic=TOPIC,
            challenge=draw_challenge(),
            lease_seconds=864_000,
        )
        for number in range(each)
    ]
    watch = Stopwatch()
    await get_each(session, urls, CONCURRENCY)
    return watch.sample(each)
