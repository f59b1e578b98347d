"""Moves operational events from their queue to the log, which delivers them."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from hub.runtime.clock import Clock
from storage.contract import EventStore
from storage.errors import StorageClosed, StorageError

POLL_SECONDS: Final = 1.0
PAGE: Final = 50

log = structlog.get_logger()


class EventPublisher:
    def __init__(self, events: EventStore, clock: Clock) -> None:
        self._events = events
        self._clock = clock

    async def run(self) -> None:
        """Publish what is queued, until cancelled."""
        while True:
            try:
                while await self._events.publish(self._clock.now(), PAGE) == PAGE:
                    pass
            except StorageClosed:
                raise
            except StorageError as error:
                log.warning("events_not_published", error=str(error))
            await asyncio.sleep(POLL_SECONDS)
