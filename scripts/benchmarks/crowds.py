"""Listeners by ten thousands: several processes, each from an address of its own.

A process may open only so many files, and an address has ports for some 28,000
connections to one server.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from scripts.benchmarks.listeners import Listeners, allow_files, listening
from scripts.benchmarks.measuring import until

EACH = 10_000
"""Connections of a process."""
RESERVED = 500
"""Files of a process that are no connections."""


def most_connections(wanted: int) -> int:
    """How many this process may have, once as many as are wanted were asked for."""
    try:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if hard < wanted + RESERVED:  # which only the system's administrator may raise
            raised = wanted + RESERVED
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, raised))
    except (OSError, ValueError):
        pass
    allow_files(wanted + RESERVED)
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED


class Crowd:
    """Who listens at one port; grows until it is left."""

    def __init__(self, directory: Path, port: int, target: str) -> None:
        self._directory = directory
        self._port = port
        self._target = target
        self._listeners: list[Listeners] = []
        self._stack = AsyncExitStack()
        self.count = 0

    async def __aenter__(self) -> Crowd:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def grow(self, count: int) -> None:
        """To so many in all, by websockets."""
        sizes = _sizes(count - self.count)
        first = len(self._listeners)
        self._listeners += await asyncio.gather(
            *(self._add(first + at, size) for at, size in enumerate(sizes))
        )
        self.count = count

    async def _add(self, number: int, size: int) -> Listeners:
        source = f"127.0.0.{2 + number}"
        return await self._stack.enter_async_context(
            listening(
                self._directory, "websocket", self._port, self._target, size, source
            )
        )

    @property
    def messages(self) -> int:
        return sum(each.messages for each in self._listeners)

    async def wait_for(self, messages: int) -> None:
        async def have_come() -> bool:
            return self.messages >= messages

        await until(have_come, pause=0.002)


def _sizes(count: int) -> Sequence[int]:
    return [min(EACH, count - start) for start in range(0, count, EACH)]
