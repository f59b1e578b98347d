"""Following the log: readers that continue for as long as the hub runs.

Readers that may lag wait for a quiet moment first, so that much news costs little more
than a little news.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Never, Protocol

import structlog

from storage.errors import StorageClosed, StorageError
from storage.records import Position, Record, RecordKind

WAIT_SECONDS: Final = 10.0
"""After so many seconds a reader looks again, even if no growth of the log was
announced."""
RETRY_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 1.0
LIMIT: Final = 500
"""Records that are read at once."""
MUCH_NEWS: Final = 200
MUCH: Final = 20
"""Records at one look from which on it is worth waiting for more: `MUCH_NEWS` if any of
them is news, `MUCH` if none is (those of first documents, and of failing feeds)."""
NEWS_SECONDS: Final = 10.0
OTHER_SECONDS: Final = 300.0
"""The longest wait for more: `NEWS_SECONDS` if any record is news, else this."""

_NEWS: Final = frozenset({RecordKind.ENTRIES, RecordKind.UPDATED, RecordKind.DELETED})

log = structlog.get_logger()


class GrowingLog(Protocol):
    """What is needed of `storage.contract.LogStore`."""

    async def records(self, *, after: Position, limit: int) -> list[Record]: ...

    async def wait(self, after: Position, seconds: float) -> Position: ...


class LogFollower:
    """Calls ``handle`` for what is new in the log, from now until it is cancelled.

    ``handle`` deals with all there is, at the start and whenever the log has grown, and
    returns the position it has reached. Whatever it raises is logged under ``name`` and
    tried again: what feeds send must not end the hub. With ``gather_seconds``, it is
    called only after waiting so long for more news, and longer while much arrives.
    """

    def __init__(
        self,
        log_store: GrowingLog,
        name: str,
        handle: Callable[[], Awaitable[Position]],
        *,
        wait_seconds: float = WAIT_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        gather_seconds: float | None = None,
    ) -> None:
        self._log = log_store
        self._name = name
        self._handle = handle
        self._wait_seconds = wait_seconds
        self._retry_seconds = retry_seconds
        self._gather_seconds = gather_seconds
        self.has_news = False
        """True from when the log has grown until that was handled, or has failed."""

    async def run(self) -> Never:
        """Raises `StorageClosed` when the hub ends."""
        while True:
            try:
                await self._follow()
            except StorageClosed:
                raise
            except StorageError as error:
                log.error(self._name, error=str(error))
            except Exception:
                log.exception(self._name)
            self.has_news = False
            await asyncio.sleep(self._retry_seconds)

    async def _follow(self) -> Never:
        while True:
            position = await self._handle()
            self.has_news = False
            end = await self._log.wait(position, self._wait_seconds)
            self.has_news = end > position
            if self.has_news and self._gather_seconds is not None:
                await gather(self._log, position, self._gather_seconds)


async def gather(
    log_store: GrowingLog,
    after: Position,
    seconds: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Wait so many seconds for more after a position, longer while much arrives, so
    that thousands of imported feeds are found together. Raises `StorageError`."""
    await sleep(seconds)
    waited, has_news = seconds, False
    while records := await log_store.records(after=after, limit=LIMIT):
        has_news = has_news or any(each.kind in _NEWS for each in records)
        much, most = (MUCH_NEWS, NEWS_SECONDS) if has_news else (MUCH, OTHER_SECONDS)
        if len(records) <= much or waited >= most:
            return
        await sleep(LOOK_SECONDS)
        waited += LOOK_SECONDS
        after = records[-1].position
