"""The visit to one feed, from waiting for its turn to its result.

When storage fails nothing is fetched until it can be written again (`StorageOutage`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from hub.ingest.committer import StaleTarget
from hub.ingest.due_queue import Due
from hub.ingest.fetch_pipeline import CommittedFetch, FetchPipeline
from hub.ingest.manual_fetches import ManualFetches
from hub.ingest.poll_budget import PollBudget
from hub.ingest.poll_schedule import PollSchedule
from hub.ingest.visit_slots import NoSiteSlot, Slot, SlowFeeds, TooSlow, VisitSlots
from hub.limits.host_limiter import RequestKind
from hub.runtime.clock import Clock
from storage.contract import Storage
from storage.errors import StorageBusy, StorageError
from storage.records import FeedId, FeedState, FetchTarget, PollReason

FIRST_CHECK = 1.0
LONGEST_CHECK = 5.0
"""Seconds between checks whether storage works again; the pauses double up to this."""

log = structlog.get_logger()


TERM_OVER = "this hub's term at the database may be over"


class StorageOutage:
    """Begins with a failure of storage, and ends with a trial write that succeeds.

    It also lasts while this node's term may be over: another one may have taken over
    its feeds. ``is_trusted``: whether it cannot be.
    """

    def __init__(
        self, storage: Storage, is_trusted: Callable[[], bool] = lambda: True
    ) -> None:
        self._storage = storage
        self._is_trusted = is_trusted
        self.failure: StorageError | None = None
        """The last failure while there is an outage, else None."""
        self._is_of_all = False
        self._over = asyncio.Event()
        self.is_open = False
        """True from the beginning of an outage until `wait` has returned."""

    def begin(self, failure: StorageError) -> None:
        if self.failure is None:
            log.error("polling_stopped", error=str(failure))
            self._over.clear()
        self.is_open = True
        self.failure = failure

    def check_term(self) -> StorageError | None:
        """Begin an outage if this node's term may be over. Returns the failure while
        there is an outage, else None."""
        if self.failure is None and not self._is_trusted():
            self.begin(StorageBusy(TERM_OVER))
            self._is_of_all = True
        return self.failure

    def refuse_requests(self) -> None:
        """Called before each request. Raises the failure while there is an outage."""
        if failure := self.check_term():
            raise failure

    async def probe(self) -> None:
        """End the outage if a trial write succeeds. Raises `StorageError` if it
        fails."""
        try:
            await self._storage.check()
            if not self._is_trusted():
                raise StorageBusy(TERM_OVER)
        except StorageError as error:
            self.failure = error
            self._is_of_all = True
            raise
        self.failure = None
        self._over.set()

    async def wait(self) -> bool:
        """Wait until a trial write succeeds; it is tried in growing pauses.

        True if storage took nothing at all. False if trial writes succeeded throughout:
        then only what one feed brought was too much for it, and will be so again.
        """
        pause = FIRST_CHECK
        while self.failure is not None:
            try:
                async with asyncio.timeout(pause):
                    await self._over.wait()
            except TimeoutError:
                pause = min(2 * pause, LONGEST_CHECK)
                with suppress(StorageError):
                    await self.probe()
        log.info("polling_resumed")
        was_of_all, self._is_of_all, self.is_open = self._is_of_all, False, False
        return was_of_all


STORAGE_PAUSE = 300.0
"""Seconds before a feed is asked again if its fetch could not be stored."""
FAULT_PAUSE = 3_600.0
"""Seconds before a feed is asked again if its visit failed by the hub's own fault."""
LINE_PAUSE = 300.0
"""Seconds before a slow feed is asked again if the line of slow feeds was full."""
UNSAID_PATIENCE = timedelta(hours=1)
"""How long a host is left alone after a 429 without Retry-After."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitRunner:
    """Makes visits; sets ``awake`` when there may be more to visit, or to plan anew."""

    schedule: PollSchedule
    manual: ManualFetches
    pipeline: FetchPipeline
    budget: PollBudget
    outage: StorageOutage
    slots: VisitSlots
    clock: Clock
    awake: asyncio.Event
    slow: SlowFeeds = field(default_factory=SlowFeeds)
    cut_short: set[FeedId] = field(default_factory=set)
    """Feeds of which nothing could be stored because of the current outage."""

    async def take(self, due: Due, target: FetchTarget, slot: Slot) -> None:
        """Make one visit; if it fails, no other visit is affected.

        If the visit is too slow for its slot, the feed waits in line afterwards, and
        the visit is not over.
        """
        started = self.clock.monotonic()
        failure = self.outage.failure
        is_over = True
        try:
            asked = self.manual.reason(due.feed_id)
            if failure is None and self._is_wanted(target, asked):
                self._choose_slot(target, slot, is_asked=asked is not None)
                kind = RequestKind.FETCH if asked else RequestKind.POLL
                if not await self.schedule.wait_for_turn(due, kind):
                    self.awake.set()  # so that its later time is stored
                    return
                started = self.clock.monotonic()
                await self._visit(
                    target, asked or target.feed.polling.next_reason, slot
                )
        except NoSiteSlot:
            self._come_back(due)
        except TooSlow:
            is_over = not self.slots.line_up(due)
            if is_over:
                self.schedule.rest(due.feed_id, LINE_PAUSE)
        except StorageError as error:
            failure = error
            self.schedule.rest(due.feed_id, STORAGE_PAUSE)
            self.cut_short.add(due.feed_id)
            self.storage_failed(error)
        except StaleTarget:
            failure = StorageBusy(f"feed {due.feed_id} was edited again and again")
            self.schedule.rest(due.feed_id, STORAGE_PAUSE)
        except Exception:
            log.exception("visit_failed", feed=due.feed_id)
            self.schedule.rest(due.feed_id, FAULT_PAUSE)
        finally:
            if is_over:
                self._finish(due, started, failure)

    def put_off(self, due: Due, target: FetchTarget) -> None:
        """Let a site without a free slot come back later; nobody waits for it."""
        if self._is_wanted(target, self.manual.reason(due.feed_id)):
            self._come_back(due)
        self.give_up(due, None)

    def give_up(self, due: Due, failure: StorageError | None) -> None:
        """End a feed's turn without a visit."""
        self._finish(due, self.clock.monotonic(), failure)

    def storage_failed(self, error: StorageError) -> None:
        """Give no feed a turn until storage works again."""
        self.outage.begin(error)
        self.awake.set()

    def resume(self, *, after_outage: bool) -> None:
        """Give feeds turns again, since storage works."""
        if after_outage:
            for feed_id in self.cut_short:
                self.schedule.end_rest(feed_id)
        self.cut_short.clear()
        self.manual.resume(after_outage=after_outage)
        self.schedule.look_again()

    def _choose_slot(self, target: FetchTarget, slot: Slot, *, is_asked: bool) -> None:
        """Take a slow slot for a feed that gave no answer or took long the last time,
        unless somebody asks for the visit. Raises `TooSlow`."""
        feed = target.feed
        was_slow = feed.polling.code == 0 or feed.id in self.slow
        if was_slow and not is_asked and not slot.become_slow():
            raise TooSlow

    async def _visit(self, target: FetchTarget, reason: PollReason, slot: Slot) -> None:
        self.outage.refuse_requests()
        self.budget.resume(target.feed.polling.price)
        with self.slots.memory.reserve() as share:
            visit = await self.pipeline.run(target, reason, slot.asking(), share)
        self.slow.note(target.feed.id, visit.fetched)
        self.budget.count(target.feed, visit.fetched.at)
        self.manual.learn(target.feed.id, visit.commit.polling)
        self._heed(visit)

    def _come_back(self, due: Due) -> None:
        self.schedule.put_site_off(due)
        self.awake.set()

    def _is_wanted(self, target: FetchTarget, asked: PollReason | None) -> bool:
        """Whether the visit must still be made: the feed may have been paused, or
        visited, since it was read."""
        feed = target.feed
        if asked is not None:
            return self.manual.is_wanted(feed)
        is_due = feed.next_fetch <= self.clock.now()
        return is_due and feed.state is FeedState.ACTIVE

    def _heed(self, visit: CommittedFetch) -> None:
        """Adapt the schedule to what the visit found. A host that throttles or is dead
        is left alone with all its feeds."""
        polling, fetched = visit.commit.polling, visit.fetched
        if fetched.is_unanswered:
            for feed_id in self.schedule.silent(fetched.url):
                self.manual.finish(feed_id, None)
        else:
            self.schedule.answered(fetched.url)
        if self.schedule.expect(visit.commit.next_fetch):
            self.awake.set()
        if polling.code == 429 or (polling.code == 503 and polling.retry_after):
            until = min(
                polling.retry_after or fetched.at + UNSAID_PATIENCE,
                visit.commit.next_fetch,
            )
            for feed_id in self.schedule.hold(fetched.url, until):
                self.manual.finish(feed_id, None)
            self.awake.set()

    def _finish(self, due: Due, started: float, failure: StorageError | None) -> None:
        self.manual.finish(due.feed_id, failure)
        if self.schedule.finish(due, started):
            self.awake.set()
        self.manual.ping_again(due.feed_id)
