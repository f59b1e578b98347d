"""Who may bring another request is waited for, for a while and not by the thousand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from uvicorn.server import ServerState

from hub.web.server.http_protocol import HttpProtocol, Idle, KeptConnections
from tests.support.waiting import eventually

LONG = 3_600.0


class ImpatientProtocol(HttpProtocol):
    idle_seconds = 0.05


@dataclass(frozen=True, slots=True)
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self) -> None:
        self.writer.write(b"GET /nothing HTTP/1.1\r\nHost: hub\r\n\r\n")
        assert (await self.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
        await self.reader.readexactly(len("Not Found"))

    async def ends(self) -> None:
        async with asyncio.timeout(60):
            assert await self.reader.read() == b""


@asynccontextmanager
async def clients(
    kept: KeptConnections | None, many: int
) -> AsyncIterator[list[Client]]:
    """Connected to a server that keeps connections; each has asked once."""
    config = uvicorn.Config(Starlette(), lifespan="off", log_config=None)
    config.load()
    server = await asyncio.get_running_loop().create_server(
        lambda: ImpatientProtocol(config, ServerState(), {}, kept=kept), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    found: list[Client] = []
    try:
        for _ in range(many):
            found.append(Client(*await asyncio.open_connection("127.0.0.1", port)))
            await found[-1].ask()
        yield found
    finally:
        server.close()
        for each in found:
            each.writer.close()


class CountedConnections(KeptConnections):
    times = 0

    def keep(self, connection: Idle) -> None:
        self.times += 1
        super().keep(connection)


async def test_an_idle_connection_is_there_for_the_next_request() -> None:
    kept = CountedConnections(LONG)
    async with clients(kept, 1) as (client,):
        for times in (1, 2, 3):
            await eventually(lambda times=times: kept.times == times)  # type: ignore[misc]
            assert len(kept) == 1
            await client.ask()


async def test_an_abandoned_connection_ends() -> None:
    kept = KeptConnections(0.2)
    async with clients(kept, 1) as (client,):
        await eventually(lambda: len(kept) == 1)
        await client.ends()
        await eventually(lambda: len(kept) == 0)


async def test_without_anything_that_keeps_it_an_idle_connection_ends_soon() -> None:
    for kept in (None, KeptConnections(0.0)):
        async with clients(kept, 1) as (client,):
            await client.ends()


async def test_who_goes_away_is_not_kept() -> None:
    kept = KeptConnections(LONG)
    async with clients(kept, 1) as (client,):
        await eventually(lambda: len(kept) == 1)
        client.writer.transport.abort()
        await eventually(lambda: len(kept) == 0)


async def test_of_too_many_those_that_are_idle_for_longest_end() -> None:
    kept = KeptConnections(LONG, most=2)
    async with clients(kept, 1) as (first,), clients(kept, 1) as (second,):
        await eventually(lambda: len(kept) == 2)
        await first.ask()
        await eventually(lambda: len(kept) == 2)
        async with clients(kept, 1) as (third,):
            await second.ends()
            await first.ask()
            await third.ask()


async def test_however_many_are_idle_only_so_many_are_kept() -> None:
    kept = KeptConnections(LONG, most=3)
    async with clients(kept, 20) as many:
        await eventually(lambda: sum(each.reader.at_eof() for each in many) == 17)
        assert len(kept) == 3
