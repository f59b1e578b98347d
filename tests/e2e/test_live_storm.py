"""Everybody comes back at the same moment, as after a restart or a broken network."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlencode

from hub.main import raise_limit
from tests.support.chosen_engine import CHOSEN, Engine
from tests.support.event_stream import request_events
from tests.support.live_hub import LiveHub, live_hub, titles
from tests.support.raw_websocket import open_websocket

NEWS = "https://news.example/feed"
OTHER = "https://other.example/feed"
BEFORE, MEANWHILE = 70, 20
CLIENTS = min(1_000 if CHOSEN is Engine.SQLITE else 200, (raise_limit() - 200) // 2)
"""Both ends of each connection are open files of this process."""
DEADLINE = 300.0

Listen = Callable[[LiveHub, int], Awaitable[list[str]]]


async def by_websocket(hub: LiveHub, begin: int) -> list[str]:
    """The entries after a position, as one client gets them."""
    target = f"/stream?{await query(hub, begin)}"
    client = await open_websocket(hub.port, target)
    received: list[str] = []
    while len(received) < BEFORE + MEANWHILE - begin:
        received += titles(await client.message("notification"))
    client.abort()
    return received


async def by_events(hub: LiveHub, begin: int) -> list[str]:
    client = await request_events(hub.port, f"/stream?{await query(hub, begin)}")
    assert client.status == 200
    received: list[str] = []
    while len(received) < BEFORE + MEANWHILE - begin:
        received += titles(await client.next(seconds=DEADLINE))
    client.abort()
    return received


async def query(hub: LiveHub, begin: int) -> str:
    cursor = await hub.cursor(begin)
    return urlencode([("topic", NEWS), ("topic", OTHER), ("cursor", cursor)])


async def test_each_of_many_who_return_at_once_gets_each_entry_once(
    tmp_path: Path,
) -> None:
    async with live_hub(
        tmp_path, stream_connections=CLIENTS, stream_share=100, ping_seconds=600
    ) as hub:
        await hub.add_feed(NEWS)
        await hub.add_feed(OTHER)
        for number in range(BEFORE):
            await hub.publish((NEWS, OTHER)[number % 3 == 0], f"{number}")
        begins = [
            number % 11 if number % 10 == 0 else BEFORE - number % 21
            for number in range(CLIENTS)
        ]
        ways: tuple[Listen, Listen] = (by_websocket, by_events)
        async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
            listening = [
                group.create_task(ways[number % 2](hub, begin))
                for number, begin in enumerate(begins)
            ]
            for number in range(BEFORE, BEFORE + MEANWHILE):
                await hub.publish((NEWS, OTHER)[number % 3 == 0], f"{number}")
                await asyncio.sleep(0)
        keys = [f"{number}" for number in range(BEFORE + MEANWHILE)]
        for begin, task in zip(begins, listening, strict=True):
            assert task.result() == keys[begin:]
