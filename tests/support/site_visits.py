"""Visits to sites of many documents, without sockets.

They are made by the walk and its commits over the model's storage, or by poller, parser
and SQLite together. Hosts end in ``.exempt``, so that requests are not paced.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime
from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import pytest
from msgspec.structs import replace

from hub.core.fetched import NOT_PARSED, Fetched, FollowedRedirect, ParseOutcome
from hub.core.news.decision import Decision
from hub.core.news.known_slices import UNNAMED
from hub.core.schedule.poll_period import PlanningContext, PollingRules
from hub.core.sites.site_bounds import SiteBounds
from hub.core.sites.site_formats import WALKS
from hub.ingest.committer import AppliedCommit
from hub.ingest.fetcher import FetchRequest
from hub.ingest.poller import Poller
from hub.ingest.visit_slots import SiteSlots
from hub.sites.site_reader import SiteDocuments, SiteReader
from protocols.feeds import ParseContext, parse
from protocols.model import Entry
from storage.contract import Storage
from storage.packing import unpack
from storage.records import (
    BEFORE_ALL,
    FeedId,
    FeedState,
    FetchCommit,
    FetchTarget,
    NewFeed,
    Polling,
    PollReason,
    Position,
    Record,
    RecordKind,
    StoredFeed,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import InlineParser
from tests.support.fetch_targets import an_answer
from tests.support.memory.storage import MemoryStorage
from tests.support.openfeeder import WELL_KNOWN, FeederSite
from tests.support.polled import a_limiter


class Killed(Exception):
    """The hub died at this point."""


@dataclass
class Reading:
    """A hub that follows one site. ``dies_after``: that many more commits, if any."""

    site: FeederSite = field(default_factory=FeederSite)
    bounds: SiteBounds = field(default_factory=SiteBounds)
    storage: MemoryStorage = field(default_factory=MemoryStorage)
    clock: ManualClock = field(default_factory=ManualClock)
    requests: list[str] = field(default_factory=list)
    dies_after: int | None = None
    front_body: bytes = b""  # in place of the site's
    shows_front: bool = False  # though it is known
    meanwhile: Callable[[], Awaitable[object]] | None = None  # before a request
    position: Position = BEFORE_ALL
    slots: SiteSlots = field(default_factory=lambda: SiteSlots(4))

    async def visit(self, *, seconds: float = 3_600.0) -> StoredFeed:
        """Make one visit, so many seconds later; return the feed as it is then."""
        self.clock.advance(seconds)
        self.site.tick(seconds)
        target = await self._target()
        front = self._fetch(self.site.front)
        understood = NOT_PARSED
        if target.feed.format != "openfeeder":
            context = ParseContext(url=front.url, content_type="", now=self.clock.now())
            understood = ParseOutcome(feed=parse(front.body, context))
        elif self.front_body:
            front = replace(front, body=self.front_body)
        elif not self.shows_front:
            front = replace(front, status=304, body=b"")
        decision = Decision(
            target=target,
            fetched=front,
            understood=understood,
            rules=PollingRules(),
            jitter=0.0,
            reason=PollReason.PLANNED,
            reader=UNNAMED,
            elsewhere=b"",
            planning_context=PlanningContext(price=75.0),
        )
        reader = SiteReader(
            store=self.storage.sites,
            clock=self.clock,
            walks=WALKS,
            fetch=self._answer,
            wait=self._wait,
            documents=SiteDocuments(
                storage=cast("Storage", self.storage), hub_url="https://hub.example/hub"
            ),
            parser=InlineParser(),
            bounds=self.bounds,
            slots=self.slots,
        )
        request = FetchRequest(url=front.url, user_agent="Fanfare")
        await reader.visit(decision, "openfeeder", request, self._apply)
        return (await self._target()).feed

    async def visit_until_read(self, most: int = 100) -> StoredFeed:
        """Make visits as long as each asks for another one soon."""
        for _ in range(most):
            feed = await self.visit(seconds=10)
            if (feed.next_fetch - self.clock.now()).total_seconds() > 10:
                return feed
        raise AssertionError(f"not read after {most} visits")

    async def told(self) -> list[tuple[str, str]]:
        """What the log has told since the last call, as (kind, path)."""
        records = await self.storage.log.records(after=self.position, limit=1_000)
        told = []
        for record in records:
            self.position = record.position
            if record.kind is RecordKind.BASELINE:
                continue
            ids = [each.entry_id for each in record.entries]
            told += [
                (record.kind.value, urlsplit(unpack(each.body, Entry).id).path)
                for each in await self.storage.log.entries(ids)
            ] or [(record.kind.value, "")]
        return told

    async def entries(self) -> dict[str, Entry]:
        """The present entries, by path and query."""
        feed = (await self._target()).feed
        found = {}
        for each in await self.storage.log.latest_entries(feed.id, 10_000):
            entry = unpack(each.body, Entry)
            parts = urlsplit(entry.id)
            found[parts.path + (f"?{parts.query}" if parts.query else "")] = entry
        return found

    async def _target(self) -> FetchTarget:
        url = f"{self.site.base}{WELL_KNOWN}"
        feed, _ = await self.storage.feeds.add(NewFeed(url=url), self.clock.now())
        (target,) = await self.storage.feeds.targets([feed.id])
        return target

    async def _apply(self, target: FetchTarget, commit: FetchCommit) -> AppliedCommit:
        if self.dies_after is not None:
            if not self.dies_after:
                raise Killed
            self.dies_after -= 1
        await self.storage.log.commit(commit)
        return AppliedCommit(commit, target.version)

    async def _wait(self, url: str) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()

    async def _answer(self, request: FetchRequest) -> Fetched:
        validators = request.validators
        headers = {"if-none-match": validators.etag} if validators else {}
        return self._fetch(request.url, headers)

    def _fetch(self, url: str, headers: dict[str, str] | None = None) -> Fetched:
        self.requests.append(url)
        parts = urlsplit(url)
        # Read as servers do: a "+" is a blank.
        query = dict(parse_qsl(parts.query))
        answer = self.site.answer(parts.path, query, headers or {})
        is_good = answer.status in (200, 304)
        return Fetched(
            at=self.clock.now(),
            started=self.clock.now(),
            url=url,
            status=answer.status,
            error="" if is_good else f"answered {answer.status}",
            body=answer.body if answer.status == 200 else b"",
            etag=answer.headers.get("ETag", ""),
            date=answer.headers.get("Date", format_datetime(self.clock.now())),
            retry_after=answer.headers.get("Retry-After", ""),
            cache_control=answer.headers.get("Cache-Control", ""),
        )


Page = bytes | int | str | Callable[[], "Page"]
"""A document, a status, a permanent redirect's URL, or a function that returns one."""


@dataclass
class Sites:
    """What is at each URL. While ``gate`` is closed all requests hang."""

    clock: ManualClock
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.asked.append(request.url)
        url, redirects, page = request.url, [], self._page(request.url)
        await self.gate.wait()
        while isinstance(page, str):
            redirects.append(FollowedRedirect(status=301, source=url, target=page))
            url, page = page, self._page(page)
        answer = an_answer(page) if isinstance(page, int) else an_answer(200, page)
        now = self.clock.now()
        return replace(answer, at=now, started=now, url=url, redirects=tuple(redirects))

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
        """Add a feed and fetch its first document, whose entries are not news.

        Unless ``is_polled``, it is fetched only when the test says so.
        """
        feed, _ = await self.storage.feeds.add(NewFeed(url=url), self.clock.now())
        await self.fetch(feed.id)
        if not is_polled:
            now = self.clock.now()
            await self.storage.feeds.set_state(feed.id, FeedState.PAUSED, now)
        return feed.id

    async def fetch(self, feed_id: FeedId) -> Polling:
        """Fetch an hour later; return the feed's state afterwards."""
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
        """The titles of new entries in all records."""
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
    """A hub whose poller runs; at the end of the block it is as good as killed."""
    storage = await open_chosen(database)
    sites = Sites(clock)
    poller = Poller(
        storage, sites, InlineParser(), a_limiter(clock), clock, PollingRules()
    )
    polling = asyncio.create_task(poller.run())
    try:
        yield PolledHub(storage, clock, sites, poller)
    finally:
        polling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await polling
        await storage.close()
