"""The hub itself: is it ready, how much is waiting, back it up."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import hub
from hub.runtime.clock import Clock
from hub.services.errors import Conflict
from protocols.errors import InvalidValue
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import Backlog, DatabaseStatus, FeedId

CHECK_SECONDS = 5.0
"""A trial write is made no more often than this, however often readiness is asked."""
CHECK_DEADLINE = 5.0
LEAST_FREE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    version: str
    uptime: float  # seconds
    troubles: tuple[str, ...]
    warnings: tuple[str, ...]
    backlog: Backlog
    database: DatabaseStatus


class OperationsService:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        directory: Path,
        clock_warning: Callable[[], str] = str,
        under_way: Callable[[], Collection[FeedId]] = tuple,
    ) -> None:
        """``directory``: the one the database lies in. ``clock_warning``: what is to be
        known of the clock; "" when there is nothing. ``under_way``: the feeds that are
        being visited."""
        self._storage = storage
        self._clock = clock
        self._directory = directory
        self._clock_warning = clock_warning
        self._under_way = under_way
        self._started = clock.monotonic()
        self._checked: float | None = None
        self._trouble = ""
        self._stopping = False

    def stop(self) -> None:
        """The hub is about to end: no longer ready."""
        self._stopping = True

    async def troubles(self) -> tuple[str, ...]:
        """Why the hub is not ready, in words; empty when it is."""
        await self._try_write()
        free = shutil.disk_usage(self._directory).free
        found = (
            "shutting down" if self._stopping else "",
            self._storage.trouble() or self._trouble,
            f"the disk has only {free} bytes left" if free < LEAST_FREE_BYTES else "",
        )
        return tuple(filter(None, found))

    def warnings(self) -> tuple[str, ...]:
        """What an operator should look at, though the hub works."""
        return tuple(filter(None, [self._clock_warning()]))

    async def health(self) -> Health:
        return Health(
            version=hub.__version__,
            uptime=self._clock.monotonic() - self._started,
            troubles=await self.troubles(),
            warnings=self.warnings(),
            backlog=await self._storage.backlog(self._under_way()),
            database=await self._storage.status(),
        )

    async def backup(self, destination: str) -> Path:
        """Write a consistent copy to a new file. Raises `InvalidValue`, `Conflict`."""
        path = _new_file(destination)
        await self._storage.backup(path)
        return path

    async def _try_write(self) -> None:
        now = self._clock.monotonic()
        if self._checked is not None and now - self._checked < CHECK_SECONDS:
            return
        self._checked = now
        try:
            async with asyncio.timeout(CHECK_DEADLINE):
                await self._storage.check()
        except StorageError as error:
            self._trouble = str(error)
        except TimeoutError:
            self._trouble = f"a write took longer than {CHECK_DEADLINE:g} s"
        else:
            self._trouble = ""


def _new_file(destination: str) -> Path:
    path = Path(destination)
    if not path.is_absolute() or "\0" in destination:
        raise InvalidValue("destination", "an absolute path", destination)
    try:
        has_place, is_taken = path.parent.is_dir(), path.exists()
    except OSError:
        raise InvalidValue("destination", "a shorter path", destination) from None
    if not has_place:
        raise InvalidValue(
            "destination", "a path in an existing directory", destination
        )
    if is_taken:
        raise Conflict(f"{path} exists already; name a new file")
    return path
