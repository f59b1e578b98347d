from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hub.websub import pings as pings_module
from hub.websub.pings import Pings
from storage.errors import NotFound
from storage.records import FeedId, StoredFeed
from tests.support.eventually import eventually
from tests.support.fetch_targets import a_feed


class GatedPoller:
    """Counts its fetches; while the gate is closed they do not end."""

    def __init__(self) -> None:
        self.fetched: list[FeedId] = []
        self.running: set[FeedId] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch_now(self, feed_id: FeedId) -> StoredFeed:
        self.fetched.append(feed_id)
        self.running.add(feed_id)
        await self.gate.wait()
        self.running.discard(feed_id)
        if feed_id == 404:
            raise NotFound("feed", feed_id)
        return a_feed(feed_id)

    def is_under_way(self, feed_id: FeedId) -> bool:
        return feed_id in self.running


@asynccontextmanager
async def running(pings: Pings) -> AsyncIterator[None]:
    task = asyncio.create_task(pings.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_ping_is_a_fetch_and_equal_ones_that_wait_are_one() -> None:
    poller = GatedPoller()
    pings = Pings(poller)
    for feed_id in (1, 2, 1, 1):
        assert pings.add(FeedId(feed_id))
    async with running(pings):
        await eventually(lambda: len(poller.fetched) == 2)
    assert sorted(poller.fetched) == [1, 2]


async def test_a_ping_during_a_fetch_brings_another_after_it() -> None:
    poller = GatedPoller()
    pings = Pings(poller)
    async with running(pings):
        poller.gate.clear()
        pings.add(FeedId(1))
        await eventually(lambda: len(poller.fetched) == 1)
        pings.add(FeedId(1))
        await eventually(lambda: len(poller.fetched) == 2)  # joins the one under way
        poller.gate.set()
        await eventually(lambda: len(poller.fetched) == 3)


async def test_a_feed_that_is_gone_harms_no_other() -> None:
    poller = GatedPoller()
    pings = Pings(poller)
    async with running(pings):
        pings.add(FeedId(404))
        await eventually(lambda: len(poller.fetched) == 1)
        pings.add(FeedId(1))
        await eventually(lambda: len(poller.fetched) == 2)


async def test_only_so_many_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pings_module, "MOST_WAITING", 2)
    pings = Pings(GatedPoller())
    assert [pings.add(FeedId(number)) for number in (1, 2, 3, 1)] == [
        True,
        True,
        False,
        True,
    ]
