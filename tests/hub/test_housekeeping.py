from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.core.disk_limits import ByteLimits
from hub.housekeeping import (
    FREEING,
    MOST_ATTEMPTS,
    MOST_FREED,
    PAGE,
    TRIMMED_RECORDS,
    WAL_ALARM_BYTES,
    Housekeeping,
    Job,
)
from storage.contract import Storage
from storage.errors import WriteFailed
from storage.records import (
    FEED_REMOVED,
    DatabaseStatus,
    FeedId,
    FeedState,
    Position,
    Retention,
    StoredFeed,
)
from tests.support.clock import ManualClock
from tests.support.fetch_targets import a_feed

LIMITS = ByteLimits(soft=1_000, hard=2_000)
RETENTION = Retention(soft_age=60, soft_count=10, hard_age=120, hard_count=20)


class Calls:
    """A storage that only remembers what housekeeping asked of it."""

    def __init__(self) -> None:
        self.asked: dict[str, tuple[object, ...]] = {}
        self.wal_bytes = 0
        self.free = 0  # pages
        self.steps: list[int] = []
        self.slow: Callable[[], object] = int  # called for each page
        part = SimpleNamespace(
            trim=self._called("trim"),
            trim_attempts=self._called("trim_attempts"),
            purge_removed=self._called("purge_removed"),
            purge_ended=self._called("purge_ended"),
            expire=self._called("expire"),
            forget_secrets=self._called("forget_secrets"),
            page=self._removed,
            count=self._subscribers,
            end_all=self._called("end_all"),
        )
        self.log = self.deliveries = self.feeds = self.subscriptions = part
        self.tracking = SimpleNamespace(retire=self._called("retire"))
        self.sessions = SimpleNamespace(trim=self._called("trim of sessions"))
        self.audit = SimpleNamespace(trim=self._called("trim of the audit trail"))
        self.verifications = SimpleNamespace(trim=self._called("trim of requests"))

    async def give_back(self, limit: int) -> int:
        self.asked["give_back"] = (limit,)
        self.steps.append(limit)
        freed = min(limit, self.free)
        self.free -= freed
        for _ in range(freed):
            self.slow()
        return freed

    async def usage(self) -> dict[str, int]:
        return {"entries": 1_250}

    async def status(self) -> DatabaseStatus:
        return DatabaseStatus(
            engine="",
            location="",
            version=1,
            latest=1,
            epoch="",
            tail=Position(10),
            log_end=Position(20),
            size_bytes=1_250,
            wal_bytes=self.wal_bytes,
        )

    async def _removed(self, *, state: FeedState, **_: object) -> list[StoredFeed]:
        assert state is FeedState.REMOVED
        return [a_feed(6, state=state), a_feed(7, state=state)]

    async def _subscribers(self, feed_id: FeedId) -> int:
        return 2 if feed_id == 7 else 0

    def _called(self, name: str) -> object:
        async def call(*arguments: object, **named: object) -> int:
            self.asked[name] = *arguments, *named.values()
            return 0

        return call


def housekeeping(storage: Calls, clock: ManualClock) -> Housekeeping:
    return Housekeeping(
        cast("Storage", storage), clock, RETENTION, LIMITS, lambda: [FeedId(3)]
    )


async def test_each_job_asks_the_storage_for_its_own_thing() -> None:
    storage, clock = Calls(), ManualClock()
    keeper = housekeeping(storage, clock)
    for job in keeper.jobs:
        assert await keeper.do(job) == 0
    now = clock.now()
    retention = replace(RETENTION, soft_end=12, hard_end=10, spared_age=86_400)
    assert storage.asked["trim"] == (retention, now, TRIMMED_RECORDS)
    assert storage.asked["give_back"] == (FREEING.count,)
    assert storage.asked["expire"] == (now, PAGE)
    assert storage.asked["forget_secrets"] == (now, PAGE)
    assert storage.asked["trim of requests"] == (now, PAGE)
    made, used = now - timedelta(days=7), now - timedelta(hours=12)
    audited = clock.now() - timedelta(days=90)
    assert storage.asked["trim of the audit trail"] == (audited, 100_000, PAGE)
    assert storage.asked["trim of sessions"] == (made, used, PAGE)
    assert storage.asked["end_all"] == (7, FEED_REMOVED, now, PAGE)
    [before, limit] = storage.asked["purge_removed"]
    assert ((now - before).days, limit) == (30, PAGE)  # type: ignore[operator]
    [before, limit] = storage.asked["purge_ended"]
    assert ((now - before).days, limit) == (30, PAGE)  # type: ignore[operator]
    assert storage.asked["retire"] == (
        now - timedelta(days=1, hours=1),
        [3],
        now,
        PAGE,
    )
    [before, limit, kept] = storage.asked["trim_attempts"]
    assert ((now - before).days, limit, kept) == (7, PAGE, MOST_ATTEMPTS)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("wal_bytes", "warnings"),
    [(WAL_ALARM_BYTES, []), (WAL_ALARM_BYTES + 1, ["wal_grew"])],
)
async def test_a_write_ahead_log_that_somebody_holds_up_is_warned_of(
    wal_bytes: int, warnings: list[str]
) -> None:
    storage = Calls()
    storage.wal_bytes = wal_bytes
    keeper = housekeeping(storage, ManualClock())
    with capture_logs() as lines:
        for job in keeper.jobs:
            await keeper.do(job)
    assert [line["event"] for line in lines] == warnings


@pytest.mark.parametrize("there_are", [0, 10, 250, 10 * MOST_FREED])
async def test_free_pages_are_given_back_in_small_steps_and_not_all_at_once(
    there_are: int,
) -> None:
    storage = Calls()
    storage.free = there_are
    await give_back(storage, ManualClock())
    assert max(storage.steps) <= FREEING.most
    given = there_are - storage.free
    assert min(there_are, MOST_FREED) <= given <= MOST_FREED + FREEING.most


async def test_a_round_ends_in_time_where_each_page_takes_long() -> None:
    storage, clock = Calls(), ManualClock()
    storage.free, storage.slow = MOST_FREED, partial(clock.advance, 0.03)
    await give_back(storage, clock)
    assert 10 < len(storage.steps) < 40
    assert storage.steps[-1] == 1


async def give_back(storage: Calls, clock: ManualClock) -> None:
    keeper = housekeeping(storage, clock)
    [job] = (each for each in keeper.jobs if each.name == "pages_given_back")
    await keeper.do(job)


async def test_maintenance_is_a_job_where_there_is_any() -> None:
    async def maintain() -> int:
        return 3

    clock = ManualClock()
    storage = cast("Storage", Calls())
    keeper = Housekeeping(storage, clock, RETENTION, LIMITS, maintain=maintain)
    assert await keeper.do(keeper.jobs[-1]) == 3


async def test_a_job_goes_on_until_a_page_is_not_full() -> None:
    pages = iter([PAGE, PAGE, 3])

    async def page() -> int:
        return next(pages)

    keeper = housekeeping(Calls(), ManualClock())
    assert (
        await keeper.do(Job("log_trimmed", "trimming the log", 1, page)) == 2 * PAGE + 3
    )


async def test_a_job_that_fails_is_logged_and_left_for_the_next_round() -> None:
    async def page() -> int:
        raise WriteFailed("the disk is gone")

    keeper = housekeeping(Calls(), ManualClock())
    with capture_logs() as lines:
        assert await keeper.do(Job("log_trimmed", "trimming the log", 1, page)) == 0
    assert lines == [
        {
            "event": "housekeeping_failed",
            "log_level": "warning",
            "job": "trimming the log",
            "error": "the disk is gone",
        }
    ]


@pytest.mark.parametrize("is_under_way", [False, True])
async def test_the_jobs_run_by_the_clock_until_cancelled_in_silence(
    is_under_way: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ran, ended = asyncio.Event(), asyncio.Event()

    async def page() -> int:
        ran.set()
        try:
            return await asyncio.sleep(60, 0) if is_under_way else 0
        finally:
            ended.set()

    class Hasty(Housekeeping):
        @property
        def jobs(self) -> tuple[Job, ...]:
            return (Job("log_trimmed", "trimming the log", 0.05, page),)

    running = asyncio.create_task(
        Hasty(cast("Storage", Calls()), ManualClock(), RETENTION, LIMITS).run()
    )
    async with asyncio.timeout(60):
        await ran.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(60):
        await ended.wait()
    await asyncio.sleep(0)
    assert "exception" not in caplog.text
