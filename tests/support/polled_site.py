"""Poller, parser rules and SQLite together over made-up sites: fetches as they happen.

Hosts end in ``.exempt``, so that nobody waits for their pace.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hub.core.cadence import PollingRules
from hub.core.fetched import Fetched, Hop
from hub.ingest.fetcher import FetchRequest
from hub.ingest.poller import Poller
from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently
from protocols.model import Entry, ParsedFeed
from storage.interface import Storage
from storage.packing import unpack
from storage.records import (
    FeedId,
    FeedState,
    NewFeed,
    Polling,
    Position,
    Record,
    RecordKind,
)
from storage.sqlite import open_database
from tests.support.clock import ManualClock
from tests.support.fetch_targets import an_answer
from tests.support.polled import ExemptNetwork

Page = bytes | int | str | Callable[[], "Page"]
"""A document, a status, the URL of a permanent redirect, or what decides on one."""


class DocumentParser:
    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        return parse_leniently(body, context)


@dataclass
class Sites:
    """What each URL answers. While ``gate`` is closed all requests hang."""

    clock: ManualClock
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.asked.append(request.url)
        url, hops, page = request.url, [], self._page(request.url)
        await self.gate.wait()
        while isinstance(page, str):
            hops.append(Hop(status=301, source=url, target=page))
            url, page = page, self._page(page)
        answer = an_answer(page) if isinstance(page, int) else an_answer(200, page)
        now = self.clock.now()
        return replace(answer, at=now, started=now, url=url, hops=tuple(hops))

    def _page(self, url: str) -> bytes | int | str:
        page = self.pages[url]
        while callable(page):
            page = page()
        return page


@dataclass
class PolledHub:
    storage: Storage
    clock: ManualClock
    sites: Sites
    poller: Poller

    async def add(self, url: str, *, is_polled: bool = False) -> FeedId:
        """A feed whose first document was fetched: its entries are no news.

        Unless ``is_polled`` it is fetched when the test says so, and not else.
        """
        feed, _ = await self.storage.feeds.add(NewFeed(url=url), self.clock.now())
        await self.fetch(feed.id)
        if not is_polled:
            now = self.clock.now()
            await self.storage.feeds.set_state(feed.id, FeedState.PAUSED, now)
        return feed.id

    async def fetch(self, feed_id: FeedId) -> Polling:
        """An hour later; the feed's state afterwards."""
        self.clock.advance(3_600)
        return (await self.poller.fetch_now(feed_id)).polling

    async def records(self, feed_id: FeedId) -> list[Record]:
        records = await self.storage.log.records(
            after=Position(0), limit=1_000, feed_id=feed_id
        )
        return [each for each in records if each.kind is not RecordKind.BASELINE]

    async def kinds(self, feed_id: FeedId) -> list[str]:
        return [record.kind.value for record in await self.records(feed_id)]

    async def told(self, feed_id: FeedId) -> list[str]:
        """Titles of new entries, of every record."""
        refs = [
            ref.entry_id
            for record in await self.records(feed_id)
            if record.kind is RecordKind.ENTRIES
            for ref in record.entries
        ]
        stored = await self.storage.log.entries(refs)
        return [unpack(each.body, Entry).title for each in stored]


@asynccontextmanager
async def polled_hub(database: Path, clock: ManualClock) -> AsyncIterator[PolledHub]:
    """Its poller runs; on leaving, the process is as good as killed."""
    storage = await open_database(database)
    sites = Sites(clock)
    poller = Poller(
        storage, sites, DocumentParser(), ExemptNetwork(), clock, PollingRules()
    )
    polling = asyncio.create_task(poller.run())
    try:
        yield PolledHub(storage, clock, sites, poller)
    finally:
        polling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await polling
        await storage.close()
