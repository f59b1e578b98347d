"""The poller: asks every feed when it is due, politely and with bounded means.

Due feeds are a query; a bounded wheel holds the next of them by host, and a fixed
number of workers visit them. Nothing here grows with the number of feeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta

import structlog

from hub.clock import Clock
from hub.core.budget import Budget
from hub.core.cadence import Plan, PollingRules, explain
from hub.core.fetched import Occasion
from hub.core.outlook import Outlook
from hub.core.sites.bounds import SiteBounds
from hub.core.sites.walks import WALKS
from hub.metrics import Metrics
from hub.net import Network
from hub.parsing import Parser
from hub.parsing.sanitizing import Sanitizer
from hub.polling.accounts import Accounts
from hub.polling.committer import Committer
from hub.polling.common_habits import CommonHabits
from hub.polling.documents import DocumentReader
from hub.polling.fetcher import FeedFetcher
from hub.polling.identity import Identity
from hub.polling.languages import Detector
from hub.polling.outage import Outage
from hub.polling.schedule import Schedule
from hub.polling.site_documents import SiteDocuments
from hub.polling.site_places import SitePlaces
from hub.polling.sites import SiteReader
from hub.polling.tracker import Tracker
from hub.polling.visitor import Visit, Visitor
from hub.polling.wheel import Due
from protocols.scp.reading.checksums import ChecksumRule
from storage.errors import NotFound, StorageError
from storage.interface import Storage
from storage.records import FeedId, FeedState, FetchTarget, StoredFeed

STORAGE_PAUSE = 300.0
"""Seconds before a feed is asked again whose fetch could not be stored."""
FAULT_PAUSE = 3_600.0
"""Seconds before a feed is asked again whose visit failed by the hub's own fault."""
UNSAID_PATIENCE = timedelta(hours=1)
"""How long a host is left alone after a 429 that does not say."""
MOST_ASKED = 256
"""Callers that may wait for `Poller.fetch_now` at once; others queue up."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerOptions:
    concurrency: int = 64  # feeds visited at the same time
    identity: Identity = field(default_factory=Identity)
    hub_url: str = ""  # that documents of sites name
    budget: Budget = field(default_factory=Budget)
    metrics: Metrics = field(default_factory=Metrics)
    sanitizer: Sanitizer | None = None  # of what is stored; None: stored as it came
    tracker: Tracker | None = None  # None: there are no track queries
    detector: Detector | None = None  # of languages; None: none is guessed
    site_bounds: SiteBounds = field(default_factory=SiteBounds)
    scp_checksum: ChecksumRule = ChecksumRule.LENIENT


class Poller:
    """Visits feeds when they are due, or when asked to.

    While storage cannot be written nothing is fetched: a full disk makes no storm.
    """

    def __init__(
        self,
        storage: Storage,
        fetcher: FeedFetcher,
        parser: Parser,
        network: Network,
        clock: Clock,
        rules: PollingRules,
        options: PollerOptions | None = None,
    ) -> None:
        options = options or PollerOptions()
        self._storage = storage
        self._clock = clock
        self._rules = rules
        self._concurrency = options.concurrency
        self._site_places = SitePlaces(options.concurrency)
        self._accounts = Accounts(options.budget, rules.patience)
        self._habits = CommonHabits(storage.feeds, clock)
        self._visitor = Visitor(
            feeds=storage.feeds,
            fetcher=fetcher,
            reader=DocumentReader(parser=parser, clock=clock, metrics=options.metrics),
            committer=Committer(
                log=storage.log,
                clock=clock,
                metrics=options.metrics,
                sanitizer=options.sanitizer,
                tracker=options.tracker,
                detector=options.detector,
            ),
            rules=rules,
            identity=options.identity,
            outlook=self._accounts.outlook,
            sites=SiteReader(
                store=storage.sites,
                clock=clock,
                walks=WALKS,
                fetch=fetcher.fetch,
                wait=self._wait_for_host,
                documents=SiteDocuments(storage=storage, hub_url=options.hub_url),
                parser=parser,
                bounds=options.site_bounds,
                checksum=options.scp_checksum,
            ),
        )
        self._schedule = Schedule(storage.feeds, network, clock, options.budget)
        self._jobs: asyncio.Queue[tuple[Due, FetchTarget]] = asyncio.Queue(
            options.concurrency
        )
        self._asked: dict[FeedId, asyncio.Future[StorageError | None]] = {}
        self._again: dict[FeedId, StoredFeed] = {}  # pinged while under way
        self._askers = asyncio.Semaphore(MOST_ASKED)
        self._awake = asyncio.Event()
        self._outage = Outage(storage)

    async def run(self) -> None:
        """Poll until cancelled; what is under way then never happened."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._plan_visits(), name="poller")
                for number in range(self._concurrency):
                    group.create_task(self._work(), name=f"poller-{number}")
        finally:
            for feed_id in list(self._asked):
                self._answer(feed_id, None)

    def wake(self) -> None:
        """A feed was added or resumed: look at once at what is due."""
        self._schedule.look_again()
        self._awake.set()

    def explain(self, feed: StoredFeed) -> Plan:
        """The period as it was planned after the last fetch, term by term."""
        polling = feed.polling
        planned_at = polling.last_fetch or self._clock.now()
        price = polling.price or self._rules.patience
        outlook = Outlook(price=price, prior=self._habits.prior)
        return explain(polling, polling.subscribers, self._rules, planned_at, outlook)

    def ping(self, feed: StoredFeed) -> bool:
        """Fetch a feed soon, and once more if it is being fetched; nobody waits.

        False, and nothing is done, if its server asked for patience.
        """
        if not self._may_be_asked(feed):
            return False
        if self._schedule.is_under_way(feed.id):
            self._again[feed.id] = feed
        else:
            self._ask(feed)
        return True

    def is_pinged(self, feed_id: FeedId) -> bool:
        """Whether a fetch that was asked for is yet to begin."""
        if feed_id in self._again:
            return True
        return feed_id in self._asked and not self._schedule.is_under_way(feed_id)

    @property
    def pinged(self) -> int:
        """Feeds that were asked for."""
        return len(self._asked) + len(self._again)

    async def fetch_now(self, feed_id: FeedId) -> StoredFeed:
        """Fetch a feed, or join its fetch under way; the feed as it is afterwards.

        Conditional like any other fetch. A server that asked for patience (Retry-After,
        429) gets it: then nothing is fetched, nor while too many sites are being read:
        the site follows in a while. Cancelling the call does not stop the
        fetch. Raises `NotFound` for an unknown or removed feed, and `StorageError`.
        """
        feed = await self._existing(feed_id)
        if self._may_be_asked(feed):
            async with self._askers:
                failure = await asyncio.shield(self._ask(feed))
            if failure is not None:
                raise failure
        return await self._existing(feed_id)

    async def _existing(self, feed_id: FeedId) -> StoredFeed:
        feed = await self._storage.feeds.get(feed_id)
        if feed is None or feed.state in (FeedState.REMOVED, FeedState.TRACK):
            raise NotFound("feed", feed_id)
        return feed

    def _may_be_asked(self, feed: StoredFeed) -> bool:
        patience = feed.polling.retry_after
        is_early = patience is not None and self._clock.now() < patience
        return not is_early and not self._schedule.is_held(_fetch_url(feed))

    def _ask(self, feed: StoredFeed) -> asyncio.Future[StorageError | None]:
        if feed.id not in self._asked:
            self._asked[feed.id] = asyncio.get_running_loop().create_future()
            self._schedule.ask(feed.id, _fetch_url(feed))
            self._awake.set()
        return self._asked[feed.id]

    def _answer(self, feed_id: FeedId, failure: StorageError | None) -> None:
        waiting = self._asked.pop(feed_id, None)
        if waiting is not None:
            waiting.set_result(failure)

    async def _plan_visits(self) -> None:
        """Keep the workers supplied; reads storage in batches, never per feed."""
        while True:
            self._awake.clear()
            try:
                if self._outage.failure is not None:
                    await self._outage.wait()
                    self._schedule.look_again()
                if await self._habits.look():
                    self._accounts.expect_habits(self._habits.prior)
                await self._schedule.put_off()
                await self._schedule.load()
                await self._hand_out()
            except StorageError as error:
                self._storage_failed(error)
                continue
            await self._rest()

    async def _rest(self) -> None:
        """Until there may be something to do; a full queue is woken by its workers."""
        is_supplied = self._jobs.qsize() > self._concurrency // 2
        seconds = None if is_supplied else self._schedule.seconds_to_next()
        try:
            async with asyncio.timeout(seconds):
                await self._awake.wait()
        except TimeoutError:
            pass

    async def _hand_out(self) -> None:
        """Load what visits start from, for as many feeds as the queue takes."""
        room = self._jobs.maxsize - self._jobs.qsize()
        if room < self._jobs.maxsize // 2:
            return
        taken = {due.feed_id: due for due in self._schedule.take(room)}
        if not taken:
            return
        try:
            targets = await self._storage.feeds.targets(list(taken))
        except StorageError as error:
            self._release(taken.values(), error)
            raise
        for target in targets:
            self._jobs.put_nowait((taken.pop(target.feed.id), target))
        self._release(taken.values(), None)  # removed meanwhile

    def _release(self, dues: Iterable[Due], failure: StorageError | None) -> None:
        for due in dues:
            self._finish(due, self._clock.monotonic(), failure)

    async def _work(self) -> None:
        while True:
            due, target = await self._jobs.get()
            if self._jobs.qsize() <= self._concurrency // 2:
                self._awake.set()
            with self._site_places.hold(target.feed) as is_free:
                if is_free:
                    await self._visit(due, target)
                else:
                    self._put_off(due, target)

    def _put_off(self, due: Due, target: FetchTarget) -> None:
        """The worker is left to feeds; whoever waits for the site does so no longer."""
        if self._is_wanted(target):
            self._schedule.put_site_off(due)
            self._awake.set()
        self._finish(due, self._clock.monotonic(), None)

    async def _visit(self, due: Due, target: FetchTarget) -> None:
        """One visit from its turn to its end; it harms no other, however it ends."""
        started = self._clock.monotonic()
        failure = self._outage.failure
        try:
            if failure is None and self._is_wanted(target):
                occasion = self._occasion(due)
                await self._wait_for_turn(due, occasion)
                started = self._clock.monotonic()
                self._accounts.resume(target.feed.polling.price)
                visit = await self._visitor.visit(target, occasion)
                self._accounts.count(target.feed, visit.fetched.at)
                self._learn(target.feed, visit)
                self._heed(visit)
        except StorageError as error:
            failure = error
            self._schedule.rest(due.feed_id, STORAGE_PAUSE)
            self._storage_failed(error)
        except Exception:
            log.exception("visit_failed", feed=due.feed_id)
            self._schedule.rest(due.feed_id, FAULT_PAUSE)
        finally:
            self._finish(due, started, failure)

    def _occasion(self, due: Due) -> Occasion:
        return Occasion.PING if due.feed_id in self._asked else Occasion.RING

    def _is_wanted(self, target: FetchTarget) -> bool:
        """Still: it may have been paused, or visited, since it was read as due."""
        feed = target.feed
        is_due = feed.next_fetch <= self._clock.now()
        return feed.id in self._asked or (is_due and feed.state is FeedState.ACTIVE)

    async def _wait_for_turn(self, due: Due, occasion: Occasion) -> None:
        wait = self._schedule.turn(due, is_ping=occasion is Occasion.PING)
        if wait > 0:
            await asyncio.sleep(wait)

    async def _wait_for_host(self, url: str) -> None:
        """Before each further request of a visit, by the same pace as visits."""
        wait = self._schedule.turn_of(url)
        if wait > 0:
            await asyncio.sleep(wait)

    def _learn(self, feed: StoredFeed, visit: Visit) -> None:
        """A ping that came meanwhile is answered by what the feed is now."""
        if feed.id in self._again:
            self._again[feed.id] = replace(feed, polling=visit.commit.polling)

    def _heed(self, visit: Visit) -> None:
        """Plan on by what the visit brought; a throttled host is left alone whole."""
        polling = visit.commit.polling
        if self._schedule.expect(visit.commit.next_fetch):
            self._awake.set()
        if polling.code == 429 or (polling.code == 503 and polling.retry_after):
            until = min(
                polling.retry_after or visit.fetched.at + UNSAID_PATIENCE,
                visit.commit.next_fetch,
            )
            for feed_id in self._schedule.hold(visit.fetched.url, until):
                self._answer(feed_id, None)

    def _finish(self, due: Due, started: float, failure: StorageError | None) -> None:
        self._answer(due.feed_id, failure)
        if self._schedule.finish(due, started):
            self._awake.set()
        again = self._again.pop(due.feed_id, None)
        if again is not None:
            self.ping(again)

    def _storage_failed(self, error: StorageError) -> None:
        self._outage.begin(error)
        self._awake.set()


def _fetch_url(feed: StoredFeed) -> str:
    return feed.polling.fetch_url or feed.url
