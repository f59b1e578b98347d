from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from hub.runtime.offloading import (
    HUGE_BYTES,
    TURN_SECONDS,
    FairThread,
    WaitingLineFull,
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


class Asked:
    """A thread that is held until the test lets it go, and what it did then."""

    def __init__(self, waiting: int = 9) -> None:
        self.thread = FairThread("test", waiting=waiting)
        self.may_go = threading.Event()
        self.done: list[str] = []
        self.first = self.ask("first", partial(self.may_go.wait, 60))

    def ask(self, party: str, work: Callable[[], object]) -> asyncio.Task[object]:
        return asyncio.create_task(self.thread.run(party, work))

    def note(self, party: str, text: str) -> asyncio.Task[object]:
        return self.ask(party, partial(self.done.append, text))


async def test_parties_take_turns_however_many_calls_one_of_them_has() -> None:
    asked = Asked()
    notes = [asked.note("many", f"many {number}") for number in range(3)]
    notes += [asked.note("one", "one"), asked.note("other", "other")]
    await asyncio.sleep(0)
    asked.may_go.set()
    await asyncio.gather(asked.first, *notes)
    assert asked.done == ["many 0", "one", "other", "many 1", "many 2"]


async def test_a_party_whose_line_is_full_is_refused_and_others_are_not() -> None:
    asked = Asked(waiting=1)
    waiting, refused = asked.note("many", "1"), asked.note("many", "2")
    other = asked.note("other", "3")
    with pytest.raises(WaitingLineFull):
        await refused
    asked.may_go.set()
    await asyncio.gather(asked.first, waiting, other)
    assert asked.done == ["1", "3"]


async def test_who_gives_up_waiting_holds_up_nobody() -> None:
    asked = Asked()
    given_up, next_one = asked.note("a", "given up"), asked.note("b", "next")
    await asyncio.sleep(0)
    given_up.cancel()
    asked.may_go.set()
    await asyncio.gather(asked.first, next_one)
    assert asked.done == ["next"]


async def test_a_turn_that_comes_as_its_caller_gives_up_is_passed_on() -> None:
    asked = Asked()

    async def hold() -> None:
        await asked.thread.run("holds", partial(asked.done.append, "held"))
        given_up.cancel()  # its turn has come, and it does not know yet

    holding = asyncio.create_task(hold())
    await asyncio.sleep(0)
    given_up, next_one = asked.note("a", "given up"), asked.note("b", "next")
    asked.may_go.set()
    await asyncio.gather(asked.first, holding, next_one)
    assert asked.done == ["held", "next"]
    assert await asked.thread.run("c", lambda: "free") == "free"


async def test_work_that_has_begun_has_the_thread_until_it_ends() -> None:
    asked = Asked()
    next_one = asked.note("b", "next")
    await asyncio.sleep(0)
    asked.first.cancel()
    await asyncio.sleep(0)
    assert not next_one.done()
    asked.may_go.set()
    await next_one
    assert asked.first.cancelled()
    assert asked.done == ["next"]
