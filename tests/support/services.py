"""A whole hub, put together as for serving, with a network and a poller of tests.

These do as a test says; nothing of the hub runs by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

from msgspec.structs import replace
from starlette import routing
from starlette.applications import Starlette

from hub.composition import BuiltHub, build_hub
from hub.core.schedule.poll_period import Plan, PollingRules, plan
from hub.ingest.poller import Poller
from hub.runtime.metrics import Metrics
from hub.services import Services, TrackTopics
from hub.settings import Settings
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import (
    FeedHealth,
    FeedId,
    FeedState,
    FetchCommit,
    Polling,
    PollReason,
    StoredFeed,
)
from tests.support.admin import TOKEN
from tests.support.chosen_engine import location_of, open_chosen
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import InlineParser
from tests.support.fake_network import FakeNetwork, agree, answered

routing.compile_path = cache(routing.compile_path)
"""Once for all hubs of a run: else it would be a fifth of what a test costs."""

START = datetime(2026, 11, 21, tzinfo=UTC)
PUBLIC_URL = "http://hub.example"
HUB_URL = f"{PUBLIC_URL}/hub"


@dataclass
class FakePoller:
    """A poller. Each fetch commits ``outcome`` of the polling state, or hangs."""

    storage: Storage
    clock: ManualClock
    outcome: Callable[[Polling], Polling] = lambda polling: replace(
        polling, code=200, entry_count=3, period=900.0
    )
    condition: FeedHealth | None = None  # as `FetchCommit` has it
    title: str = "A feed"
    state: FeedState | None = None  # the feed's state once it was fetched
    format: str = "atom"
    hangs: bool = False
    removed: FeedId | None = None  # is not there any more when it is to be fetched
    under_way: set[FeedId] = field(default_factory=set)
    most_at_once: int = 0
    fetched: list[FeedId] = field(default_factory=list)
    fetch_reasons: list[PollReason] = field(default_factory=list)  # of these
    asked: list[FeedId] = field(default_factory=list)  # pinged, never fetched
    reasons: list[PollReason] = field(default_factory=list)
    woken: int = 0

    async def fetch_now(
        self,
        feed_id: FeedId,
        reason: PollReason = PollReason.ASKED_FOR,
        *,
        only_first: bool = False,
    ) -> StoredFeed:
        self.fetch_reasons.append(reason)
        self.fetched.append(feed_id)
        self.under_way.add(feed_id)
        self.most_at_once = max(self.most_at_once, len(self.under_way))
        try:
            return await self._fetch(feed_id)
        finally:
            self.under_way.discard(feed_id)

    async def _fetch(self, feed_id: FeedId) -> StoredFeed:
        if self.hangs:
            await asyncio.Event().wait()
        if feed_id == self.removed:
            raise NotFound("feed", feed_id)
        feed = await self.storage.feeds.get(feed_id)
        assert feed is not None
        now = self.clock.now()
        polling = self.outcome(replace(feed.polling, last_fetch=now))
        await self.storage.log.commit(
            FetchCommit(
                feed_id=feed_id,
                at=now,
                next_fetch=now,
                polling=polling,
                state=self.state,
                title=self.title,
                condition=self.condition,
                format=self.format,
            )
        )
        found = await self.storage.feeds.get(feed_id)
        assert found is not None
        return found

    def explain(self, feed: StoredFeed, *, is_pushed: bool = False) -> Plan:
        now = self.clock.now()
        return plan(feed.polling, 1, PollingRules(), now, is_pushed=is_pushed)

    def ping(self, feed: StoredFeed, reason: PollReason) -> bool:
        self.asked.append(feed.id)
        self.reasons.append(reason)
        return True

    def is_pinged(self, feed_id: FeedId) -> bool:
        return feed_id in self.asked

    @property
    def pinged(self) -> int:
        return len(self.asked)

    def wake(self) -> None:
        self.woken += 1

    async def run(self) -> None:
        """Do nothing: fetches happen only when they are asked for."""
        await asyncio.Event().wait()


PAGE = "https://example.org/page"
"""A page that names two feeds."""
LIST = "https://example.org/a.opml"
"""A list with one feed."""
_ALTERNATE = '<link rel="alternate" type="application/atom+xml" href="{}" title="{}">'
_PAGES = {
    PAGE: _ALTERNATE.format("https://a.example/", "A")
    + _ALTERNATE.format("https://b.example/", "B"),
    LIST: '<opml><body><outline text="A" xmlUrl="https://a.example/feed"/></body></opml>',
}
ADDRESSES = {
    "example.org": "93.184.215.14",
    "you.example": "93.184.215.15",
    "inside.example": "10.0.0.9",
}
"""The only names that can be resolved."""


async def look_up(host: str) -> list[str]:
    if host not in ADDRESSES:
        raise OSError("no such name")
    return [ADDRESSES[host]]


def a_network() -> FakeNetwork:
    """A network of callbacks that agree to everything, and few pages; without
    pacing."""
    network = FakeNetwork(agree, exempts=lambda host: True)
    network.at = {url: answered(body=page.encode()) for url, page in _PAGES.items()}
    return network


@dataclass
class Hub:
    """Everything that a test of the services or of the web may need."""

    built: BuiltHub
    storage: Storage
    poller: FakePoller
    network: FakeNetwork
    clock: ManualClock
    directory: Path
    metrics: Metrics

    @property
    def services(self) -> Services:
        return self.built.services

    @property
    def tracks(self) -> TrackTopics:
        return TrackTopics(self.storage.tracking, self.clock, PUBLIC_URL)

    @property
    def application(self) -> Starlette:
        return cast("Starlette", self.built.server.config.app)


@asynccontextmanager
async def open_hub(
    directory: Path, *, public_url: str = PUBLIC_URL, **settings: Any
) -> AsyncIterator[Hub]:
    """Open a hub without request limits, over a new database or the one that exists."""
    clock, metrics, network = ManualClock(), Metrics(), a_network()
    async with AsyncExitStack() as stack:
        storage = await open_chosen(directory / "hub.db")
        stack.push_async_callback(storage.close)
        poller = FakePoller(storage, clock)
        given = {"upstream": "on", "rate_limit_token": 0, "rate_limit_address": 0}
        built = await build_hub(
            Settings(
                database=location_of(directory / "hub.db"),
                state_dir=str(directory),
                public_url=public_url,
                **{**given, **settings},
            ),
            storage,
            TOKEN,
            public_url,
            stack,
            clock=clock,
            random=Random(1),
            network=network,
            parser=InlineParser(),
            lookup=look_up,
            metrics=metrics,
            poller=cast("Poller", poller),
            sleep=clock.sleep,
        )
        yield Hub(built, storage, poller, network, clock, directory, metrics)
