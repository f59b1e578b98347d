from __future__ import annotations

import asyncio
import sys
import threading
import time
from functools import partial

import pytest

from hub.runtime.offloading import (
    HUGE_BYTES,
    TURN_SECONDS,
    run_in_thread,
    take_short_turns,
)
from protocols.identity import content_hash
from protocols.model import Entry, Text


async def test_the_event_loop_goes_on_meanwhile() -> None:
    may_end = threading.Event()
    working = asyncio.create_task(run_in_thread(partial(may_end.wait, 60)))
    await asyncio.sleep(0)
    may_end.set()
    assert await working


async def test_one_after_the_other_in_the_order_they_came() -> None:
    done: list[int] = []
    works = [partial(done.append, number) for number in range(20)]
    await asyncio.gather(*map(run_in_thread, works))
    assert done == [*range(20)]


async def test_what_goes_wrong_is_raised_to_who_asked() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)


def test_threads_take_short_turns_beside_the_event_loop() -> None:
    before = sys.getswitchinterval()
    try:
        take_short_turns()
        assert sys.getswitchinterval() == pytest.approx(TURN_SECONDS)
    finally:
        sys.setswitchinterval(before)


async def test_the_event_loop_has_its_turns_while_many_entries_are_compared() -> None:
    """What other programs take from this one does not count, hence the CPU."""
    before = sys.getswitchinterval()
    take_short_turns()
    try:
        longest = min([await _longest_wait(partial(_compare, 500)) for _ in range(3)])
    finally:
        sys.setswitchinterval(before)
    assert longest < 0.02


def _compare(count: int) -> None:
    text = "".join(f"<p>Sentence {number} of many.</p>" for number in range(150))
    for number in range(count):
        content_hash(Entry(key="", id="", content=Text(value=f"{text} {number}")))


async def _longest_wait(work: partial[None]) -> float:
    longest = 0.0
    working = asyncio.ensure_future(run_in_thread(work))
    while not working.done():
        begun, cpu = time.monotonic(), time.process_time()
        await asyncio.sleep(0.001)
        late, used = time.monotonic() - begun, time.process_time() - cpu
        longest = max(longest, min(late, used))
    await working
    return longest


async def test_what_takes_milliseconds_does_not_wait_for_what_works_on_much() -> None:
    may_end = threading.Event()
    long = asyncio.create_task(run_in_thread(partial(may_end.wait, 60), HUGE_BYTES + 1))
    await asyncio.sleep(0)
    assert await run_in_thread(lambda: "done") == "done"
    may_end.set()
    assert await long
