from __future__ import annotations

import asyncio

import pytest

from hub.limits.fifo_semaphore import FifoSemaphore


def never() -> float:
    return asyncio.get_running_loop().time() + 3_600


async def full(places: FifoSemaphore, waiting: int) -> list[asyncio.Task[None]]:
    """All places taken, and tasks that wait for one, in this order."""
    while places.enter_at_once():
        pass
    tasks = [asyncio.create_task(places.enter(never())) for _ in range(waiting)]
    await asyncio.sleep(0)
    return tasks


async def test_there_are_so_many_places() -> None:
    places = FifoSemaphore(2)
    assert [places.enter_at_once() for _ in range(3)] == [True, True, False]
    places.leave()
    assert places.enter_at_once()
    assert places.taken == 2


async def test_a_place_goes_to_who_waits_longest() -> None:
    places = FifoSemaphore(1)
    first, second = await full(places, 2)
    places.leave()
    await first
    assert not second.done()
    assert not places.enter_at_once()
    places.leave()
    await second
    places.leave()
    assert places.taken == 0


async def test_who_gives_up_waiting_is_passed_over() -> None:
    places = FifoSemaphore(1)
    first, second = await full(places, 2)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    places.leave()
    await second
    assert places.taken == 1


async def test_a_place_given_to_who_is_cancelled_just_then_goes_on() -> None:
    places = FifoSemaphore(1)
    first, second = await full(places, 2)
    places.leave()
    first.cancel()
    await second
    assert first.cancelled()
    places.leave()
    assert places.taken == 0


async def test_waiting_ends_at_the_deadline() -> None:
    places = FifoSemaphore(1)
    await full(places, 0)
    with pytest.raises(TimeoutError):
        await places.enter(asyncio.get_running_loop().time())
    places.leave()
    assert places.taken == 0
