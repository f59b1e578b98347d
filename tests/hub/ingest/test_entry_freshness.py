"""New entries are measured when they are durable, and when their first callback has
them."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import pytest
from msgspec.structs import replace

from hub.ingest.committer import Committer
from hub.runtime.metrics import Metrics
from protocols.model import Status
from storage.contract import LogStore
from storage.records import (
    CommitOutcome,
    FeedId,
    FetchCommit,
    NotStored,
    Polling,
    Position,
    RecordKind,
    RecordWrite,
    Stored,
)
from tests.support.clock import ManualClock
from tests.support.documents import an_entry
from tests.support.fetch_targets import a_feed, a_target


class WillingLog:
    """Takes every commit, unless the feed is removed."""

    def __init__(self, *, is_removed: bool = False) -> None:
        self._is_removed = is_removed

    async def commit(self, fetch: FetchCommit) -> CommitOutcome:
        if self._is_removed:
            return NotStored.GONE
        positions = (Position(7 + number) for number in range(len(fetch.records)))
        return Stored(tuple(positions), 1)


def a_commit(clock: ManualClock, *, is_dated: bool) -> FetchCommit:
    at = clock.now()
    published = at - timedelta(minutes=9, seconds=30) if is_dated else None
    records = (
        RecordWrite(kind=RecordKind.RECOVERED, status=Status(code=200)),
        RecordWrite(
            kind=RecordKind.ENTRIES, status=Status(code=200), entries=(("a", True),)
        ),
    )
    return FetchCommit(
        feed_id=FeedId(1),
        at=at,
        next_fetch=at,
        polling=Polling(code=200),
        entries=(an_entry("a", published=published),),
        records=records,
    )


@pytest.mark.parametrize(
    ("subscribers", "is_removed", "is_dated", "committed", "delivered"),
    [
        (1, False, True, 1, 1),
        (0, False, True, 1, 0),
        (1, False, False, 0, 1),
        (1, True, True, 0, 0),
    ],
    ids=["with subscribers", "without", "without a date", "of a removed feed"],
)
async def test_a_new_entry_is_measured_at_its_commit_and_its_first_delivery(
    subscribers: int, is_removed: bool, is_dated: bool, committed: int, delivered: int
) -> None:
    clock, metrics = ManualClock(), Metrics()
    clock.advance(3_601.0)
    log = cast("LogStore", WillingLog(is_removed=is_removed))
    polling = Polling(last_success=clock.now() - timedelta(minutes=15))
    target = replace(a_target(a_feed(polling=polling)), subscribers=subscribers)

    await Committer(log=log, clock=clock, metrics=metrics).commit(
        target, a_commit(clock, is_dated=is_dated), clock.now()
    )
    for position in (7, 8):
        metrics.freshness.deliver(Position(position), clock.monotonic)

    assert metrics.publications.total == committed
    assert metrics.first_deliveries.total == delivered
