"""What the poller works with, in memory: storage, a network, a fetcher and a parser."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.ingest.fetcher import FetchRequest
from hub.limits.host_limiter import HostLimiter
from hub.runtime.clock import Clock
from protocols.feeds import ParseContext
from protocols.feeds.lenient import parse_leniently
from protocols.model import ParsedFeed
from protocols.protocol_errors import EmptyDocument
from protocols.urls import resource_url
from storage.errors import StorageError
from storage.records import (
    DueFeed,
    FeedId,
    FeedState,
    FetchCommit,
    FetchTarget,
    PlaceByPace,
    Position,
    Posting,
    StoredFeed,
)
from tests.support.clock import ManualClock
from tests.support.documents import a_document, entries_named
from tests.support.fetch_targets import a_feed, a_target, an_answer
from tests.support.memory.feeds import the_latest


class PolledStorage:
    """Feeds and a log in memory, as far as polling needs them; counts its reads."""

    def __init__(self) -> None:
        self.known: dict[FeedId, FetchTarget] = {}
        self.commits: list[FetchCommit] = []
        self.deferred: list[tuple[FeedId, datetime]] = []
        self.reads: Counter[str] = Counter()
        self.failure: StorageError | None = None
        self.commit_failure: StorageError | None = None

    @property
    def feeds(self) -> PolledStorage:
        return self

    @property
    def log(self) -> PolledStorage:
        return self

    @property
    def sites(self) -> PolledStorage:
        return self

    async def state(self, feed_id: FeedId) -> bytes:
        """Of a site: none was ever read."""
        return b""

    def put(self, feed: StoredFeed) -> None:
        self.known[feed.id] = a_target(feed)

    def feed(self, number: int) -> StoredFeed:
        return self.known[FeedId(number)].feed

    def change(self, number: int, **changes: object) -> None:
        target = self.known[FeedId(number)]
        self.known[FeedId(number)] = replace(
            target,
            feed=replace(target.feed, **changes),  # type: ignore[arg-type]
        )

    async def get(self, feed_id: FeedId) -> StoredFeed | None:
        target = self.known.get(feed_id)
        return target.feed if target else None

    async def find(self, topic: str) -> StoredFeed | None:
        resource = resource_url(topic)
        feeds = (target.feed for target in self.known.values())
        return next(
            (each for each in feeds if resource_url(each.url) == resource), None
        )

    async def due(
        self, now: datetime, *, after: PlaceByPace, limit: int
    ) -> list[DueFeed]:
        self._read("due")
        return the_latest(self._active(), now, after)[:limit]

    async def next_due(self) -> datetime | None:
        self._read("next_due")
        return min((feed.next_fetch for feed in self._active()), default=None)

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        self._read("spread")
        return 0

    async def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> None:
        self._read("defer")
        self.deferred += moves
        for feed_id, moment in moves:
            self.change(feed_id, next_fetch=moment)

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        self._read("targets")
        return [self.known[feed_id] for feed_id in ids if feed_id in self.known]

    async def postings(self, limit: int) -> list[Posting]:
        self._read("postings")
        postings = [each.feed.polling.posting for each in self.known.values()]
        return [each for each in postings if each.habits][:limit]

    async def commit(self, fetch: FetchCommit) -> tuple[Position, ...] | None:
        if self.commit_failure:
            raise self.commit_failure
        self._read("commit")
        self.commits.append(fetch)
        target = self.known[fetch.feed_id]
        feed = replace(
            target.feed,
            polling=fetch.polling,
            next_fetch=fetch.next_fetch,
            state=fetch.state or target.feed.state,
            format=fetch.format or target.feed.format,
            title=fetch.title or target.feed.title,
        )
        seen = fetch.seen if fetch.seen is not None else target.seen
        slices = fetch.slices if fetch.slices is not None else target.slices
        inventory = target.inventory if fetch.inventory is None else fetch.inventory
        self.known[fetch.feed_id] = replace(
            target, feed=feed, seen=seen, slices=slices, inventory=inventory
        )
        return ()

    async def check(self) -> None:
        self._read("check")
        if self.commit_failure:
            raise self.commit_failure

    def _active(self) -> list[StoredFeed]:
        return [
            target.feed
            for target in self.known.values()
            if target.feed.state is FeedState.ACTIVE
        ]

    def _read(self, what: str) -> None:
        if self.failure:
            raise self.failure
        self.reads[what] += 1


def a_limiter(clock: Clock) -> HostLimiter:
    """Hosts of ``.exempt`` are asked without waiting."""
    return HostLimiter(clock, lambda host: host.endswith(".exempt"))


@dataclass
class ScriptedFetcher:
    """Answers a 304 to validators and a small document otherwise, unless told else.

    While ``gate`` is closed all requests hang. Counts what runs at once.
    """

    clock: ManualClock
    answers: Callable[[FetchRequest], Fetched | None] = lambda request: None
    lands: dict[str, str] = field(default_factory=dict)  # URLs that are redirected
    requests: list[FetchRequest] = field(default_factory=list)
    started: list[tuple[str, float]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    running: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    most_of_a_host: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.requests]

    async def fetch(self, request: FetchRequest) -> Fetched:
        host = urlsplit(request.url).hostname or ""
        self.requests.append(request)
        self.started.append((host, self.clock.monotonic()))
        self.running[host] += 1
        self.most_at_once = max(self.most_at_once, self.running.total())
        self.most_of_a_host = max(self.most_of_a_host, self.running[host])
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
        finally:
            self.running[host] -= 1
        answer = self.answers(request) or an_answer(
            304 if request.validators else 200, b"a", etag='"1"'
        )
        now = self.clock.now()
        url = self.lands.get(request.url, request.url)
        return replace(answer, at=now, started=now, url=url)


class InlineParser:
    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        return parse_leniently(body, context)


class LineParser:
    """Reads a body's words as keys of entries; an empty body is no document."""

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        if not body:
            raise EmptyDocument
        return a_document(*entries_named(*body.decode().split()))


def feeds_of_hosts(count: int, suffix: str = "example") -> list[StoredFeed]:
    """One feed each of so many hosts, all due."""
    return [a_feed(n, f"https://h{n}.{suffix}/feed") for n in range(1, count + 1)]
