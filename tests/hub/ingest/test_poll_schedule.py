"""Which feeds are visited next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hub.core.schedule.budget import Budget
from hub.ingest.due_queue import Due
from hub.ingest.poll_schedule import PollSchedule
from storage.records import FeedId
from tests.support.clock import ManualClock
from tests.support.fetch_targets import a_feed
from tests.support.polled import PolledStorage, a_limiter

HOST = "site.example"


class Scene:
    """Three feeds of a host; of the first, a site is being read."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        storage = PolledStorage()
        self.schedule = PollSchedule(
            storage.feeds,
            a_limiter(self.clock),
            self.clock,
            Budget(),
            is_read={HOST}.__contains__,
        )
        for number in (1, 2, 3):
            storage.put(a_feed(number, f"https://{HOST}/{number}"))

    def ask(self, number: int) -> None:
        self.schedule.ask(FeedId(number), f"https://{HOST}/{number}")

    def take(self) -> list[Due]:
        return self.schedule.take(9)


@pytest.fixture
async def scene() -> Scene:
    """The visit to the site is under way."""
    scene = Scene()
    await scene.schedule.load()
    assert [due.feed_id for due in scene.take()] == [1]
    return scene


async def test_what_is_due_waits_for_the_end_of_the_site(scene: Scene) -> None:
    scene.clock.advance(60)
    await scene.schedule.load()
    assert scene.take() == []


async def test_what_is_asked_for_is_visited_beside_it_one_at_a_time(
    scene: Scene,
) -> None:
    scene.ask(2)
    scene.ask(3)
    [first] = scene.take()
    assert first.feed_id == 3
    assert scene.take() == []

    scene.schedule.finish(first, scene.clock.monotonic())
    scene.clock.advance(1)
    assert [due.feed_id for due in scene.take()] == [2]


async def test_what_is_asked_for_is_put_off_with_all_of_a_host_that_is_throttled(
    scene: Scene,
) -> None:
    scene.ask(2)
    until = scene.clock.now() + timedelta(hours=1)
    assert set(scene.schedule.hold(f"https://{HOST}/1", until)) == {2, 3}
    assert scene.take() == []
