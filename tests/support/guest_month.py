"""Thirty days of polling: the real poller, network, decisions and database.

Only the clock is played, and the sites are: they answer on loopback, each under a name
of its own. The hub is stopped and started again; feeds are removed and return.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_network
from pathlib import Path

from hub.core.budget import Budget
from hub.core.cadence import PollingRules
from hub.core.fetched import Fetched
from hub.http import Answer, HttpNetwork, Limits, Purpose
from hub.http import Request as NetworkRequest
from hub.ingest.fetcher import Fetcher, FetcherIdentity, FetchRequest
from hub.ingest.poller import Poller, PollerOptions
from storage.interface import Storage
from storage.records import OPERATOR, FeedId, FeedState, NewFeed, NewSubscription
from storage.sqlite import open_database
from tests.support.clock import ManualClock
from tests.support.guest_population import SITES
from tests.support.guest_scores import Request, Score, score, score_host
from tests.support.guest_sites import END, START, Site
from tests.support.http_server import ServerAnswer, ServerRequest, WebServer
from tests.support.polled_site import DocumentParser

LOOPBACK = ip_network("127.0.0.0/8")
IDENTITY = FetcherIdentity(
    product="Fanfare/1.0", url="https://hub.test", contact="mailto:ops@hub.test"
)
_LOOKS, _CAREFUL_LOOKS = 3, 20
"""Looks at a hub that does nothing, after which it waits for its clock; more where it
may be about to ask: time that passes before a request is out makes it look late."""


class PacedNetwork:
    """Loopback may be reached here, but is paced as the internet is."""

    def __init__(self, network: HttpNetwork) -> None:
        self._network = network

    async def send(self, request: NetworkRequest) -> Answer:
        return await self._network.send(request)

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return False


class WatchedFetcher:
    """Knows whether a fetch is under way, during which no time may pass."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self.under_way = 0
        self.finished = 0

    async def fetch(self, request: FetchRequest) -> Fetched:
        self.under_way += 1
        try:
            return await self._fetcher.fetch(request)
        finally:
            self.under_way -= 1
            self.finished += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningHub:
    storage: Storage
    poller: Poller
    fetcher: WatchedFetcher
    clock: ManualClock

    async def poll_until(self, end: datetime) -> None:
        """From due feed to due feed, and by seconds where a host's pace holds one."""
        while self.clock.now() < end:
            await self._settle(_LOOKS)
            due = await self.storage.feeds.next_due() or end
            soon = self.clock.now() + timedelta(seconds=1)
            if due < soon:
                await self._settle(_CAREFUL_LOOKS)
            until = min(max(due, soon), end)
            self.clock.advance((until - self.clock.now()).total_seconds())
            self.poller.wake()

    async def _settle(self, looks: int) -> None:
        """Until nothing happens any more: the hub waits for the clock."""
        quiet = 0
        while quiet < looks:
            finished = self.fetcher.finished
            await asyncio.sleep(0.001)
            is_busy = self.fetcher.under_way or self.fetcher.finished > finished
            quiet = 0 if is_busy else quiet + 1


class Month:
    """All sites, what was asked of them, and the hub that asks."""

    def __init__(self, database: Path, budget: Budget) -> None:
        self.requests: list[Request] = []
        self._budget = budget
        self._database = database
        self._clock = ManualClock()
        self._sites = {(site.host, site.path): site for site in SITES}
        self._hosts = {site.host: site for site in reversed(SITES)}
        self._subscribers: Counter[str] = Counter()
        self._feeds: dict[str, FeedId] = {}
        self._port = 0

    async def pass_by(self) -> None:
        """The days one after the other, and what happens on them.

        At each event the hub starts anew on the database it left.
        """
        events: Sequence[tuple[float, Callable[[Storage], Awaitable[None]]]] = (
            (0.0, self._add_all),
            (3.2, self._subscribe),
            (9.0, self._remove),
            (12.7, self._add_all),
            (16.1, self._subscribe),
            (22.85, self._add_all),
        )
        days = [day for day, _ in events[1:]]
        ends = [*(min(END, START + timedelta(days=day)) for day in days), END]
        async with WebServer(self._answer) as server:
            self._port = int(server.url.rpartition(":")[2])
            for (_, happen), end in zip(events, ends, strict=True):
                async with self._running_hub() as hub:
                    await happen(hub.storage)
                    hub.poller.wake()
                    await hub.poll_until(end)

    def score(self, site: Site) -> Score:
        return score(site, [each for each in self.requests if each.site is site])

    def score_host(self, host: str) -> Score:
        return score_host(each for each in self.requests if each.site.host == host)

    async def _add_all(self, storage: Storage) -> None:
        """Each feed; that it is known already, or was once, is no reason to ask."""
        for site in SITES:
            url = self._url(site)
            feed, _ = await storage.feeds.add(NewFeed(url=url), self._clock.now())
            self._feeds[url] = feed.id

    async def _subscribe(self, storage: Storage) -> None:
        """One more subscriber to every feed of a site with validators."""
        for site in SITES[:10]:
            url = self._url(site)
            self._subscribers[url] += 1
            number = self._subscribers[url]
            await storage.subscriptions.add(
                NewSubscription(
                    account=OPERATOR,
                    topic=url,
                    feed_id=self._feeds[url],
                    callback=f"https://callback.test/{number}",
                ),
                self._clock.now(),
            )

    async def _remove(self, storage: Storage) -> None:
        for site in SITES[1::3]:
            feed_id, now = self._feeds[self._url(site)], self._clock.now()
            await storage.feeds.set_state(feed_id, FeedState.REMOVED, now)

    def _url(self, site: Site) -> str:
        return f"http://{site.host}.test:{self._port}{site.target}"

    async def _answer(self, request: ServerRequest) -> ServerAnswer | None:
        host = request.headers["host"].partition(".")[0]
        site = self._sites.get((host, request.path)) or self._hosts[host]
        now = self._clock.now()
        answer = site.answer(request, now)
        self.requests.append(
            Request(
                at=now,
                site=site,
                request=request,
                answer=answer,
                subscribers=self._subscribers[self._url(site)],
            )
        )
        return answer if answer.status else None

    @asynccontextmanager
    async def _running_hub(self) -> AsyncIterator[RunningHub]:
        async with HttpNetwork(allow_topics=[LOOPBACK], lookup=_loopback) as guarded:
            network = PacedNetwork(guarded)
            storage = await open_database(self._database)
            fetcher = WatchedFetcher(Fetcher(network, self._clock, Limits()))
            poller = Poller(
                storage,
                fetcher,
                DocumentParser(),
                network,
                self._clock,
                PollingRules(),
                PollerOptions(identity=IDENTITY, budget=self._budget),
            )
            polling = asyncio.create_task(poller.run())
            try:
                yield RunningHub(
                    storage=storage,
                    poller=poller,
                    fetcher=fetcher,
                    clock=self._clock,
                )
            finally:
                polling.cancel()
                await asyncio.gather(polling, return_exceptions=True)
                await storage.close()


async def _loopback(host: str) -> Sequence[str]:
    return ["127.0.0.1"]
