"""A host that answers none of its feeds is asked by one of them at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.core.schedule.poll_period import PollingRules
from hub.ingest.fetcher import FetchRequest
from hub.ingest.poller import Poller
from hub.limits.host_circuit_breaker import FIRST_REST, OPENS_AFTER, HostCircuitBreaker
from storage.records import FeedId
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher, LineParser
from tests.support.fetch_targets import START, a_feed, an_answer
from tests.support.polled import PolledStorage, a_limiter
from tests.support.waiting import eventually, in_background

DEAD = "dead.example"
FEEDS = 30


class Scene:
    """Thirty feeds of a host, all due; ``silent`` are the hosts that say nothing."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.storage = PolledStorage()
        self.fetcher = FakeFetcher(self.clock, self.answer)
        self.silent = {DEAD}
        self.poller = Poller(
            self.storage,
            self.fetcher,
            LineParser(),
            a_limiter(self.clock),
            self.clock,
            PollingRules(),
            concurrency=8,
        )
        for number in range(1, FEEDS + 1):
            self.storage.put(a_feed(number, f"https://{DEAD}/{number}"))

    def answer(self, request: FetchRequest) -> Fetched | None:
        if not any(host in request.url for host in self.silent):
            return None
        silence = an_answer(0, error="cannot connect")
        return replace(silence, is_unanswered=True)

    @property
    def requests(self) -> int:
        return len(self.fetcher.requests)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with in_background(self.poller.run):
            yield

    async def until_given_up(self) -> None:
        """Second by second, as the host's pace has it."""
        while self.requests < OPENS_AFTER:
            seen = self.requests
            await eventually(lambda seen=seen: self.requests > seen)  # type: ignore[misc]
            await eventually(lambda: len(self.storage.commits) == self.requests)
            self.tick(1)
        await self.until_all_wait(FIRST_REST - 2 * FEEDS)

    async def until_all_wait(self, seconds: float) -> None:
        """A host's due feeds come one a second; each is put off when it comes."""
        self.tick(FEEDS + 10)
        await eventually(lambda: self.is_left_alone(seconds))

    async def until_asked(self, feeds: int) -> None:
        async with asyncio.timeout(60):
            while len({request.url for request in self.fetcher.requests}) < feeds:
                self.tick(5)
                await asyncio.sleep(0.01)

    def is_left_alone(self, seconds: float) -> bool:
        """Whether none of its feeds is due for so long, but for those that failed."""
        until = self.clock.now() + timedelta(seconds=seconds)
        failed = {commit.feed_id for commit in self.storage.commits}
        others = {FeedId(number) for number in range(1, FEEDS + 1)} - failed
        return all(self.storage.feed(each).next_fetch >= until for each in others)

    def tick(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.poller.wake()


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_after_five_silences_none_of_its_feeds_is_asked(scene: Scene) -> None:
    async with scene.running():
        await scene.until_given_up()
    assert scene.requests == OPENS_AFTER
    assert all(each.at < START + timedelta(minutes=5) for each in scene.storage.commits)


async def test_then_one_feed_asks_and_if_it_is_silent_the_others_wait_twice_as_long(
    scene: Scene,
) -> None:
    async with scene.running():
        await scene.until_given_up()
        scene.tick(FIRST_REST)
        await eventually(lambda: scene.requests == OPENS_AFTER + 1)
        await scene.until_all_wait(2 * FIRST_REST - 2 * FEEDS)
    assert scene.requests == OPENS_AFTER + 1


async def test_one_answer_brings_all_of_them_back(scene: Scene) -> None:
    async with scene.running():
        await scene.until_given_up()
        scene.silent.clear()
        scene.tick(FIRST_REST)
        await scene.until_asked(FEEDS)


async def test_an_error_is_an_answer(scene: Scene) -> None:
    scene.silent.clear()
    scene.fetcher.answers = lambda request: an_answer(500)
    async with scene.running():
        await scene.until_asked(FEEDS)


async def test_other_hosts_are_asked_as_ever(scene: Scene) -> None:
    async with scene.running():
        await scene.until_given_up()
        scene.storage.put(a_feed(99, "https://other.example/feed"))
        scene.tick(1)
        await eventually(lambda: scene.fetcher.urls[-1] == "https://other.example/feed")


async def test_whoever_asks_by_hand_or_pings_is_heard_all_the_same(
    scene: Scene,
) -> None:
    async with scene.running():
        await scene.until_given_up()
        assert scene.poller.ping(scene.storage.feed(FEEDS))
        await eventually(lambda: scene.requests == OPENS_AFTER + 1)
        await eventually(lambda: len(scene.storage.commits) == OPENS_AFTER + 1)
        scene.tick(1)
        await scene.poller.fetch_now(FeedId(FEEDS))  # joins no fetch under way
    assert scene.requests == OPENS_AFTER + 2


def test_only_so_many_hosts_are_remembered() -> None:
    dead = HostCircuitBreaker(most_hosts=3)
    for number in range(5):
        for _ in range(OPENS_AFTER):
            dead.silent(f"h{number}.example", 0.0)
    assert len(dead) == 3
    assert dead.rest("h0.example", 0.0) == 0
    assert dead.rest("h4.example", 1.0) == FIRST_REST - 1
    assert dead.rest("h4.example", FIRST_REST + 1) == 0
    dead.answered("h4.example")
    assert len(dead) == 2
