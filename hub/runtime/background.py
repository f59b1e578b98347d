"""The background tasks of a hub, from its start to its end, and resources to close
then."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Never, Self

import structlog

from storage.errors import StorageError

log = structlog.get_logger()

BackgroundTask = Callable[[], Coroutine[Any, Any, None]]
"""Starts something that runs until it is cancelled."""


async def wait_for(woken: asyncio.Event, seconds: float | None) -> None:
    """Wait until the event is set, or for so many seconds; None: for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()


async def work_when_woken(
    woken: asyncio.Event,
    work: Callable[[], Awaitable[bool]],
    *,
    failure: str,
    retry_seconds: float,
) -> Never:
    """Do one part of the work after the other while there is any, and wait to be woken
    when there is none.

    ``work`` returns whether there was any. A `StorageError` that it raises is logged
    under ``failure``, and the work tried again.
    """
    while True:
        woken.clear()
        try:
            was_work = await work()
        except StorageError as error:
            log.warning(failure, error=str(error))
            await asyncio.sleep(retry_seconds)
        else:
            if not was_work:
                await woken.wait()


class DrainingTaskGroup(asyncio.TaskGroup):
    """A task group whose tasks are given time to end by themselves: `drain`."""

    def __init__(self) -> None:
        super().__init__()
        self._at_work: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[object, object, None]) -> None:
        task = self.create_task(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def drain(self, grace: float) -> int:
        """Wait for all to end by themselves, ``grace`` seconds at most; then cancel.

        Returns how many had to be cancelled.
        """
        if not self._at_work:
            return 0
        _, late = await asyncio.wait(set(self._at_work), timeout=grace)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        return len(late)


class AsyncResource(ABC):
    """A resource that is closed at the end of its ``async with``, however that ends."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Close the resource; returns when no process and no connection of it is
        left."""
