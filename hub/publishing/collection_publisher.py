"""Builds collections on schedule, and keeps pages up to date with entries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from hub.publishing.collection_builder import CollectionBuilder
from hub.runtime.clock import Clock
from hub.runtime.log_follower import GrowingLog, LogFollower
from hub.runtime.periodic_jobs import ScheduledJob, scheduled
from storage.errors import StorageError
from storage.records import Cursor, Position

CATCH_UP_SECONDS = 60.0
"""How late is noticed what the log does not tell: feeds hidden, shown or moved."""
GATHER_SECONDS = 1.0
"""How long news waits for more, to be decided on with it; longer while much comes."""
WAIT_SECONDS = 60.0
WITHDRAW_SECONDS = 5.0
"""Until the files are gone of what was withdrawn; nobody is given them before that."""
PROMPT_SECONDS = 60.0
"""Between snapshots for the sake of pages that were withdrawn, at least."""
PROMPT_SHARE = 10
"""And so many times what the last build took, that a large hub does not only build."""

log = structlog.get_logger()


class PageNewsLog(GrowingLog, Protocol):
    """What is needed of `storage.contract.LogStore`."""

    async def end(self) -> Cursor: ...


class CollectionPublisher:
    """``is_on`` False: nothing is built, only pages are kept up."""

    def __init__(
        self,
        builder: CollectionBuilder,
        clock: Clock,
        news: PageNewsLog,
        *,
        is_on: bool = True,
        gather_seconds: float = GATHER_SECONDS,
    ) -> None:
        self._builder = builder
        self._news = news
        self._clock = clock
        self._is_on = is_on
        self._prompt_at = float("-inf")
        self._is_asked = asyncio.Event()
        self._wants_snapshots = self._is_building_as_asked = False
        self._is_waiting = False  # for that, with something to be built
        self._follower = LogFollower(
            news,
            "pages_not_kept_up",
            self._catch_up,
            wait_seconds=WAIT_SECONDS,
            retry_seconds=CATCH_UP_SECONDS,
            gather_seconds=gather_seconds,
        )

    async def run(self) -> None:
        """Build at once what is due, then by the clock until cancelled."""
        jobs = [_job("keeping pages up with entries", self.keep_up, CATCH_UP_SECONDS)]
        if self._is_on:
            every = self._builder.options.delta_seconds
            jobs.append(_job("building collections", self.build, every))
            removing = "removing collections that held withdrawn text"
            jobs.append(_job(removing, self.withdraw, WITHDRAW_SECONDS))
        async with scheduled(jobs):
            await (self.build() if self._is_on else self.keep_up())
            await self.follow()

    def ask(self, *, snapshots: bool) -> None:
        """Have what has changed built soon; ``snapshots``: all of them, due or not."""
        self._wants_snapshots = self._wants_snapshots or snapshots
        self._is_asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether a build has been asked for that is not over yet."""
        return self._is_asked.is_set() or self._is_building_as_asked

    async def build_when_asked(self) -> None:
        """Until cancelled."""
        while True:
            await self._is_asked.wait()
            self._is_asked.clear()
            snapshots, self._wants_snapshots = self._wants_snapshots, False
            self._is_building_as_asked = True
            await self.build(snapshots=snapshots)
            self._is_building_as_asked = False

    async def follow(self) -> None:
        """Decide on what the log tells of soon: readers ask for what is new."""
        await self._follower.run()

    async def _catch_up(self) -> Position:
        end = (await self._news.end()).position
        await self._builder.catch_up()
        return end

    async def build(self, *, snapshots: bool = False) -> None:
        """What is due; a failure waits for the next time."""
        begun = self._clock.monotonic()
        try:
            await self._builder.build(snapshots=snapshots)
            now = self._clock.monotonic()
            self._prompt_at = now + max(PROMPT_SECONDS, PROMPT_SHARE * (now - begun))
        except (StorageError, OSError) as error:
            log.warning("collections_failed", error=str(error))
        except Exception:  # what feeds send must not end the hub
            log.exception("collections_failed")

    async def keep_up(self) -> None:
        """Decide on what is news; build if a page was withdrawn, soon but not at once.

        While much is written that comes later; what is withdrawn is known without.
        """
        try:
            if not self._follower.has_news:
                await self._builder.catch_up()
            if not self._is_on or not await self._builder.needs_snapshot():
                return
        except StorageError as error:
            log.warning("pages_not_kept_up", error=str(error))
            return
        except Exception:  # what feeds send must not end the hub
            log.exception("pages_not_kept_up")
            return
        self._is_waiting = self._clock.monotonic() < self._prompt_at
        if not self._is_waiting:
            await self.build()

    async def withdraw(self) -> None:
        """Take away what may hold withdrawn text, and build what remains soon."""
        try:
            has_withdrawn = await self._builder.withdraw()
        except (StorageError, OSError) as error:
            log.warning("collections_not_withdrawn", error=str(error))
            return
        if has_withdrawn or self._is_waiting:
            await self.keep_up()


def _job(
    what: str, work: Callable[[], Awaitable[object]], seconds: float
) -> ScheduledJob:
    return ScheduledJob(what=what, every=seconds, work=work)
