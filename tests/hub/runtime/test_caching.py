"""What is remembered, and reads that are shared: how often, and by whom."""

from __future__ import annotations

import asyncio

import pytest

from hub.runtime.caching import BoundedDict, SingleFlight
from storage.errors import StorageBusy
from tests.support.waiting import eventually


def test_what_was_set_the_longest_ago_makes_way() -> None:
    remembered: BoundedDict[str, int] = BoundedDict(2)
    for number, key in enumerate(("a", "b", "a", "c")):
        remembered[key] = number
    assert remembered == {"a": 2, "c": 3}


class Source:
    """What is read; each read waits until the test lets it end."""

    def __init__(self) -> None:
        self.value = "as it was"
        self.reads = 0
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def read(self) -> str:
        self.reads += 1
        value, error = self.value, self.error
        await self.gate.wait()
        if error is not None:
            raise error
        return value


async def test_who_asks_during_a_read_shares_the_next_one() -> None:
    """His own changes are in it, and not in the one that was under way."""
    source, shared = Source(), SingleFlight[str, str]()
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(shared.get("key", source.read))
        await eventually(lambda: source.reads == 1)
        source.value = "as it is"
        others = [tasks.create_task(shared.get("key", source.read)) for _ in range(100)]
        await asyncio.sleep(0)
        source.gate.set()
    assert first.result() == ("as it was", False)
    assert {each.result()[0] for each in others} == {"as it is"}
    assert sum(each.result()[1] for each in others) == 99
    assert source.reads == 2


async def test_what_is_different_is_read_apart_and_nothing_is_kept() -> None:
    source, shared = Source(), SingleFlight[str, str]()
    source.gate.set()
    for key in ("one", "other", "one"):
        assert await shared.get(key, source.read) == ("as it was", False)
    assert source.reads == 3
    assert not shared._flights


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_reader_that_does_not_get_there_is_replaced_by_the_next(
    is_cancelled: bool,
) -> None:
    source, shared = Source(), SingleFlight[str, str]()
    source.error = None if is_cancelled else StorageBusy("too much to do")
    first = asyncio.create_task(shared.get("key", source.read))
    await eventually(lambda: source.reads == 1)
    source.error = None
    second = asyncio.create_task(shared.get("key", source.read))
    await asyncio.sleep(0)
    if is_cancelled:
        first.cancel()
    source.gate.set()
    with pytest.raises(asyncio.CancelledError if is_cancelled else StorageBusy):
        await first
    assert await second == ("as it was", False)
