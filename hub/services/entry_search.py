"""Search: stored entries that match a query, in the language of track queries.

Entries are matched on a thread of its own, some milliseconds at a time, in which
accounts take turns: no search delays a delivery, or waits until all searches of another
account are done.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final

from hub.core.news.search_terms import searched_subject, term_of
from hub.limits.fair_queue import FairThread, WaitingLineFull
from hub.services.entry_notifications import CollectedEntries
from hub.services.entry_records import records_of
from hub.services.service_errors import SearchOff, TooManyWaiting
from hub.services.token_authentication import Principal
from protocols.model import Entry, Feed
from protocols.track import Query, parse_query
from storage.contract import Storage
from storage.packing import unpack, unpack_head, unpacked_size
from storage.records import EntrySource, FeedId, Matches, StoredEntry

PAGE = 100
MOST_LOOKED_AT = 2_000
"""Entries with the words of a query that are examined: they may not match, or not be
visible."""
MOST_PAGES = 200
"""Pages of the index that are examined, including those with entries that are not
visible."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""Unpacked bytes of found entries; the entry that exceeds them ends the search."""
SECONDS: Final = 5.0
"""Seconds for one search, its waiting included; then it returns what it has found."""
TURN_SECONDS: Final = 0.02
"""Seconds until another account has its turn; the entry being matched is finished."""
MOST_WAITING: Final = 4
"""Searches of one account that may wait; any more are refused."""

COUNTED_SPAN: Final = timedelta(days=7)
"""Matches that the hub has seen since then are the forecast of a day."""
SECONDS_A_DAY: Final = 86_400

_BUILDING: Final = "; the index is being built, so older ones may be missing"

Sources = dict[FeedId, EntrySource]


class IndexState(StrEnum):
    """Which entries can be found by their words: none, those read so far, or all."""

    OFF = "off"
    BUILDING = "building"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """The state of the index. ``days``: entries dated in the last so many days can be
    found. ``share``: the part of them that is read."""

    state: IndexState
    days: float
    share: float


class SearchService:
    def __init__(
        self,
        storage: Storage,
        public_url: str,
        *,
        days: float = math.inf,
        tells_unlisted: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
        seconds: float = SECONDS,
    ) -> None:
        """``days``: entries of the last so many days are in the index; 0: there is no
        index. ``tells_unlisted``: subscribers also find entries that are kept out of
        listings. ``seconds``: for one search."""
        self._storage = storage
        self._public_url = public_url
        self._days = days
        self._tells_unlisted = tells_unlisted
        self._monotonic = monotonic
        self._seconds = seconds
        self._thread = FairThread("search", waiting=MOST_WAITING)

    async def find(
        self, principal: Principal, query: str, count: int
    ) -> CollectedEntries:
        """The newest entries that match and that the account may see.

        Raises `SearchOff`; `InvalidValue` (a `QueryError` that says where, and what was
        expected); and `TooManyWaiting` while the account has as many searches under way
        as it may.
        """
        if not self._days:
            raise SearchOff
        read = parse_query(query)
        found: list[StoredEntry] = []
        sources: Sources = {}
        index = await self.report()
        remark = "" if index.state is IndexState.COMPLETE else _BUILDING
        try:
            async with asyncio.timeout(self._seconds):
                await self._look(principal, read, count + 1, found, sources)
        except TimeoutError:
            remark += f"; stopped after {self._seconds:g} s"
        except WaitingLineFull:
            raise TooManyWaiting(
                f"{MOST_WAITING} searches of this account are waiting already"
            ) from None
        has_more = len(found) > count
        del found[count:]
        named = dict.fromkeys(each.feed_id for each in found)
        return CollectedEntries(
            topic=f"{self._public_url}/?hub.mode=search",
            hub=f"{self._public_url}/hub",
            entries=found,
            sources=[sources[feed_id] for feed_id in named],
            is_merged=True,
            title=f"Search: {read}",
            line=f"{_counted(len(found), has_more=has_more)} found{remark}",
            topics={},
        )

    async def per_day(
        self, newest: Sequence[StoredEntry], most: int, now: datetime
    ) -> float:
        """How many entries a day like these the hub has seen, whatever their dates say.

        ``newest`` are all that were found, or the last ``most`` of them, the newest
        first. Of fewer than that, those of the last week count.
        """
        log = self._storage.log
        if len(newest) >= most:
            oldest = newest[-1]
            records = await records_of(log, oldest.feed_id, oldest.id)
            if records:
                days = (now - records[0].at) / timedelta(days=1)
                return len(newest) / max(days, 1 / SECONDS_A_DAY)
        begin = await log.position_before(now - COUNTED_SPAN)
        seen = await log.records(after=begin, limit=PAGE)
        ids = [
            ref.entry_id for each in seen for ref in each.entries if ref.revision == 1
        ]
        recent = [each for each in newest if ids and each.id >= min(ids)]
        return len(recent) / COUNTED_SPAN.days

    async def report(self) -> IndexReport:
        """The state of the index. Raises `StorageError`."""
        if not self._days:
            return IndexReport(state=IndexState.OFF, days=0.0, share=0.0)
        state = await self._storage.search.state()
        share = state.share_read if state.days >= self._days else 0.0
        return IndexReport(
            state=IndexState.COMPLETE if share == 1 else IndexState.BUILDING,
            days=self._days,
            share=share,
        )

    async def _look(
        self,
        principal: Principal,
        query: Query,
        count: int,
        found: list[StoredEntry],
        sources: Sources,
    ) -> None:
        """Add entries to ``found`` until there are enough, or all were examined."""
        room, looked_at = MOST_BYTES, 0
        below: int | None = None
        for _ in range(MOST_PAGES):
            page = await self._page(principal, query, below)
            await self._learn(sources, page.entries)
            waiting = page.entries
            while waiting:
                choosing = partial(
                    _choose, query, waiting, sources, TURN_SECONDS, self._monotonic
                )
                chosen, waiting = await self._thread.run(principal.account.id, choosing)
                for each in chosen:
                    room -= unpacked_size(each.body)
                    found.append(each)
                    if len(found) >= count or room <= 0:
                        return
            below = page.next
            looked_at += len(page.entries)
            if below is None or looked_at >= MOST_LOOKED_AT:
                return

    async def _page(
        self, principal: Principal, query: Query, below: int | None
    ) -> Matches:
        return await self._storage.search.find(
            term_of(query),
            viewer=principal.viewer,
            limit=PAGE,
            below=below,
            listed_only=not self._tells_unlisted,
        )

    async def _learn(self, sources: Sources, entries: Sequence[StoredEntry]) -> None:
        """Add the sources of entries that are not known yet."""
        unknown = {each.feed_id for each in entries} - sources.keys()
        for source in await self._storage.entries.sources(sorted(unknown)):
            sources[source.feed.id] = source


def _counted(entries: int, *, has_more: bool) -> str:
    said = "1 entry" if entries == 1 else f"{entries} entries"
    return f"the newest {said} of more that were" if has_more else said


def _choose(
    query: Query,
    entries: tuple[StoredEntry, ...],
    sources: Mapping[FeedId, EntrySource],
    seconds: float,
    monotonic: Callable[[], float],
) -> tuple[list[StoredEntry], tuple[StoredEntry, ...]]:
    """The entries that match, and those for which there was no time. The index has
    found words and their places; other conditions are checked on the entries."""
    end = monotonic() + seconds
    heads: dict[FeedId, Feed] = {}
    chosen = []
    for number, stored in enumerate(entries, 1):
        source = sources.get(stored.feed_id)
        if source is None:
            continue
        if stored.feed_id not in heads:
            heads[stored.feed_id] = unpack_head(source.head)
        entry, head = unpack(stored.body, Entry), heads[stored.feed_id]
        subject = searched_subject(entry, head, source.feed, source.statistics)
        if query.matches(subject):
            chosen.append(stored)
        if monotonic() >= end:
            return chosen, entries[number:]
    return chosen, ()
