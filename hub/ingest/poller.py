"""The poller: polls every feed when it is due, politely and with bounded resources.

Due feeds are found by a query. A bounded queue holds the next of them by host, and a
fixed number of workers visit them, one for each slot, quick or slow. Nothing here grows
with the number of feeds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from datetime import timedelta
from typing import TYPE_CHECKING

from hub.core.schedule.budget import Budget
from hub.core.schedule.poll_period import (
    Plan,
    PlanningContext,
    PollingRules,
    plan,
    rules_of,
)
from hub.core.sites.site_bounds import SiteBounds
from hub.core.sites.site_formats import WALKS
from hub.ingest.committer import Committer, Detector
from hub.ingest.document_parser import DocumentReader, Parser
from hub.ingest.due_queue import Due
from hub.ingest.entry_sanitizer import Sanitizer
from hub.ingest.fetch_pipeline import FetchPipeline, draw_jitter
from hub.ingest.fetcher import FeedFetcher, FetcherIdentity
from hub.ingest.manual_fetches import ManualFetches
from hub.ingest.poll_budget import CommonProfile, PollBudget
from hub.ingest.poll_schedule import PollSchedule
from hub.ingest.tracker import Tracker
from hub.ingest.visit_runner import StorageOutage, VisitRunner
from hub.ingest.visit_slots import SiteSlots, Slot, VisitSlots, slow_slots
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from hub.runtime.event_log import EventLog
from hub.runtime.metrics import Metrics
from hub.sites.site_reader import SiteDocuments, SiteReader
from protocols.scp.read.unpacking import ChecksumRule
from protocols.urls import host_name
from storage.contract import Storage
from storage.errors import NotFound, StorageError
from storage.records import FeedId, FetchTarget, PollReason, StoredFeed

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

LONGEST_SPREAD = timedelta(minutes=5)
"""The longest time over which feeds are spread that are overdue at the start; a feed
with a shorter period is spread over that."""
LEAST_SPREAD = 20.0
"""The fewest overdue feeds visited in a second: a small number need not be spread."""
MOST_CALLERS = 256
"""Callers of `Poller.fetch_now` that may wait at once; others queue up."""


class Poller:
    """Visits feeds when they are due, or when asked to.

    While storage cannot be written nothing is fetched, so a full disk causes no storm
    of requests; nor while another node may have taken over this one's feeds.
    """

    def __init__(
        self,
        storage: Storage,
        fetcher: FeedFetcher,
        parser: Parser,
        limiter: HostLimiter,
        clock: Clock,
        rules: PollingRules,
        *,
        concurrency: int = 64,
        budget: Budget | None = None,
        metrics: Metrics | None = None,
        identity: FetcherIdentity | None = None,
        hub_url: str = "",
        jitter: Callable[[], float] = draw_jitter,
        sanitizer: Sanitizer | None = None,
        tracker: Tracker | None = None,
        detector: Detector | None = None,
        site_bounds: SiteBounds | None = None,
        scp_checksum: ChecksumRule = ChecksumRule.LENIENT,
        is_pushed: Callable[[str], bool] = lambda url: False,
        is_trusted: Callable[[], bool] = lambda: True,
        events: EventLog | None = None,
        traces: Traces | None = None,
    ) -> None:
        """``concurrency``: feeds visited at the same time. ``hub_url``: the hub that
        documents of sites name. ``jitter``: returns a number from -1 to 1.

        Without ``sanitizer`` entries are stored as they came; without ``tracker`` there
        are no track queries; without ``detector`` no language is guessed.
        ``is_pushed``: whether the answer for a URL has been pushed, so that its server
        is not asked. ``is_trusted``: whether this node's term cannot be over; if not,
        nothing is begun.
        """
        budget, metrics = budget or Budget(), metrics or Metrics()
        self._storage = storage
        self._clock = clock
        self._rules = rules
        self._concurrency = concurrency
        self._has_pace = bool(budget.polls_per_second)
        self._is_begun = False
        self._site_slots = SiteSlots(concurrency)
        self._budget = PollBudget(budget, rules.patience)
        self._profile = CommonProfile(storage.feeds, clock)
        self._limiter = limiter
        self._schedule = PollSchedule(
            storage.feeds, limiter, clock, budget, self._site_slots.is_read
        )
        self._jobs: asyncio.Queue[tuple[Due, FetchTarget]] = asyncio.Queue(concurrency)
        self._awake = asyncio.Event()
        self._manual = ManualFetches(self._schedule, clock, self._awake, is_pushed)
        self._callers = asyncio.Semaphore(MOST_CALLERS)
        self._outage = StorageOutage(storage, is_trusted)
        self._slots = VisitSlots(concurrency, metrics)
        pipeline = FetchPipeline(
            feeds=storage.feeds,
            fetcher=fetcher,
            reader=DocumentReader(parser=parser, clock=clock, metrics=metrics),
            committer=Committer(
                log=storage.log,
                clock=clock,
                metrics=metrics,
                sanitizer=sanitizer,
                tracker=tracker,
                detector=detector,
                events=events or EventLog(),
                traces=traces,
            ),
            rules=rules,
            identity=identity or FetcherIdentity(),
            planning_context=self._budget.planning_context,
            jitter=jitter,
            sites=SiteReader(
                store=storage.sites,
                clock=clock,
                walks=WALKS,
                fetch=fetcher.fetch,
                wait=self._wait_for_host,
                documents=SiteDocuments(storage=storage, hub_url=hub_url),
                parser=parser,
                bounds=site_bounds or SiteBounds(),
                checksum=scp_checksum,
                slots=self._site_slots,
            ),
            wait_for_host=self._wait_for_host,
            traces=traces,
        )
        self._traces = traces
        self._runner = VisitRunner(
            schedule=self._schedule,
            manual=self._manual,
            pipeline=pipeline,
            budget=self._budget,
            outage=self._outage,
            slots=self._slots,
            clock=clock,
            awake=self._awake,
        )

    async def _wait_for_host(self, url: str) -> None:
        """Wait for the host's turn before each further request of a visit. Raises
        `StorageError` if none may be made any more."""
        await self._limiter.wait(host_name(url), RequestKind.CRAWL)
        self._outage.refuse_requests()

    async def run(self) -> None:
        """Poll until cancelled; nothing is stored of visits that are under way then."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._plan_visits(), name="poller")
                workers = self._concurrency + slow_slots(self._concurrency)
                for number in range(workers):
                    group.create_task(self._work(), name=f"poller-{number}")
        finally:
            self._manual.finish_all()

    def wake(self) -> None:
        """Look for due feeds at once: a feed was added or resumed."""
        self._schedule.look_again()
        self._awake.set()

    def explain(self, feed: StoredFeed, *, is_pushed: bool = False) -> Plan:
        """The period as it was planned after the last fetch, term by term.

        ``is_pushed``: the feed's hub is believed to push what is new.
        """
        polling = feed.polling
        planned_at = polling.last_fetch or self._clock.now()
        price = polling.price or self._rules.patience
        planning_context = PlanningContext(price=price, prior=self._profile.prior)
        return plan(
            polling,
            polling.subscribers,
            rules_of(self._rules, feed.own_period, is_failing=bool(polling.failures)),
            planned_at,
            planning_context=planning_context,
            is_pushed=is_pushed and bool(self._rules.push_url) and not feed.own_period,
        )

    def ping(self, feed: StoredFeed, reason: PollReason = PollReason.PINGED) -> bool:
        """Fetch a feed soon, and once more if it is being fetched; nobody waits for it.

        Returns False and does nothing if its server asked for patience.
        """
        return self._manual.ping(feed, reason)

    def is_pinged(self, feed_id: FeedId) -> bool:
        """Whether a fetch that was asked for is yet to begin."""
        return self._manual.is_pinged(feed_id)

    @property
    def pinged(self) -> int:
        """How many feeds wait for a fetch that was asked for."""
        return len(self._manual)

    @property
    def under_way(self) -> Set[FeedId]:
        """Feeds that are being visited, or wait for a slow slot."""
        return self._schedule.under_way

    async def fetch_now(
        self,
        feed_id: FeedId,
        reason: PollReason = PollReason.ASKED_FOR,
        *,
        only_first: bool = False,
    ) -> StoredFeed:
        """Fetch a feed, or join its fetch under way; returns the feed as it is
        afterwards. ``only_first``: not if it has been fetched before.

        The fetch is conditional like any other. Nothing is fetched if the server asked
        for patience (Retry-After, 429), unless the answer is here already. While too
        many sites are being read, a site is not fetched at once but a while later.
        Cancelling the call does not stop the fetch. Raises `NotFound` for an unknown or
        removed feed, and `StorageError`.
        """
        feed = await self._existing(feed_id)
        if self._traces:
            self._traces.note_cause(feed_id)
        if self._manual.may_fetch(feed):
            async with self._callers:
                if self._outage.check_term() is not None:
                    await self._outage.probe()
                failure = await asyncio.shield(
                    self._manual.request(feed, reason, only_first=only_first)
                )
            if failure is not None:
                raise failure
        return await self._existing(feed_id)

    async def _existing(self, feed_id: FeedId) -> StoredFeed:
        feed = await self._storage.feeds.get(feed_id)
        if feed is None or not feed.state.is_listed:
            raise NotFound("feed", feed_id)
        return feed

    async def _plan_visits(self) -> None:
        """Keep the workers supplied; storage is read in batches, never for single
        feeds."""
        while True:
            self._awake.clear()
            try:
                self._outage.check_term()
                if self._outage.is_open:
                    was_of_all = await self._outage.wait()
                    self._runner.resume(after_outage=was_of_all)
                if not self._is_begun:
                    await self._begin()
                if await self._profile.look():
                    self._budget.expect_profile(self._profile.prior)
                await self._schedule.put_off()
                await self._schedule.load()
                await self._hand_out()
            except StorageError as error:
                self._runner.storage_failed(error)
                continue
            # If the queue is full, a worker ends the sleep.
            is_supplied = self._jobs.qsize() > self._concurrency // 2
            seconds = None if is_supplied else self._schedule.seconds_to_next()
            await wait_for(self._awake, seconds)

    async def _begin(self) -> None:
        """Spread the feeds that are overdue at the start: if they all came at once,
        feeds of the same period would stay together for ever. A budget of polls a
        second spreads them by itself."""
        await self._schedule.restore()
        if not self._has_pace:
            now = self._clock.now()
            await self._storage.feeds.spread(
                now, longest=LONGEST_SPREAD, per_second=LEAST_SPREAD
            )
        self._is_begun = True

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
            for due in taken.values():
                self._runner.give_up(due, error)
            raise
        for target in targets:
            self._jobs.put_nowait((taken.pop(target.feed.id), target))
        for due in taken.values():  # the others were removed meanwhile
            self._runner.give_up(due, None)

    async def _work(self) -> None:
        while True:
            async with self._slots.enter() as slot:
                # Calls of their own, so that a worker that waits holds no target, which
                # is large.
                await self._take(*await self._next_job(), slot)
                if slot.is_slow:
                    await self._serve_slow_slots(slot)

    async def _next_job(self) -> tuple[Due, FetchTarget]:
        job = await self._jobs.get()
        if self._jobs.qsize() <= self._concurrency // 2:
            self._awake.set()
        return job

    async def _take(self, due: Due, target: FetchTarget, slot: Slot) -> None:
        with self._site_slots.hold(target.feed) as is_free:
            if is_free:
                await self._runner.take(due, target, slot)
            else:
                self._runner.put_off(due, target)

    async def _serve_slow_slots(self, slot: Slot) -> None:
        """Let a slow slot go on to feeds that wait for one."""
        while due := self._slots.next_in_line():
            try:
                targets = await self._storage.feeds.targets([due.feed_id])
            except StorageError as error:
                self._runner.give_up(due, error)
                self._runner.storage_failed(error)
                continue
            for target in targets:
                await self._take(due, target, slot)
            if not targets:
                self._runner.give_up(due, None)  # the feed was removed meanwhile
