"""A clock that went back is found, put right and told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hub.runtime.clock_watch import NOTE_SECONDS, TOLD_SECONDS, ClockWatch
from storage.sqlite import SqliteStorage
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.storage_scene import Scene
from tests.support.waiting import eventually, in_background

HOUR = 3_600.0
DAY = 24 * HOUR


class Watched:
    """A hub's database and clock, and how often what waits was woken."""

    def __init__(self, storage: SqliteStorage) -> None:
        self.storage = storage
        self.clock = ManualClock()
        self.woken = 0
        self.watch = self.start()

    def start(self) -> ClockWatch:
        return ClockWatch(self.storage, self.clock, self._wake)

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    storage = await open_chosen(tmp_path / "hub.db")
    yield Watched(storage)
    await storage.close()


@pytest.mark.parametrize("ahead", [2 * HOUR, DAY, 400 * DAY])
async def test_a_start_before_the_time_of_the_last_run_is_told(
    watched: Watched, ahead: float
) -> None:
    watched.clock.advance(ahead)
    await watched.watch.begin()
    assert watched.watch.warning == ""
    watched.clock.set_back(ahead)

    second = watched.start()
    await second.begin()

    words = {2 * HOUR: "2 h", DAY: "1 d", 400 * DAY: "400 d"}
    assert second.warning.startswith(f"the clock went back by {words[ahead]}: ")
    watched.clock.advance(TOLD_SECONDS)
    assert second.warning == ""


async def test_a_step_back_while_running_is_put_right_at_the_next_look(
    watched: Watched,
) -> None:
    feed = await Scene(watched.storage).add_feed()
    await watched.watch.begin()
    watched.clock.advance(400 * DAY)
    await watched.watch.look()
    watched.clock.advance(NOTE_SECONDS / 2)
    await watched.watch.look()
    await watched.storage.feeds.defer(
        [(feed.id, watched.clock.now() + timedelta(hours=1))]
    )
    watched.clock.set_back(400 * DAY + NOTE_SECONDS / 2)

    await watched.watch.look()

    due = await watched.storage.feeds.next_due()
    assert due is not None
    assert due == watched.clock.now() + timedelta(hours=1)
    assert watched.watch.warning.startswith("the clock went back by 400 d")
    assert watched.woken == 1


async def test_the_time_is_noted_every_minute(watched: Watched) -> None:
    await watched.watch.begin()
    watched.clock.advance(NOTE_SECONDS - 1)
    await watched.watch.look()
    watched.clock.advance(1)
    await watched.watch.look()

    noted = watched.clock.now()
    back = await watched.storage.note_time(noted - timedelta(hours=1))
    assert back == timedelta(hours=1)
    assert watched.woken == 0


async def test_a_system_whose_clock_was_set_back_is_told_while_it_is_followed(
    watched: Watched,
) -> None:
    class Leading(ManualClock):
        def lead(self) -> float:
            return 2 * HOUR

    watch = ClockWatch(watched.storage, Leading())

    assert watch.warning == (
        "the system's clock was set back by 2 h; the hub follows gradually"
    )


async def test_a_time_that_cannot_be_noted_is_noted_later(watched: Watched) -> None:
    await watched.storage.close()
    with capture_logs() as logs:
        async with in_background(watched.watch.run):
            await eventually(lambda: bool(logs))

    assert [each["event"] for each in logs] == ["time_not_noted"]
