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
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Final

from hub.core.news.search_terms import searched_subject, term_of
from hub.limits.fair_queue import FairThread, WaitingLineFull
from hub.services.entry_notifications import CollectedEntries
from hub.services.service_errors import SearchOff, TooManyWaiting
from hub.services.token_authentication import Principal
from protocols.model import Entry, Feed
from protocols.track import Query, parse_query
from storage.contract import Storage
from storage.packing import unpack, unpack_head, unpacked_size
from storage.records import (
    EntrySource,
    FeedId,
    Matches,
    Position,
    Record,
    RecordKind,
    StoredEntry,
)

PAGE = 100
MOST_LOOKED_AT = 2_000
"""Entries with the words of a query that are examined for one page: they may not match,
or not be visible."""
MOST_PAGES = 200
"""Pages of the index that are examined for one page, including those with entries that
are not visible."""
MOST_BYTES: Final = 4 * 1024 * 1024
"""Unpacked bytes of the entries of a page; the one that exceeds them ends it."""
SECONDS: Final = 5.0
"""Seconds for one page, its waiting included; then it has what was found."""
TURN_SECONDS: Final = 0.02
"""Seconds until another account has its turn; the entry being matched is finished."""
MOST_WAITING: Final = 4
"""Searches of one account that may wait; any more are refused."""

COUNTED_SPAN: Final = timedelta(days=7)
"""Matches that were news in this time tell how many come a day."""
SHORTEST_SPAN: Final = timedelta(seconds=1)
COUNTED_RECORDS: Final = 5_000
"""The latest records of that time that are read, of each feed equally many."""
COUNTED_OF_FEED: Final = 1_000
"""Of them those of one feed, at most."""

ABOVE_ALL: Final = 2**53 - 1
"""A place above those of all entries, whatever their dates; JSON keeps it exactly."""

_BUILDING: Final = "; the index is being built, so older ones may be missing"

Sources = dict[FeedId, EntrySource]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage(CollectedEntries):
    """A page of what a search finds. Its ``line`` says how many, and how far was
    looked. ``next``: where the next page begins, None if all was looked at.

    ``looked_at``: entries with the words of the query that were examined, and
    ``reached`` the date of the last of them, None if there was none.
    """

    next: int | None
    looked_at: int
    reached: datetime | None


@dataclass(frozen=True, slots=True)
class _Placed:
    place: int
    date: datetime
    entry: StoredEntry


@dataclass(slots=True)
class _Look:
    """How far a search is. ``place``: below which it goes on, None if it ``is_over``:
    all that has its words was looked at."""

    place: int | None
    found: list[_Placed] = field(default_factory=list)
    sources: Sources = field(default_factory=dict)
    looked_at: int = 0
    reached: datetime | None = None
    is_over: bool = False

    def pass_by(self, each: _Placed) -> None:
        self.place, self.reached = each.place, each.date
        self.looked_at += 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchRate:
    """How many matches come a day, by the news of the last week if ``is_of_week``, else
    by the latest news among the matches that are known."""

    per_day: float
    is_of_week: bool


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
        most: int = MOST_LOOKED_AT,
    ) -> None:
        """``days``: entries of the last so many days are in the index; 0: there is no
        index. ``tells_unlisted``: subscribers also find entries that are kept out of
        listings. ``seconds`` and ``most``: for one page; how many are examined."""
        self._storage = storage
        self._public_url = public_url
        self._days = days
        self._tells_unlisted = tells_unlisted
        self._monotonic = monotonic
        self._seconds = seconds
        self._most = most
        self._thread = FairThread("search", waiting=MOST_WAITING)

    async def find(
        self, principal: Principal, query: str, count: int, below: int | None = None
    ) -> SearchPage:
        """The newest entries that match and that the account may see; or those from
        ``below`` on, the `next` of the page before.

        A page may be short, or empty, without being the last: what is looked at for
        one is bounded. Raises `SearchOff`; `InvalidValue` (a `QueryError` that says
        where, and what was expected); and `TooManyWaiting` while the account has as
        many searches under way as it may.
        """
        if not self._days:
            raise SearchOff
        read = parse_query(query)
        is_first = below is None or below >= ABOVE_ALL
        look = _Look(ABOVE_ALL if below is None else below)
        index = await self.report()
        remark = "" if index.state is IndexState.COMPLETE else _BUILDING
        try:
            async with asyncio.timeout(self._seconds):
                await self._look(principal, read, count + 1, look)
        except TimeoutError:
            remark += f"; stopped after {self._seconds:g} s"
        except WaitingLineFull:
            raise TooManyWaiting(
                f"{MOST_WAITING} searches of this account are waiting already"
            ) from None
        found = look.found[:count]
        has_more = len(look.found) > count
        named = dict.fromkeys(each.entry.feed_id for each in found)
        line = _line(look, len(found), has_more=has_more, is_first=is_first)
        return SearchPage(
            topic=f"{self._public_url}/?hub.mode=search",
            hub=f"{self._public_url}/hub",
            entries=[each.entry for each in found],
            sources=[look.sources[feed_id] for feed_id in named],
            is_merged=True,
            title=f"Search: {read}",
            line=f"{line}{remark}",
            topics={},
            next=found[-1].place if has_more else look.place,
            looked_at=look.looked_at,
            reached=look.reached,
        )

    async def rate(self, page: SearchPage, now: datetime) -> MatchRate | None:
        """How many entries like those of a first page come a day, by when the log says
        that they were news, whatever their dates say. What a feed had at its first
        fetch is none.

        None if it is not known: the search found nothing so far, or the records that
        are read of the last week tell of none of its entries, and others were not read.
        """
        begin, has_others = now - COUNTED_SPAN, page.next is not None
        seen, since = await self._seen(page.entries, begin)
        if not seen and (since > begin or (has_others and not page.entries)):
            return None
        is_of_week = since == begin
        if has_others and seen and len(page.entries) == len(seen):
            since, is_of_week = (
                min(each.at for each in seen),
                False,
            )  # others may be, too
        news = sum(each.kind is RecordKind.ENTRIES for each in seen)
        days = max(now - since, SHORTEST_SPAN) / timedelta(days=1)
        return MatchRate(per_day=news / days, is_of_week=is_of_week)

    async def _seen(
        self, entries: Sequence[StoredEntry], since: datetime
    ) -> tuple[list[Record], datetime]:
        """For each of the entries that came since then, the record that tells of it;
        and the time from which on all records of their feeds were read."""
        feeds = dict.fromkeys(each.feed_id for each in entries)
        ids = {each.id for each in entries}
        most = min(COUNTED_OF_FEED, COUNTED_RECORDS // max(len(feeds), 1))
        seen = list[Record]()
        for feed_id in feeds:
            records, since = await self._latest_records(feed_id, since, most)
            for record in records:
                new = [each for each in record.entries if each.revision == 1]
                seen += [record for each in new if each.entry_id in ids]
        return [each for each in seen if each.at >= since], since

    async def _latest_records(
        self, feed_id: FeedId, since: datetime, most: int
    ) -> tuple[list[Record], datetime]:
        """The feed's records since then, or the ``most`` latest of them, and the time
        from which on these are all."""
        log, found = self._storage.log, list[Record]()
        upto = (await log.end()).position
        while len(found) < most:
            limit = min(PAGE, most - len(found))
            page = await log.latest_records(upto=upto, limit=limit, feed_id=feed_id)
            found += [each for each in page if each.at >= since]
            if len(page) < limit or page[-1].at < since:
                return found, since
            upto = Position(page[-1].position - 1)
        return found, found[-1].at

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
        self, principal: Principal, query: Query, count: int, look: _Look
    ) -> None:
        """Look on until there are enough entries, or all were examined."""
        room = MOST_BYTES
        for _ in range(MOST_PAGES):
            page = await self._page(principal, query, look.place)
            await self._learn(look.sources, page.entries)
            waiting = tuple(map(_Placed, page.places, page.dates, page.entries))
            while waiting:
                judging = partial(_judge, query, waiting, look.sources, self._monotonic)
                verdicts = await self._thread.run(principal.account.id, judging)
                for each, is_match in zip(waiting, verdicts, strict=False):
                    look.pass_by(each)
                    if not is_match:
                        continue
                    look.found.append(each)
                    room -= unpacked_size(each.entry.body)
                    if len(look.found) >= count or room <= 0:
                        return
                waiting = waiting[len(verdicts) :]
            look.place, look.is_over = page.next, page.next is None
            if look.is_over or look.looked_at >= self._most:
                return

    async def _page(
        self, principal: Principal, query: Query, below: int | None
    ) -> Matches:
        return await self._storage.search.find(
            term_of(query),
            viewer=principal.viewer,
            limit=min(PAGE, self._most),
            below=below,
            listed_only=not self._tells_unlisted,
        )

    async def _learn(self, sources: Sources, entries: Sequence[StoredEntry]) -> None:
        """Add the sources of entries that are not known yet."""
        unknown = {each.feed_id for each in entries} - sources.keys()
        for source in await self._storage.entries.sources(sorted(unknown)):
            sources[source.feed.id] = source


def _line(look: _Look, count: int, *, has_more: bool, is_first: bool) -> str:
    """How many were found, and how far was looked."""
    said = "1 entry" if count == 1 else f"{count} entries"
    if has_more:
        which = "newest" if is_first else "next"
        return f"the {which} {said} of more that were found"
    if not is_first:
        said = said.replace(" ", " more ") if count else "no more entries"
    if look.is_over:
        return f"{said} found"
    among = ""
    if look.reached is not None:
        since = f"{look.reached:%Y-%m-%d %H:%M:%SZ}"
        among = f" among {look.looked_at:,} with these words, back to {since}"
    return f"{said} found{among}; older ones may match"


def _judge(
    query: Query,
    entries: tuple[_Placed, ...],
    sources: Mapping[FeedId, EntrySource],
    monotonic: Callable[[], float],
) -> list[bool]:
    """Whether each of the entries matches, as far as there was time for them. The index
    has found words and their places; other conditions are checked on the entries."""
    end = monotonic() + TURN_SECONDS
    heads: dict[FeedId, Feed] = {}
    verdicts = []
    for each in entries:
        stored, source = each.entry, sources.get(each.entry.feed_id)
        is_match = False
        if source is not None:
            if stored.feed_id not in heads:
                heads[stored.feed_id] = unpack_head(source.head)
            entry, head = unpack(stored.body, Entry), heads[stored.feed_id]
            subject = searched_subject(entry, head, source.feed, source.statistics)
            is_match = query.matches(subject)
        verdicts.append(is_match)
        if monotonic() >= end:
            break
    return verdicts
