"""Watched lists: lists of feeds elsewhere that the hub keeps in step with.

A list is read again on schedule. Feeds that appear in it are added, and feeds that have
left it are removed, unless somebody else wants them. Errors are kept as the list's
status; no feed is removed because of an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

import structlog
from msgspec import structs

from hub.core.fetched import Fetched
from hub.core.schedule.next_request import next_validators, retry_after
from hub.core.watched_lists import next_reading
from hub.ingest.fetch_pipeline import draw_jitter
from hub.limits.host_limiter import HostLimiter
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from hub.services.feed_registration import FeedService
from hub.services.feed_requests import AddFeed
from hub.services.list_following import ListFollower, ReadingProgress
from hub.services.opml_lists import FeedListService, ReadList
from hub.services.service_errors import Conflict
from hub.services.topic_addresses import read_topic
from protocols.opml import OutlineWalk
from protocols.protocol_errors import InvalidValue
from protocols.urls import host_name
from storage.contract import Storage
from storage.errors import NotFound, StorageError
from storage.records import ListWatch, ListWatchId, NewListWatch, Polling

LOOK_SECONDS: Final = 30.0
"""Seconds between two looks whether a list is due."""
READ_AT_ONCE: Final = 4
MOST_WATCHES: Final = 1_000

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WatchedList:
    """A watched list. ``reading`` None: it is not being read."""

    watch: ListWatch
    reading: ReadingProgress | None


class ListWatchService:
    def __init__(
        self,
        storage: Storage,
        lists: FeedListService,
        feeds: FeedService,
        limiter: HostLimiter,
        clock: Clock,
        *,
        every: float,
        jitter: Callable[[], float] = draw_jitter,
    ) -> None:
        """``every``: seconds between two readings of a list, at least. ``limiter``:
        knows the hosts that want no requests."""
        self._watches = storage.list_watches
        self._follower = ListFollower(storage, feeds)
        self._lists = lists
        self._limiter = limiter
        self._clock = clock
        self._every = every
        self._jitter = jitter
        self._reading: dict[ListWatchId, ReadingProgress] = {}
        self._woken = asyncio.Event()
        self._ended = asyncio.Event()

    async def watch(self, new: NewListWatch) -> tuple[ListWatchId, bool]:
        """Watch a list; returns its id, and whether it is new. A known list is read
        now.

        Raises `InvalidValue`, `AddressRefused` and `Conflict`.
        """
        if read_topic("url", new.url).credentials is not None:
            raise InvalidValue("url", "one without user name and password")
        url = await self._lists.check("url", new.url)
        AddFeed(url=url, category=new.category).check()
        known = await self._watches.page(after=ListWatchId(0), limit=MOST_WATCHES)
        if len(known) >= MOST_WATCHES and all(each.url != url for each in known):
            raise Conflict(f"{MOST_WATCHES:,} lists are watched already")
        now = self._clock.now()
        watch, is_new = await self._watches.add(structs.replace(new, url=url), now)
        if not is_new:
            _refuse_other(watch, new)
            if watch.id not in self._reading:
                await self._watches.save(structs.replace(watch, due=now))
        self._woken.set()
        return watch.id, is_new

    async def unwatch(self, watch_id: ListWatchId) -> ListWatch:
        """Stop watching a list; its feeds stay. Raises `NotFound`."""
        found = await self.get(watch_id)
        await self._watches.remove(watch_id)
        if (reading := self._reading.get(watch_id)) is not None:
            reading.is_stopped = True
        return found.watch

    async def page(self, *, after: ListWatchId, limit: int) -> list[WatchedList]:
        watches = await self._watches.page(after=after, limit=limit)
        return [self._now(each) for each in watches]

    async def get(self, watch_id: ListWatchId) -> WatchedList:
        """A watched list. Raises `NotFound`."""
        watch = await self._watches.get(watch_id)
        if watch is None:
            raise NotFound("watched list", watch_id)
        return self._now(watch)

    async def wait(self, watch_id: ListWatchId, seconds: float) -> WatchedList:
        """A list once it has been read, or in its state after so many seconds.

        Raises `NotFound`.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    ended = self._ended
                    if (await self.get(watch_id)).reading is None:
                        break
                    await ended.wait()
        return await self.get(watch_id)

    def _now(self, watch: ListWatch) -> WatchedList:
        reading = self._reading.get(watch.id)
        if reading is None and watch.due <= self._clock.now():
            reading = ReadingProgress()
        return WatchedList(watch, reading)

    async def run(self) -> None:
        """Read lists that are due, until cancelled."""
        while True:
            self._woken.clear()
            if not await self._read_due():
                await wait_for(self._woken, LOOK_SECONDS)

    async def _read_due(self) -> bool:
        """Read lists that are due; returns whether any was read, and so others may be
        due."""
        try:
            due = await self._watches.due(self._clock.now(), READ_AT_ONCE)
        except StorageError as error:
            log.warning("watched_lists_not_looked_for", error=str(error))
            return False
        return any(await asyncio.gather(*map(self._read, due)))

    async def _read(self, watch: ListWatch) -> bool:
        """Read a list; returns whether the result is stored."""
        self._reading[watch.id] = ReadingProgress()
        try:
            await self._watches.save(await self._read_again(watch))
        except StorageError as error:
            log.warning("list_not_followed", list=watch.id, error=str(error))
            return False
        finally:
            del self._reading[watch.id]
            self._ended.set()
            self._ended = asyncio.Event()
        return True

    async def _read_again(self, watch: ListWatch) -> ListWatch:
        """The list after one reading, whether that failed or not."""
        now = self._clock.now()
        if held := self._limiter.held(host_name(watch.url)):
            return structs.replace(watch, due=now + timedelta(seconds=held))
        try:
            read = await self._lists.read_again(watch.url, watch.validators)
            self._heed(read.fetched)
            after = await self._follow(watch, read)
        except StorageError:
            raise
        except Exception as fault:
            log.exception("list_broke", list=watch.id)
            return structs.replace(
                watch,
                due=now + timedelta(seconds=self._every),
                failures=watch.failures + 1,
                error=f"internal error ({type(fault).__name__}); the log has details",
            )
        _tell(watch, after)
        return after

    def _heed(self, fetched: Fetched) -> None:
        """Leave the host alone if its server asks for that: it wants no other request
        either."""
        until = retry_after(fetched)
        is_refusal = fetched.status in (
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        )
        if until is not None and is_refusal:
            seconds = (until - self._clock.now()).total_seconds()
            self._limiter.hold(host_name(fetched.url), seconds)

    async def _follow(self, watch: ListWatch, read: ReadList) -> ListWatch:
        fetched, walk = read.fetched, read.walk
        is_same = fetched.status == HTTPStatus.NOT_MODIFIED and not fetched.error
        if not is_same and not walk.feeds:
            failures = watch.failures + 1
            return structs.replace(
                watch,
                due=self._due(fetched, failures),
                failures=failures,
                error=_why_empty(walk),
            )
        good = structs.replace(
            watch,
            due=self._due(fetched, 0),
            read_at=fetched.at,
            failures=0,
            error="",
            validators=next_validators(Polling(validators=watch.validators), fetched),
        )
        if is_same:
            return good
        return await self._follower.follow(good, walk, self._reading[watch.id])

    def _due(self, fetched: Fetched, failures: int) -> datetime:
        return next_reading(fetched, failures, self._every, self._jitter())


def _refuse_other(watch: ListWatch, new: NewListWatch) -> None:
    """Raise `Conflict` if the list is watched already, but not as requested."""
    is_other = new.category not in ("", watch.category)
    if is_other or (new.private and not watch.private):
        raise Conflict(
            f"{watch.url} is watched already, with another category or not privately;"
            " `fanfare opml unwatch` it first"
        )


def _why_empty(walk: OutlineWalk) -> str:
    for each in walk.lists:
        if each.error:
            return each.error
    return "the list has no feeds"


def _tell(before: ListWatch, after: ListWatch) -> None:
    """Log what has changed about a list."""
    name = f"the list on {host_name(after.url)}" if after.private else after.url
    if after.error and after.error != before.error:
        log.warning(f"watched list {name}: {after.error}", kind="list", list=after.id)
    elif before.error and not after.error:
        log.info(f"watched list {name}: read again", kind="list", list=after.id)
    if after.changed_at != before.changed_at:
        log.info(
            f"watched list {name}: {after.added:,} added, {after.removed:,} removed,"
            f" {after.kept:,} kept",
            kind="list",
            list=after.id,
        )
