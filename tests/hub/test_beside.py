from __future__ import annotations

import asyncio
import sys
import threading
from functools import partial

import pytest

from hub.beside import TURN_SECONDS, run_beside, take_short_turns


async def test_the_event_loop_goes_on_meanwhile() -> None:
    may_end = threading.Event()
    working = asyncio.create_task(run_beside(partial(may_end.wait, 60)))
    await asyncio.sleep(0)
    may_end.set()
    assert await working


async def test_one_after_the_other_in_the_order_they_came() -> None:
    done: list[int] = []
    works = [partial(done.append, number) for number in range(20)]
    await asyncio.gather(*map(run_beside, works))
    assert done == [*range(20)]


async def test_what_goes_wrong_is_raised_to_who_asked() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_beside(lambda: 1 // 0)


def test_threads_take_short_turns_beside_the_event_loop() -> None:
    before = sys.getswitchinterval()
    try:
        take_short_turns()
        assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
    finally:
        sys.setswitchinterval(before)
