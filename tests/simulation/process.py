"""One life of a hub: the whole of it, built as it is built to serve, until it dies."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

from starlette.types import ASGIApp

from hub.composition import BuiltHub, build_hub
from hub.core.disk_limits import ByteLimits
from hub.housekeeping import Housekeeping
from hub.main import HubFailed, run_until_stopped
from hub.runtime.clock import SystemClock
from hub.settings import Settings
from hub.web.server.http_server import HttpServer
from storage.records import Retention
from storage.sqlite import SqliteStorage
from tests.simulation.asgi_requests import AsgiRequest, AsgiResponse, send_request
from tests.simulation.disk import Disk
from tests.simulation.loop import START
from tests.simulation.network import SimulatedNetwork
from tests.simulation.world import World
from tests.support.fake_fetcher import InlineParser

_DAY = datetime(2026, 3, 2, tzinfo=UTC).timestamp()
_KEPT = Retention(soft_age=1e7, soft_count=10**6, hard_age=1e7, hard_count=10**6)
_ROOM = ByteLimits(soft=10**12, hard=10**12)

POLLED_AT_ONCE = 8
"""More than there are feeds; each place is a task that every life begins and ends."""


class PlayedTime:
    """The loop's time; the wall clock of the machine may be set, as clocks are."""

    def __init__(self) -> None:
        self.skew = 0.0  # seconds

    def wall(self) -> float:
        return _DAY + self.steady() - START + self.skew

    def steady(self) -> float:
        return asyncio.get_running_loop().time()


class PlayedClock(SystemClock):
    """The hub's own, over the machine's."""

    def __init__(self, time: PlayedTime) -> None:
        super().__init__(time.wall, time.steady)
        self._time = time

    def monotonic(self) -> float:
        return self._time.steady()


class NoServer(HttpServer):
    """Nobody connects: what requests would come to is called directly."""

    def __init__(self) -> None:
        self._stopped = asyncio.Event()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await self._stopped.wait()

    def stop(self, seconds: float = 0.0) -> None:
        self._stopped.set()


class Process:
    """Starts with `start`; ends with `stop`, `kill`, or by itself where it is told."""

    def __init__(
        self, number: int, world: World, disk: Disk, time: PlayedTime, seed: str
    ) -> None:
        random = Random(f"{seed}/{number}")
        self.hub_url = f"http://hub.example/{number}"
        self.world = world
        self.disk = disk
        self.clock = PlayedClock(time)
        self.died = asyncio.Event()
        self.died_at = 0.0
        self.network = SimulatedNetwork(world, Random(random.random()))
        self.hub: BuiltHub
        self.storage: SqliteStorage
        self.housekeeping: Housekeeping
        self._random = random
        self._stack = AsyncExitStack()
        self._stop = asyncio.Event()
        self._places: dict[str, int] = {}
        self._running: asyncio.Task[None]
        self._application: ASGIApp
        self._others: set[asyncio.Task[Any]] = set()
        disk.passing = self.network.passing = self._pass

    async def start(self) -> None:
        self.storage = await self.disk.open()
        settings = Settings(
            database=f"sqlite:{self.disk.database}",
            public_url=self.hub_url,
            open_hub="any",
            scp="off",
            upstream="on",
            poll_concurrency=POLLED_AT_ONCE,
        )
        built = await build_hub(
            settings,
            self.storage,
            "token",
            self.hub_url,
            self._stack,
            clock=self.clock,
            random=Random(self._random.random()),
            jitter=lambda: self._random.uniform(-1, 1),
            network=self.network,
            parser=InlineParser(),
            lookup=_look_up,
        )
        self._application = built.server.config.app
        self.housekeeping = Housekeeping(self.storage, self.clock, _KEPT, _ROOM)
        background = {
            name: part
            for name, part in built.background.items()
            if name != "housekeeping"  # by a scheduler, whose clock is the real one
        }
        self.hub = replace(built, server=NoServer(), background=background)
        self._running = asyncio.create_task(self._run())

    def spawn(self, *works: object) -> None:
        """What belongs to this process and dies with it."""
        for work in works:
            self._others.add(asyncio.create_task(work))  # type: ignore[arg-type]

    async def answer(self, request: AsgiRequest) -> AsgiResponse | None:
        """To somebody outside; None: the connection was lost with the process."""
        answering = asyncio.create_task(send_request(self._application, request))
        self._others.add(answering)
        dying = asyncio.create_task(self.died.wait())
        try:
            await asyncio.wait({answering, dying}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            dying.cancel()
        if self.died.is_set() or not answering.done() or answering.cancelled():
            return None
        self._others.discard(answering)
        return answering.result()

    def die_at(self, place: str, times: int) -> None:
        self._places = {place: times}

    def die(self) -> None:
        """From here on nothing it does has any effect."""
        if not self.disk.is_lost:
            self.died_at = asyncio.get_running_loop().time()
            self.disk.is_lost = self.network.is_lost = True
            self.died.set()

    async def bury(self, but: Iterable[asyncio.Task[object]]) -> None:
        """End what is left of it, which does no good and no harm any more."""
        self.world.is_alive = False
        spared = {*but, asyncio.current_task()}
        for _ in range(1_000):
            left = [task for task in asyncio.all_tasks() if task not in spared]
            if not left:
                break
            for task in left:
                task.cancel()
            await asyncio.sleep(0)
        else:
            raise AssertionError(f"tasks do not end: {left}")
        await asyncio.gather(self._running, *self._others, return_exceptions=True)
        with suppress(Exception):
            await self._stack.aclose()
        self.world.is_alive = True

    async def stop(self) -> None:
        """SIGTERM; raises `HubFailed` if it did not last till then."""
        self._places = {}
        self._stop.set()
        await self._running
        for task in self._others:
            task.cancel()
        await asyncio.gather(*self._others, return_exceptions=True)
        await self._stack.aclose()
        await self.storage.close()
        self.disk.is_lost = True

    @property
    def failure(self) -> HubFailed | None:
        """What ended it although nobody wanted that."""
        if self._running.done() and not self._running.cancelled():
            error = self._running.exception()
            return error if isinstance(error, HubFailed) else None
        return None

    async def _run(self) -> None:
        with socket.socket() as listener:
            await run_until_stopped(self.hub, listener, self._stop)

    def _pass(self, place: str) -> None:
        left = self._places.get(place)
        if left is not None:
            self._places[place] = left - 1
            if left <= 1:
                self.die()


async def _look_up(host: str) -> list[str]:
    return ["93.184.216.34"]
