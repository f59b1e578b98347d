from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hub.websub import ping_queue as pings_module
from hub.websub.ping_queue import PingDecision, PingQueue
from storage.records import FeedId, PollReason, StoredFeed
from tests.support.clock import ManualClock
from tests.support.fetch_targets import a_feed
from tests.support.waiting import eventually


class EagerPoller:
    """Fetches at once whatever is pinged; while it is busy, only one feed more."""

    def __init__(self) -> None:
        self.fetched: list[FeedId] = []
        self.waiting: set[FeedId] = set()
        self.is_busy = False
        self.is_patient = False

    def ping(self, feed: StoredFeed, reason: PollReason) -> bool:
        if self.is_patient:
            return False
        if self.is_busy:
            self.waiting.add(feed.id)
        else:
            self.fetched.append(feed.id)
        return True

    def is_pinged(self, feed_id: FeedId) -> bool:
        return feed_id in self.waiting

    @property
    def pinged(self) -> int:
        return len(self.waiting)


class Scene:
    def __init__(self) -> None:
        self.poller = EagerPoller()
        self.clock = ManualClock()
        self.pings = PingQueue(self.poller, self.clock)

    def ping(self, number: int) -> PingDecision:
        return self.pings.add(a_feed(FeedId(number)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.pings.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_ping_is_handed_on_at_once(scene: Scene) -> None:
    assert scene.ping(1) is PingDecision.ACCEPTED
    assert scene.poller.fetched == [1]


async def test_equal_pings_that_wait_are_one(scene: Scene) -> None:
    scene.poller.is_busy = True
    assert [scene.ping(number) for number in (1, 2, 1, 1)] == [
        PingDecision.ACCEPTED,
        PingDecision.ACCEPTED,
        PingDecision.COALESCED,
        PingDecision.COALESCED,
    ]


async def test_ten_thousand_pings_of_a_topic_are_few_fetches_and_delay_no_other(
    scene: Scene,
) -> None:
    taken = Counter(scene.ping(1) for _ in range(10_000))
    assert taken == {
        PingDecision.ACCEPTED: 10,
        PingDecision.PUT_OFF: 1,
        PingDecision.COALESCED: 9_989,
    }
    assert scene.ping(2) is PingDecision.ACCEPTED
    assert scene.poller.fetched == [1] * 10 + [2]


async def test_a_ping_that_was_put_off_has_its_turn_a_second_later(
    scene: Scene,
) -> None:
    for _ in range(11):
        scene.ping(1)
    scene.clock.advance(1)
    async with scene.running():
        await eventually(lambda: len(scene.poller.fetched) == 11)
        assert scene.ping(1) is PingDecision.PUT_OFF
        scene.clock.advance(1)
        await eventually(lambda: len(scene.poller.fetched) == 12)


async def test_a_server_that_asked_for_patience_is_not_pinged(scene: Scene) -> None:
    scene.poller.is_patient = True
    assert scene.ping(1) is PingDecision.PUT_OFF


async def test_only_so_many_may_wait(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pings_module, "MOST_WAITING", 2)
    scene.poller.is_busy = True
    assert [scene.ping(number) for number in (1, 2, 3, 1)] == [
        PingDecision.ACCEPTED,
        PingDecision.ACCEPTED,
        PingDecision.REFUSED,
        PingDecision.COALESCED,
    ]
