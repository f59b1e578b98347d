"""Steps that take long become smaller, and leave time for others."""

from __future__ import annotations

import asyncio

import pytest

from hub.runtime.clock import SystemClock
from hub.runtime.paced_steps import PacedSteps, StepSize
from tests.support.clock import ManualClock

SIZE = StepSize(count=8, most=64, seconds=0.02)


async def test_the_next_step_takes_on_less_after_a_slow_one() -> None:
    clock, asked = ManualClock(), []
    steps = PacedSteps(clock, SIZE)

    async def slow(count: int) -> int:
        asked.append(count)
        clock.advance(0.009 * count)
        return count

    for _ in range(3):
        assert await steps.take(slow) == asked[-1]
    assert asked == [8, 2, 2]
    assert steps.count == 2


async def test_a_rest_is_as_long_as_the_step_was() -> None:
    loop = asyncio.get_running_loop()

    async def work(count: int) -> int:
        await asyncio.sleep(0.05)
        return count

    began = loop.time()
    assert await PacedSteps(SystemClock(), SIZE).take_and_rest(work) == 8
    assert loop.time() - began >= 0.0999


async def test_a_step_that_fails_changes_nothing() -> None:
    async def fail(count: int) -> int:
        raise OSError("no luck")

    steps = PacedSteps(ManualClock(), SIZE)
    with pytest.raises(OSError, match="no luck"):
        await steps.take_and_rest(fail)
    assert steps.count == 8
