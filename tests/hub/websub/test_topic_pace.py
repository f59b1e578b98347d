from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from hub.websub.topic_pace import MOST_OF_A_HOST, MOST_OF_A_ZONE, TopicPace
from tests.support.clock import ManualClock


@pytest.fixture
def pace() -> TopicPace:
    return TopicPace(ManualClock())


async def begin(pace: TopicPace, *hosts: str) -> list[asyncio.Task[None]]:
    async def look_at(host: str) -> None:
        async with pace.turn(host):
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(look_at(host)) for host in hosts]
    await asyncio.sleep(0)  # each has come as far as it gets
    return tasks


async def test_so_many_topics_of_one_host_wait_and_no_more(pace: TopicPace) -> None:
    tasks = await begin(pace, *["a.example"] * (MOST_OF_A_HOST - 1))
    assert not pace.is_crowded("a.example")
    tasks += await begin(pace, "a.example")
    assert pace.is_crowded("a.example")
    assert not pace.is_crowded("b.example")
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert not pace.is_crowded("a.example")


async def test_however_many_names_a_zone_has_so_many_wait_and_no_more(
    pace: TopicPace,
) -> None:
    names = [f"{number}.names.example" for number in range(MOST_OF_A_ZONE)]
    tasks = await begin(pace, *names)
    assert pace.is_crowded("another.names.example")
    assert not pace.is_crowded("names.of.others.example")
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert not pace.is_crowded("another.names.example")


async def test_names_of_one_zone_take_turns(pace: TopicPace) -> None:
    """Time stands still; so each waits for as long as those before it take."""
    loop, started = asyncio.get_running_loop(), []
    async with AsyncExitStack() as stack:
        begun = loop.time()
        for number in range(3):
            await stack.enter_async_context(pace.turn(f"{number}.names.example"))
            started.append(loop.time() - begun)
    assert started[1] >= 0.09
    assert started[2] >= 0.09 + 0.19
