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
"""Seconds until changes are noticed that the log does not tell of: feeds hidden, shown
or moved."""
GATHER_SECONDS = 1.0
"""Seconds that news waits for more, to be decided on together; longer on a busy hub."""
WAIT_SECONDS = 60.0
WITHDRAW_SECONDS = 5.0
"""Seconds until files with withdrawn text are deleted; they are not served before
that."""
PROMPT_SECONDS = 60.0
"""Seconds at least between snapshots that are built because pages were withdrawn."""
PROMPT_SHARE = 10
"""The pause is also at least so many times the duration of the last build, so that a
large hub does not build all the time."""

log = structlog.get_logger()


class PageNewsLog(GrowingLog, Protocol):
    """The part of `storage.contract.LogStore` that is needed here."""

    async def end(self) -> Cursor: ...


class CollectionPublisher:
    """Builds collections on schedule. With ``is_on`` False it only keeps pages up to
    date."""

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
        self._is_waiting = False  # for `_prompt_at`, with something to build
        self._follower = LogFollower(
            news,
            "pages_not_kept_up",
            self._catch_up,
            wait_seconds=WAIT_SECONDS,
            retry_seconds=CATCH_UP_SECONDS,
            gather_seconds=gather_seconds,
        )

    async def run(self) -> None:
        """Build at once what is due, then on schedule until cancelled."""
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
        """Ask for a build of all changes soon; ``snapshots``: of all snapshots, due or
        not."""
        self._wants_snapshots = self._wants_snapshots or snapshots
        self._is_asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether a build that was asked for is not over yet."""
        return self._is_asked.is_set() or self._is_building_as_asked

    async def build_when_asked(self) -> None:
        """Build whenever a build is asked for, until cancelled."""
        while True:
            await self._is_asked.wait()
            self._is_asked.clear()
            snapshots, self._wants_snapshots = self._wants_snapshots, False
            self._is_building_as_asked = True
            await self.build(snapshots=snapshots)
            self._is_building_as_asked = False

    async def follow(self) -> None:
        """Decide on entries soon after the log tells of them: readers ask for what is
        new."""
        await self._follower.run()

    async def _catch_up(self) -> Position:
        end = (await self._news.end()).position
        await self._builder.catch_up()
        return end

    async def build(self, *, snapshots: bool = False) -> None:
        """Build what is due; after a failure the next build tries again."""
        begun = self._clock.monotonic()
        try:
            await self._builder.build(snapshots=snapshots)
            now = self._clock.monotonic()
            self._prompt_at = now + max(PROMPT_SECONDS, PROMPT_SHARE * (now - begun))
        except (StorageError, OSError) as error:
            log.warning("collections_failed", error=str(error))
        except Exception:  # the content of a feed must not end the hub
            log.exception("collections_failed")

    async def keep_up(self) -> None:
        """Decide on changed entries, and build soon (not at once) if a page was
        withdrawn.

        While the log has more news the deciding is left to `follow`; withdrawn pages
        are known without it.
        """
        try:
            if not self._follower.has_news:
                await self._builder.catch_up()
            if not self._is_on or not await self._builder.needs_snapshot():
                return
        except StorageError as error:
            log.warning("pages_not_kept_up", error=str(error))
            return
        except Exception:  # the content of a feed must not end the hub
            log.exception("pages_not_kept_up")
            return
        self._is_waiting = self._clock.monotonic() < self._prompt_at
        if not self._is_waiting:
            await self.build()

    async def withdraw(self) -> None:
        """Remove collections that may contain withdrawn text, and soon build new
        ones."""
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
