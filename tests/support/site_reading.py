"""Visits to sites without sockets: the walk, its commits, and the model's storage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from urllib.parse import parse_qsl, urlsplit

from hub.core.cadence import PollingRules
from hub.core.decision import Decision
from hub.core.fetched import NOT_PARSED, Fetched, Occasion, Understood
from hub.core.outlook import Outlook
from hub.core.remembered import UNNAMED
from hub.core.sites.bounds import SiteBounds
from hub.core.sites.walks import WALKS
from hub.ingest.fetcher import FetchRequest
from hub.ingest.visit_slots import SiteSlots
from hub.sites.site_reader import SiteDocuments, SiteReader
from protocols.feeds import ParseContext, parse
from protocols.model import Entry
from storage.packing import unpack
from storage.records import (
    BEFORE_ALL,
    FetchCommit,
    FetchTarget,
    NewFeed,
    Position,
    RecordKind,
    StoredFeed,
)
from tests.support.clock import ManualClock
from tests.support.memory.storage import MemoryStorage
from tests.support.open_hub import InlineParser
from tests.support.openfeeder import WELL_KNOWN, FeederSite


class Killed(Exception):
    """The hub has died here."""


@dataclass
class Reading:
    """A hub that follows one site. ``dies_after`` so many more commits, if any."""

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
    places: SiteSlots = field(default_factory=lambda: SiteSlots(4))

    async def visit(self, *, seconds: float = 3_600.0) -> StoredFeed:
        """One visit, so much later; the feed as it is afterwards."""
        self.clock.advance(seconds)
        self.site.tick(seconds)
        target = await self._target()
        front = self._fetch(f"{self.site.base}{self.site.ways.discovery}")
        understood = NOT_PARSED
        if target.feed.format != "openfeeder":
            context = ParseContext(url=front.url, content_type="", now=self.clock.now())
            understood = Understood(feed=parse(front.body, context))
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
            occasion=Occasion.RING,
            reader=UNNAMED,
            elsewhere=b"",
            outlook=Outlook(price=75.0),
        )
        reader = SiteReader(
            store=self.storage.sites,
            clock=self.clock,
            walks=WALKS,
            fetch=self._answer,
            wait=self._wait,
            documents=SiteDocuments(
                storage=self.storage, hub_url="https://hub.example/hub"
            ),
            parser=InlineParser(),
            bounds=self.bounds,
            places=self.places,
        )
        request = FetchRequest(url=front.url, user_agent="Fanfare")
        await reader.visit(decision, "openfeeder", request, self._apply)
        return (await self._target()).feed

    async def visit_until_read(self, most: int = 100) -> StoredFeed:
        """Visits as long as each asks for another soon."""
        for _ in range(most):
            feed = await self.visit(seconds=10)
            if (feed.next_fetch - self.clock.now()).total_seconds() > 10:
                return feed
        raise AssertionError(f"not read after {most} visits")

    async def told(self) -> list[tuple[str, str]]:
        """What the log tells of since the last time, as (kind, path)."""
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
        """That are there now, by path and query."""
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

    async def _apply(self, target: FetchTarget, commit: FetchCommit) -> FetchCommit:
        if self.dies_after is not None:
            if not self.dies_after:
                raise Killed
            self.dies_after -= 1
        await self.storage.log.commit(commit)
        return commit

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
        # As servers do it: a "+" is a blank.
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
