"""How long what may lag behind the log waits for a quiet moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from hub.gathering import MUCH, MUCH_NEWS, NEWS_SECONDS, OTHER_SECONDS, gather
from protocols.model import Status
from storage.records import FeedId, Position, Record, RecordKind

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass
class GrowingLog:
    """Grows by so many records with each look; then it is as it was."""

    growth: list[int]
    kind: RecordKind = RecordKind.BASELINE
    head: int = 0
    slept: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.head += self.growth.pop(0) if self.growth else 0

    async def records(self, *, after: Position, limit: int) -> list[Record]:
        positions = range(after + 1, min(self.head, after + limit) + 1)
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

    async def gather(self) -> float:
        """Seconds that it took."""
        await gather(self, Position(0), 0.25, self.sleep)
        return sum(self.slept)


@pytest.mark.parametrize("kind", list(RecordKind))
async def test_little_is_waited_for_no_longer_than_it_should(kind: RecordKind) -> None:
    assert await GrowingLog([MUCH, 9], kind).gather() == 0.25


async def test_first_documents_of_feeds_wait_until_few_of_them_come() -> None:
    log = GrowingLog([100, 300, 100, MUCH])
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
    log = GrowingLog([MUCH_NEWS + 1] * 1_000, kind)
    assert most <= await log.gather() < most + 1


async def test_a_log_that_has_grown_no_more_is_quiet() -> None:
    assert await GrowingLog([MUCH + 1, 0]).gather() == 1.25
