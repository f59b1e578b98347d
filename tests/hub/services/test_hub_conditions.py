"""What is wrong with the hub, since when, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.core.disk_forecast import DiskForecast
from hub.services import hub_conditions
from hub.services.disk_space import DiskReport, DiskSpace
from hub.services.hub_conditions import (
    CHECK_SECONDS,
    COUNT_SECONDS,
    FAULT_TOLD,
    LEAST_FREE_BYTES,
    LOOK_SECONDS,
    HubCondition,
    HubConditions,
)
from storage.contract import Storage
from storage.errors import StorageError, WriteFailed
from storage.records import (
    Backlog,
    FeedCount,
    FeedHealth,
    FeedId,
    SubscriptionHealth,
    WriteFaults,
)
from tests.support.clock import ManualClock
from tests.support.played_time import PlayedTime
from tests.support.waiting import in_background

NOTHING = Backlog(
    feeds=20,
    subscriptions=200,
    fanouts=0,
    chunks=0,
    retrying=0,
    dead_letters=0,
    track_queries=0,
    oldest_due=None,
)


@dataclass
class CountedFeeds:
    failing: int = 0

    async def counts(self) -> list[FeedCount]:
        return [FeedCount(FeedHealth.FAILING, "", self.failing)]


@dataclass
class CountedSubscriptions:
    failing: int = 0

    async def counts(self) -> dict[SubscriptionHealth, int]:
        return {SubscriptionHealth.FAILING: self.failing}


@dataclass
class FakeStorage:
    """``failures``: of trial writes, in turn."""

    failures: list[Exception | None] = field(default_factory=list)
    error: str = ""
    faults: WriteFaults = field(default_factory=WriteFaults)
    counted: Backlog | StorageError = NOTHING
    feed_selections: CountedFeeds = field(default_factory=CountedFeeds)
    subscription_selections: CountedSubscriptions = field(
        default_factory=CountedSubscriptions
    )

    def write_error(self) -> str:
        return self.error

    def write_faults(self) -> WriteFaults:
        return self.faults

    async def check(self) -> None:
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure

    async def backlog(self, under_way: tuple[FeedId, ...]) -> Backlog:
        if isinstance(self.counted, StorageError):
            raise self.counted
        return self.counted


@dataclass
class FakeDisk:
    """``full_at``: at the rate of the last day."""

    space: int = 10**9
    full_at: datetime | None = None
    is_broken: bool = False
    samples: int = 0
    holds_database: bool = True

    def free(self) -> int:
        return self.space

    async def sample(self) -> None:
        if self.is_broken:
            raise WriteFailed("no luck")
        self.samples += 1

    async def report(self) -> DiskReport:
        forecast = DiskForecast(growth=0, loss=2e9, limit_at=None, full_at=self.full_at)
        return DiskReport(
            purposes={},
            free=self.space,
            total=10**10,
            limit=8 * 2**30,
            forecast=forecast,
            outlook="",
        )


class Scene:
    def __init__(self) -> None:
        self.storage = FakeStorage()
        self.disk = FakeDisk()
        self.clock = ManualClock()
        self.warning = ""
        self.conditions = HubConditions(
            cast("Storage", self.storage),
            self.clock,
            cast("DiskSpace", self.disk),
            (lambda: self.warning,),
        )

    def fail(self, reason: str, *, is_first: bool) -> None:
        """Let a write fail; ``is_first``: since one that succeeded."""
        self.storage.error = reason
        self.storage.faults = self.storage.faults.one_more(reason, is_first=is_first)

    async def found(self) -> list[tuple[str, datetime, bool]]:
        looked = await self.conditions.look()
        return [(each.what, each.since, each.is_error) for each in looked]

    async def counted(self) -> list[str]:
        await self.conditions.count()
        return [each.what for each in await self.conditions.look()]


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_write_that_hangs_or_fails_is_an_error_until_one_succeeds(
    scene: Scene,
) -> None:
    scene.storage.failures = [WriteFailed("no luck"), TimeoutError(), None]
    began = scene.clock.now()
    assert await scene.found() == [("no luck", began, True)]
    assert await scene.found() == [("no luck", began, True)]  # not tried so soon
    scene.clock.advance(CHECK_SECONDS)
    late = "a write took longer than 5 s"
    assert await scene.found() == [(late, began, True)]
    scene.clock.advance(CHECK_SECONDS)
    assert await scene.found() == []


async def test_writes_that_failed_are_told_for_an_hour_after_the_last(
    scene: Scene,
) -> None:
    """With their first and last, also while the last is not over."""
    began = scene.clock.now()
    reason = "the write failed: disk I/O error"
    over = f"{reason}; that is over, writes succeed again"
    several = "{} writes failed between 2026-01-01 00:00:00Z and 2026-01-01 00:0{}:00Z"
    while_others = "while others succeeded, the last"
    for what in (
        "a write failed at 2026-01-01 00:00:00Z",
        f"{several.format(2, 1)} {while_others}",
        f"{several.format(3, 2)} {while_others}",
    ):
        scene.fail(reason, is_first=True)
        told = reason if what.startswith("a write") else f"{what}: {reason}"
        assert [each[0] for each in await scene.found()] == [told]
        scene.storage.error = ""
        assert await scene.found() == [(f"{what}: {over}", began, False)]
        assert [each.is_over for each in await scene.conditions.look()] == [True]
        scene.clock.advance(60)
    scene.clock.advance(FAULT_TOLD.total_seconds() - 61)
    assert [each[1] for each in await scene.found()] == [began]
    scene.clock.advance(1)
    assert await scene.found() == []
    scene.fail(reason, is_first=True)
    scene.storage.error = ""
    [(what, since, _)] = await scene.found()
    assert what.startswith("a write failed at")
    assert since == scene.clock.now()


async def test_writes_that_failed_with_none_between_that_succeeded_are_one_outage(
    scene: Scene,
) -> None:
    scene.fail("no luck", is_first=True)
    assert [each[0] for each in await scene.found()] == ["no luck"]
    scene.clock.advance(60)
    scene.fail("no luck", is_first=False)
    what = "2 writes failed, from 2026-01-01 00:00:00Z until 2026-01-01 00:01:00Z"
    assert [each[0] for each in await scene.found()] == [f"{what}: no luck"]
    scene.storage.error = ""
    over = f"{what}: no luck; that is over, writes succeed again"
    assert [each[0] for each in await scene.found()] == [over]


async def test_a_trial_that_hangs_is_not_counted_among_writes_that_failed(
    scene: Scene,
) -> None:
    scene.fail("no luck", is_first=True)
    await scene.found()
    scene.fail("no luck", is_first=True)
    await scene.found()
    scene.storage.error = ""
    scene.clock.advance(CHECK_SECONDS)
    scene.storage.failures = [TimeoutError()]
    assert [each[0] for each in await scene.found()] == ["a write took longer than 5 s"]


async def test_what_holds_is_told_whenever_it_was_looked_into() -> None:
    """And again soon, if it could not be written."""
    time, storage, told = PlayedTime(), FakeStorage(), list[set[str]]()
    is_written = True

    async def tell(holding: Mapping[str, HubCondition]) -> bool:
        told.append({*holding})
        return is_written

    conditions = HubConditions(
        cast("Storage", storage),
        time.clock,
        cast("DiskSpace", FakeDisk(space=LEAST_FREE_BYTES - 1)),
        tell=tell,
        sleep=time.sleep,
    )
    long_ago = time.clock.now() - timedelta(hours=1)
    storage.counted = replace(NOTHING, oldest_undelivered=long_ago)
    async with in_background(conditions.run):
        await time.pass_by(COUNT_SECONDS - 1)
        assert told == []
        await time.pass_by(2 * COUNT_SECONDS)
        assert told == [{"disk", "deliveries"}] * 2
        is_written = False
        await time.pass_by(COUNT_SECONDS + 1)
        told.clear()
        await time.pass_by(3 * LOOK_SECONDS)
        assert len(told) == 3
        is_written = True
        await time.pass_by(3 * LOOK_SECONDS)
        assert len(told) == 4


async def test_a_full_disk_is_told_though_the_database_cannot_be_read() -> None:
    time, storage, told = PlayedTime(), FakeStorage(), list[set[str]]()

    async def tell(holding: Mapping[str, HubCondition]) -> bool:
        told.append({*holding})
        return True

    storage.counted = StorageError("no luck")
    conditions = HubConditions(
        cast("Storage", storage),
        time.clock,
        cast("DiskSpace", FakeDisk(space=LEAST_FREE_BYTES - 1)),
        tell=tell,
        sleep=time.sleep,
    )
    async with in_background(conditions.run):
        await time.pass_by(COUNT_SECONDS + 1)
    assert told == [{"disk"}]


async def test_it_is_known_since_when_something_holds_and_what_to_do(
    scene: Scene,
) -> None:
    began = scene.clock.now()
    scene.storage.error = "the database cannot be written: disk full"
    await scene.conditions.look()
    scene.clock.advance(600)
    (found,) = await scene.conditions.look()
    assert found.since == began
    assert "has free space and is writable" in found.advice


async def test_what_begins_and_what_is_over_is_logged_once(scene: Scene) -> None:
    with capture_logs() as lines:
        for scene.warning in ("the clock is off", "the clock is still off", ""):
            await scene.conditions.look()
            await scene.conditions.look()
        scene.storage.error = "disk full"
        await scene.conditions.look()
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "the clock is off"),
        ("info", "resolved: the clock is still off"),
        ("error", f"disk full; {hub_conditions._WRITE_ADVICE}"),
    ]


async def test_a_hub_that_stops_is_not_ready(scene: Scene) -> None:
    scene.conditions.stop()
    (found,) = await scene.conditions.look()
    assert (found.what, found.is_error) == ("shutting down", True)


async def test_polls_that_are_late_are_named_since_they_were_due(scene: Scene) -> None:
    due = scene.clock.now() - timedelta(minutes=45)
    scene.storage.counted = replace(NOTHING, oldest_due=due)
    await scene.conditions.count()
    (found,) = await scene.conditions.look()
    assert found.what == "polling is late: a feed has been due for 45 min"
    assert (found.since, found.is_error) == (due, False)
    assert "FANFARE_POLL_CONCURRENCY" in found.advice


async def test_first_deliveries_that_are_late_are_named(scene: Scene) -> None:
    old = scene.clock.now() - timedelta(minutes=5)
    scene.storage.counted = replace(NOTHING, oldest_undelivered=old)
    (what,) = await scene.counted()
    assert what.startswith("deliveries are late: entries of 5 min ago")


async def test_most_feeds_or_callbacks_failing_at_once_are_named(scene: Scene) -> None:
    scene.storage.feed_selections.failing = 10  # of 20: half
    scene.storage.subscription_selections.failing = 101
    assert await scene.counted() == ["101 of 200 subscriptions are failing"]
    scene.storage.feed_selections.failing = 11
    assert "11 of 20 feeds are failing" in await scene.counted()


async def test_few_that_fail_are_nobodys_common_cause(scene: Scene) -> None:
    scene.storage.counted = replace(NOTHING, feeds=9)
    scene.storage.feed_selections.failing = 9
    assert await scene.counted() == []


async def test_a_database_that_cannot_be_asked_leaves_what_was_counted(
    scene: Scene,
) -> None:
    scene.storage.subscription_selections.failing = 150
    assert len(await scene.counted()) == 1
    scene.storage.counted = StorageError("cannot be read")
    assert len(await scene.counted()) == 1


async def test_a_disk_without_room_is_an_error(scene: Scene) -> None:
    scene.disk.space = LEAST_FREE_BYTES - 1
    (found,) = await scene.conditions.look()
    assert (found.what, found.is_error) == (
        "the disk has only 67.1 MB left",
        True,
    )


@pytest.mark.parametrize(
    ("hours", "found"),
    [
        (71, "at this rate the disk is full in 3 days: free space shrinks by 2 GB a"),
        (30, "at this rate the disk is full in 30 h: free space shrinks by 2 GB a day"),
        (73, ""),
        (None, ""),
    ],
)
async def test_a_disk_that_is_full_within_three_days_is_warned_of(
    scene: Scene, hours: int | None, found: str
) -> None:
    if hours is not None:
        scene.disk.full_at = scene.clock.now() + timedelta(hours=hours)
    assert [each[: len(found)] for each in await scene.counted()] == [found][
        : len(found)
    ]


async def test_sizes_that_cannot_be_kept_hide_nothing_else(scene: Scene) -> None:
    scene.disk.is_broken = True
    scene.storage.subscription_selections.failing = 150
    assert len(await scene.counted()) == 1
    scene.disk.is_broken = False
    await scene.conditions.count()
    assert scene.disk.samples == 1


async def test_of_a_database_on_a_server_its_server_is_named(scene: Scene) -> None:
    scene.disk.holds_database = False
    scene.disk.space = LEAST_FREE_BYTES - 1
    scene.storage.failures = [WriteFailed("no luck")]

    write, disk = await scene.conditions.look()

    assert "the server of the database answers" in write.advice
    assert "the disk of FANFARE_STATE_DIR" in disk.advice
