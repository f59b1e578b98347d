"""Whoever follows the log gets all of it, whatever fails; what may lag behind waits for
a quiet moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from hub.runtime.log_follower import (
    MUCH,
    MUCH_NEWS,
    NEWS_SECONDS,
    OTHER_SECONDS,
    LogFollower,
    gather,
)
from protocols.model import Status
from storage.errors import StorageClosed, StorageError
from storage.records import FeedId, Position, Record, RecordKind

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass
class ScriptedLog:
    """Grows by so many records with each look; then it is as it was."""

    growth: list[int]
    kind: RecordKind = RecordKind.BASELINE
    end: int = 0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.end += self.growth.pop(0) if self.growth else 0

    async def records(self, *, after: Position, limit: int) -> list[Record]:
        positions = range(after + 1, min(self.end, after + limit) + 1)
        return [
            Record(
                position=Position(each),
                at=NOW,
                feed_id=FeedId(1),
                kind=self.kind,
                status=Status(),
                entries=(),
            )
            for each in positions
        ]

    async def wait(self, after: Position, seconds: float) -> Position:
        """Grows by what is left of the script, then closes."""
        if not self.growth:
            raise StorageClosed("the test is over")
        self.end += self.growth.pop(0)
        return Position(self.end)

    async def gather(self) -> float:
        """Seconds that it took."""
        await gather(self, Position(0), 0.25, self.sleep)
        return sum(self.slept)


@pytest.mark.parametrize("kind", list(RecordKind))
async def test_little_is_waited_for_no_longer_than_it_should(kind: RecordKind) -> None:
    assert await ScriptedLog([MUCH, 9], kind).gather() == 0.25


async def test_first_documents_of_feeds_wait_until_few_of_them_come() -> None:
    log = ScriptedLog([100, 300, 100, MUCH])
    assert await log.gather() == 3.25


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        (RecordKind.BASELINE, OTHER_SECONDS),
        (RecordKind.ERROR, OTHER_SECONDS),
        (RecordKind.ENTRIES, NEWS_SECONDS),
        (RecordKind.DELETED, NEWS_SECONDS),
    ],
)
async def test_what_never_becomes_quiet_is_waited_for_so_long(
    kind: RecordKind, most: float
) -> None:
    log = ScriptedLog([MUCH_NEWS + 1] * 1_000, kind)
    assert most <= await log.gather() < most + 1


async def test_a_log_that_has_grown_no_more_is_quiet() -> None:
    assert await ScriptedLog([MUCH + 1, 0]).gather() == 1.25


@dataclass
class Handler:
    """Comes to the end of the log, unless it fails as it is told to."""

    log: ScriptedLog
    failures: list[Exception] = field(default_factory=list)
    reached: list[int] = field(default_factory=list)

    async def handle(self) -> Position:
        if self.failures:
            raise self.failures.pop(0)
        self.reached.append(self.log.end)
        return Position(self.log.end)

    async def follow(self, gather_seconds: float | None = None) -> list[str]:
        """Until the log is closed; what was logged."""
        follower = LogFollower(
            self.log,
            "not_followed",
            self.handle,
            retry_seconds=0,
            gather_seconds=gather_seconds,
        )
        with capture_logs() as lines, pytest.raises(StorageClosed):
            await follower.run()
        return [each["event"] for each in lines]


async def test_all_there_is_is_handled_at_the_start_and_whenever_the_log_grows() -> (
    None
):
    handler = Handler(ScriptedLog([2, 0, 3]))

    assert await handler.follow() == []
    assert handler.reached == [0, 2, 2, 5]


@pytest.mark.parametrize("failure", [StorageError("busy"), ValueError("odd")])
async def test_a_failure_is_logged_and_tried_again(failure: Exception) -> None:
    handler = Handler(ScriptedLog([2]), failures=[failure])

    assert await handler.follow() == ["not_followed"]
    assert handler.reached == [0, 2]


async def test_news_waits_for_more_where_it_may() -> None:
    handler = Handler(ScriptedLog([2]))

    await handler.follow(gather_seconds=0)

    assert handler.reached == [0, 2]
