"""When storage fails: nothing is fetched until it can be written again."""

from __future__ import annotations

import asyncio

import structlog

from storage.errors import StorageError
from storage.interface import Storage

FIRST_CHECK = 1.0
LONGEST_CHECK = 60.0
"""Seconds between trials whether storage works again, doubling from the first."""

log = structlog.get_logger()


class Outage:
    """Begins with a failure of storage, ends with a trial write that succeeds."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._failure: StorageError | None = None

    @property
    def failure(self) -> StorageError | None:
        """The last failure while there is an outage."""
        return self._failure

    def begin(self, failure: StorageError) -> None:
        if self._failure is None:
            log.error("polling_stopped", error=str(failure))
        self._failure = failure

    async def wait(self) -> None:
        """Until something can be written, tried now and then in growing pauses."""
        pause = FIRST_CHECK
        while self._failure is not None:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_CHECK)
            try:
                await self._storage.check()
            except StorageError as error:
                self._failure = error
            else:
                self._failure = None
        log.info("polling_resumed")
