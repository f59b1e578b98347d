"""Jobs by the clock, whatever becomes of the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from hub.runtime.logs import configure_logs
from hub.runtime.periodic_jobs import ScheduledJob, scheduled
from tests.support.waiting import eventually

HOUR = 3_600.0


class Rounds:
    """A job that counts its rounds, each of which ends when it may."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()

    async def work(self) -> None:
        self.begun += 1
        await self.may_end.wait()

    def every(self, seconds: float, what: str = "trimming the log") -> ScheduledJob:
        return ScheduledJob(what=what, every=seconds, work=self.work)


async def test_a_round_that_is_not_over_is_told_in_an_operators_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rounds = Rounds()
    with capture_logs() as lines:
        async with scheduled([rounds.every(0.02)]):
            await eventually(lambda: bool(lines))

    assert lines[0] == {
        "event": "job_still_running",
        "log_level": "info",
        "job": "trimming the log",
        "hint": "it takes longer than usual; its next round begins when it is done",
    }
    assert rounds.begun == 1


def test_what_the_scheduler_says_of_its_rounds_is_not_logged() -> None:
    root = logging.getLogger()
    before = root.level, root.handlers[:]
    try:
        configure_logs("debug", "console")
        for name in ("apscheduler.scheduler", "apscheduler.executors.default"):
            assert not logging.getLogger(name).isEnabledFor(logging.WARNING)
            assert logging.getLogger(name).isEnabledFor(logging.ERROR)
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]


@pytest.mark.parametrize("back", [2 * HOUR, 400 * 24 * HOUR])
async def test_jobs_go_on_when_the_clock_of_the_system_is_set_back(back: float) -> None:
    rounds, wall = Rounds(), [1_767_225_600.0]
    rounds.may_end.set()
    clock: Callable[[], float] = lambda: wall[0]  # noqa: E731
    async with scheduled([rounds.every(HOUR)], wall=clock, look_seconds=0.01):
        await asyncio.sleep(0.05)
        assert rounds.begun == 0
        wall[0] -= back
        await eventually(lambda: rounds.begun == 1)


async def test_a_round_under_way_is_cancelled_at_the_end_in_silence() -> None:
    rounds = Rounds()
    with capture_logs() as lines:
        async with scheduled([rounds.every(0.02)]):
            await eventually(lambda: rounds.begun == 1)
        await asyncio.sleep(0)

    assert {each["log_level"] for each in lines} <= {"info"}
