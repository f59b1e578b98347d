from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hub.limits.fair_queue import FairQueue, FairThread, WaitingLineFull


def turns(*words: str) -> FairQueue[str]:
    """Whose each is, its first letter says."""
    made: FairQueue[str] = FairQueue(lambda word: ord(word[0]))
    made.add(words)
    return made


def all_of(queue: FairQueue[str]) -> list[str]:
    return [queue.take() for _ in range(len(queue))]


def test_parties_take_turns_and_each_keeps_its_order() -> None:
    queue = turns("a1", "a2", "a3", "a4", "b1", "b2", "c1")
    assert all_of(queue) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


def test_whoever_comes_waits_for_one_of_each_party_only() -> None:
    queue = turns("a1", "a2", "a3")
    assert queue.take() == "a1"
    queue.add(["b1"])
    assert all_of(queue) == ["a2", "b1", "a3"]


def test_what_is_put_back_is_the_first_of_its_party() -> None:
    queue = turns("a1", "a2", "b1")
    queue.put_back(queue.take())
    assert all_of(queue) == ["b1", "a1", "a2"]


def test_of_none_none_can_be_taken() -> None:
    queue = turns()
    assert not queue
    with pytest.raises(IndexError):
        queue.take()


@given(st.lists(st.sampled_from([f"{party}{n}" for party in "abc" for n in range(5)])))
def test_each_comes_once_in_the_order_of_its_party(words: list[str]) -> None:
    taken = all_of(turns(*words))
    for party in "abc":
        assert [word for word in taken if word[0] == party] == [
            word for word in words if word[0] == party
        ]


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
