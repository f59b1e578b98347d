"""After a standstill: thousands of feeds are overdue at once.

The schedule alone, in simulated time: whatever it hands out is fetched at once, and due
again after its period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

import pytest

from hub.core.schedule.budget import Budget
from hub.ingest.due_queue import Due
from hub.ingest.poll_budget import AT_FIRST, HEADROOM
from hub.ingest.poll_schedule import CAPACITY, PollSchedule
from hub.limits.host_limiter import INTERVAL
from storage.records import FeedId, Polling
from tests.support.clock import ManualClock
from tests.support.fetch_targets import START, a_feed
from tests.support.polled import PolledStorage, a_limiter

AT_ONCE = 8
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


@dataclass
class Standstill:
    """Feeds that were to be fetched an hour ago, and a hub that starts now."""

    budget: Budget = field(default_factory=Budget)
    taken: list[FeedId] = field(default_factory=list)
    starts: dict[str, list[float]] = field(default_factory=dict)
    most_held: int = 0

    def __post_init__(self) -> None:
        self.clock = ManualClock(START + timedelta(hours=1))
        self.storage = PolledStorage()
        self.schedule = PollSchedule(
            self.storage.feeds, a_limiter(self.clock), self.clock, self.budget
        )

    def add(self, count: int, period: float, host: str = "") -> list[FeedId]:
        """So many feeds of one period, on a host each or all on one."""
        first = len(self.storage.known) + 1
        for number in range(first, first + count):
            url = f"https://{host or f'h{number}.example'}/{number}"
            self.storage.put(a_feed(number, url, polling=Polling(period=period)))
        return [FeedId(number) for number in range(first, first + count)]

    async def run(self, seconds: float, *, step: float = 0.25) -> None:
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            await self.schedule.load()
            self.most_held = max(self.most_held, self.schedule.held)
            for due in self.schedule.take(AT_ONCE):
                self._visit(due)
            self.clock.advance(step)

    def _visit(self, due: Due) -> None:
        started = self.clock.monotonic()
        self.starts.setdefault(due.host, []).append(started)
        self.taken.append(due.feed_id)
        period = self.storage.feed(due.feed_id).polling.period
        later = self.clock.now() + timedelta(seconds=period)
        self.storage.change(due.feed_id, next_fetch=later)
        self.schedule.finish(due, started)

    def gaps(self, host: str) -> list[float]:
        return [after - before for before, after in pairwise(self.starts[host])]


async def test_the_feeds_whose_polls_end_the_most_waiting_come_first() -> None:
    hub = Standstill()
    daily, hourly = hub.add(1_000, DAY), hub.add(1_000, HOUR)
    fast = hub.add(1_000, 5 * MINUTE)

    await hub.run(3_000 / AT_ONCE * 0.25 - 1)

    first = hub.taken[: len(fast)]
    assert sorted(first) == fast
    assert sorted(hub.taken[1_000:2_000]) == hourly
    assert set(hub.taken[2_000:]) <= set(daily)


async def test_a_host_with_thousands_of_feeds_is_asked_once_a_second() -> None:
    hub = Standstill()
    crowd = set(hub.add(3_000, 5 * MINUTE, host="crowd.example"))

    await hub.run(200)

    asked = Counter(hub.taken)
    assert min(hub.gaps("crowd.example")) >= INTERVAL
    assert len(crowd & asked.keys()) >= 190


async def test_and_keeps_none_of_the_others_waiting() -> None:
    hub = Standstill()
    hub.add(3_000, 5 * MINUTE, host="crowd.example")
    others = hub.add(400, DAY)

    await hub.run(20)

    assert set(others) <= set(hub.taken)


async def test_a_fast_feed_of_it_does_not_wait_behind_thousands_of_slow_ones() -> None:
    hub = Standstill()
    hub.add(2_000, DAY, host="crowd.example")
    (fast,) = hub.add(1, MINUTE, host="crowd.example")

    await hub.run(5 * MINUTE)

    assert Counter(hub.taken)[fast] >= 4


async def test_a_slow_feed_has_its_turn_among_fast_ones_that_are_always_late() -> None:
    hub = Standstill(budget=Budget(polls_per_second=0.5))
    hub.add(50, MINUTE)
    (slow,) = hub.add(1, HOUR)

    await hub.run(3 * HOUR, step=1.0)

    assert Counter(hub.taken)[slow] >= 2


@pytest.mark.parametrize("polls_per_second", [1.0, 10.0])
async def test_the_budget_holds_while_catching_up(polls_per_second: float) -> None:
    hub = Standstill(budget=Budget(polls_per_second=polls_per_second))
    hub.add(3_000, HOUR)

    await hub.run(120)

    allowed = polls_per_second * (AT_FIRST + HEADROOM * 120)
    assert allowed * 0.95 <= len(hub.taken) <= allowed


async def test_what_is_held_in_memory_is_bounded() -> None:
    hub = Standstill()
    hub.add(2 * CAPACITY, HOUR)

    await hub.run(20)

    assert CAPACITY / 2 < hub.most_held <= CAPACITY


async def test_a_feed_that_is_asked_for_goes_before_all_that_are_late() -> None:
    hub = Standstill()
    hub.add(1_000, MINUTE)
    (last,) = hub.add(1, DAY, host="last.example")
    await hub.run(1)

    hub.schedule.ask(last, "https://last.example/1001")
    taken: Sequence[Due] = hub.schedule.take(1)

    assert [due.feed_id for due in taken] == [last]


async def test_a_hub_out_of_allowance_rests_until_there_is_a_poll() -> None:
    hub = Standstill(budget=Budget(polls_per_second=0.1))
    hub.add(200, HOUR)
    await hub.run(5)

    a_poll = 1 / (0.1 * HEADROOM)
    assert hub.schedule.seconds_to_next() == pytest.approx(a_poll - 5)
