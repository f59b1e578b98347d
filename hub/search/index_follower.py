"""The index of words, kept up to date by a reader of the log.

A commit does not write to the index. The index catches up by taking everything that
came meanwhile together, so that much news costs little more than some. Everything else
is done in steps with rests in between: reading the entries that it must cover,
forgetting those that are too old, merging, and removing an index that is no longer
kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf, isinf
from typing import Final, Protocol

import structlog

from hub.core.news.search_terms import document_of, searched_subject
from hub.runtime.clock import Clock
from hub.runtime.log_follower import LogFollower
from hub.runtime.offloading import run_in_thread
from hub.runtime.paced_steps import PacedSteps, StepSize
from protocols.model import Entry
from storage.contract import EntryStore, LogStore, SearchStore
from storage.packing import unpack, unpack_head
from storage.records import (
    EntryId,
    EntrySource,
    FeedId,
    Position,
    SearchDocument,
    StoredEntry,
)

PAGE: Final = 200
"""The most entries that are read and written together."""
RECORDS: Final = 200
GATHER_SECONDS: Final = 0.25
"""Seconds that news waits for more, to be written together; longer on a busy hub."""
WRITING: Final = StepSize(count=50, most=PAGE, seconds=0.05)
MERGING: Final = StepSize(count=16, most=1_000, seconds=0.02)
"""The size of a merging step, in pages of the index."""
REMOVING: Final = StepSize(count=100, most=5_000, seconds=0.02)
"""The size of a removing step, in rows."""

log = structlog.get_logger()


class Indexed(Protocol):
    """The part of `storage.contract.Storage` that is needed here."""

    @property
    def log(self) -> LogStore: ...
    @property
    def entries(self) -> EntryStore: ...
    @property
    def search(self) -> SearchStore: ...


class SearchIndex:
    """Keeps the index of words. `run` is its background task."""

    def __init__(
        self,
        storage: Indexed,
        clock: Clock,
        *,
        days: float = inf,
        gather_seconds: float = GATHER_SECONDS,
    ) -> None:
        """Take for how many ``days`` entries are indexed, by their dates; 0: none."""
        self._storage = storage
        self._clock = clock
        self._days = days
        self._gather_seconds = gather_seconds
        self._writing = PacedSteps(clock, WRITING)
        self._merging = PacedSteps(clock, MERGING)
        self._removing = PacedSteps(clock, REMOVING)
        self._may_have_former = True

    async def run(self) -> None:
        follower = LogFollower(
            self._storage.log,
            "search_indexing_failed",
            self.catch_up,
            gather_seconds=self._gather_seconds,
        )
        await follower.run()

    async def catch_up(self) -> Position:
        """Index everything up to now; returns the position up to which the log was
        read."""
        await self._cover_days()
        while True:
            position = await self._read_news()
            if not await self._do_upkeep():
                return position

    async def _cover_days(self) -> None:
        """Begin or end the index, or change how many days it covers, as configured."""
        state = await self._storage.search.state()
        if state.days == self._days:
            return
        while not self._days and await self._remove_former():
            pass
        await self._storage.search.keep(self._days)
        self._may_have_former = True
        if not self._days:
            log.info("search is off: its index is removed", days=0)
        elif self._days > state.days:
            count = state.last - state.first + 1 if state.last else 0
            log.info("the search index is being built", entries=count)

    async def _read_news(self) -> Position:
        if not self._days:
            return (await self._storage.log.end()).position
        while waiting := await self._storage.search.waiting(self._writing.count):
            await self._index(waiting)
        position = (await self._storage.search.state()).position
        log = self._storage.log
        while records := await log.records(after=position, limit=RECORDS):
            position, size = records[-1].position, self._writing.count
            named = [ref.entry_id for each in records for ref in each.entries]
            ids = list(dict.fromkeys(named))
            # The position to go on from is written with the last page.
            while len(ids) > size:
                await self._index(ids[:size])
                ids = ids[size:]
            await self._index(ids, position=position)
        return position

    # --- what can wait ---

    async def _do_upkeep(self) -> bool:
        """Do one step of upkeep; returns whether there was anything to do."""
        if self._may_have_former and await self._remove_former():
            return True
        if not self._days:
            return False
        return bool(
            await self._merging.take_and_rest(self._storage.search.merge)
            or (not isinf(self._days) and await self._forget_old())
            or await self._read_unread()
        )

    async def _remove_former(self) -> int:
        removed = await self._removing.take_and_rest(self._storage.search.remove_former)
        self._may_have_former = removed > 0
        return removed

    async def _forget_old(self) -> int:
        async def forget(limit: int) -> int:
            old = await self._storage.search.dated_before(self._since, limit)
            if old:
                await self._storage.search.index(old, [])
            return len(old)

        return await self._writing.take_and_rest(forget)

    async def _read_unread(self) -> int:
        if not (await self._storage.search.state()).unread:
            return 0

        async def read(limit: int) -> int:
            ids, unread = await self._storage.search.unread(self._since, limit)
            await self._write(ids, unread=unread)
            if not unread:
                log.info("the search index is complete")
            return max(len(ids), 1)

        return await self._writing.take_and_rest(read)

    @property
    def _since(self) -> datetime:
        if isinf(self._days):
            return datetime.min.replace(tzinfo=UTC)
        return self._clock.now() - timedelta(days=self._days)

    # --- documents ---

    async def _index(
        self, ids: Sequence[EntryId], position: Position | None = None
    ) -> None:
        """Write entries to the index, and then merge for about as long as that took."""

        async def write(_: int) -> int:
            await self._write(ids, position=position)
            return len(ids)

        began = self._clock.monotonic()
        await self._writing.take(write)
        until = 2 * self._clock.monotonic() - began
        while await self._merging.take(self._storage.search.merge):
            if self._clock.monotonic() >= until:
                break

    async def _write(
        self,
        ids: Sequence[EntryId],
        *,
        position: Position | None = None,
        unread: EntryId | None = None,
    ) -> None:
        stored = await self._storage.log.entries(ids)
        feeds = list(dict.fromkeys(each.feed_id for each in stored))
        sources = {
            each.feed.id: each for each in await self._storage.entries.sources(feeds)
        }
        documents = await run_in_thread(partial(_documents, stored, sources))
        await self._storage.search.index(
            ids, documents, position, since=self._since, unread=unread
        )


def _documents(
    stored: Sequence[StoredEntry], sources: Mapping[FeedId, EntrySource]
) -> list[SearchDocument]:
    heads = {feed_id: unpack_head(source.head) for feed_id, source in sources.items()}
    documents = []
    for each in stored:
        if each.deleted or each.feed_id not in sources:
            continue
        feed = sources[each.feed_id].feed
        try:
            entry = unpack(each.body, Entry)
            subject = searched_subject(entry, heads[each.feed_id], feed)
            documents.append(document_of(each.id, subject))
        except Exception:  # one bad entry must not block those after it
            log.exception("entry_not_indexed", entry=each.id)
    return documents
