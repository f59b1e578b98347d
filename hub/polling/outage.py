"""When storage fails: nothing is fetched until it can be written again."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import structlog

from storage.errors import StorageError
from storage.interface import Storage

FIRST_CHECK = 1.0
LONGEST_CHECK = 5.0
"""Seconds between trials whether storage works again, doubling from the first."""

log = structlog.get_logger()


class Outage:
    """Begins with a failure of storage, ends with a trial write that succeeds."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._failure: StorageError | None = None
        self._is_of_all = False
        self._over = asyncio.Event()
        self.is_open = False
        """Since one began, until `wait` has told that it is over."""

    @property
    def failure(self) -> StorageError | None:
        """The last failure while there is an outage."""
        return self._failure

    def begin(self, failure: StorageError) -> None:
        if self._failure is None:
            log.error("polling_stopped", error=str(failure))
            self._over.clear()
        self.is_open = True
        self._failure = failure

    async def probe(self) -> None:
        """End it now if something can be written. Raises `StorageError`: it goes on."""
        try:
            await self._storage.check()
        except StorageError as error:
            self._failure = error
            self._is_of_all = True
            raise
        self._failure = None
        self._over.set()

    async def wait(self) -> bool:
        """Until something can be written, tried now and then in growing pauses.

        Whether storage took nothing at all: else only what one feed brought was too
        much for it, and will be so again.
        """
        pause = FIRST_CHECK
        while self._failure is not None:
            try:
                async with asyncio.timeout(pause):
                    await self._over.wait()
            except TimeoutError:
                pause = min(2 * pause, LONGEST_CHECK)
                with suppress(StorageError):
                    await self.probe()
        log.info("polling_resumed")
        was_of_all, self._is_of_all, self.is_open = self._is_of_all, False, False
        return was_of_all
