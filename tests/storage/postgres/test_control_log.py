"""Decisions of other nodes are read for as long as the hub runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from storage.errors import StorageClosed, WriteFailed
from storage.postgres.connections import Connections, Row
from storage.postgres.control import PostgresControl
from storage.records import (
    ControlEvent,
    DecisionsMissed,
    PauseChanged,
    Position,
    SubscriptionId,
)
from storage.sqlite.log_end import LogEnd
from tests.support.waiting import eventually


@dataclass
class FakeReads:
    """Answers each read with the next of these, and is closed after the last."""

    answers: list[list[Row] | Exception]
    asked: list[object] = field(default_factory=list)

    async def all(self, sql: str, parameters: object = ()) -> list[Row]:
        self.asked.append(parameters)
        if not self.answers:
            raise StorageClosed("the database is closed")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize("error", [WriteFailed("away"), TypeError("not a row")])
async def test_after_a_look_that_failed_the_next_one_goes_on(error: Exception) -> None:
    paused = (7, 3, "paused", [5], 0, "")
    reads = FakeReads([error, [paused]])
    end = LogEnd(Position(0))
    control = PostgresControl(cast("Connections", reads), end)
    told: list[ControlEvent] = []
    with control.watch(told.append):
        control.follow(2)
        await eventually(lambda: len(reads.asked) == 3, seconds=9)
        control.stop()

    assert told == [PauseChanged(SubscriptionId(5), is_paused=True)]
    assert reads.asked == [(2,), (2,), (3,)]
    assert end.position == 7


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (WriteFailed("away"), "away"),
        (TypeError("not a row"), "not a row"),
        (TypeError(), "TypeError()"),
    ],
)
async def test_after_looks_that_failed_for_long_decisions_count_as_missed(
    error: Exception, reason: str
) -> None:
    reads = FakeReads([error])
    control = PostgresControl(
        cast("Connections", reads), LogEnd(Position(0)), unread_seconds=0
    )
    told: list[ControlEvent] = []
    with control.watch(told.append):
        control.follow(2)
        await eventually(lambda: len(reads.asked) == 2, seconds=9)
        control.stop()

    assert told == [DecisionsMissed(reason)]
