"""Retrying subscriptions, brought up to date from the log one by one.

Each retrying subscription has one row, which is claimed when it is due and leased while
it is worked on. The subscription is sent record after record until it is up to date, or
until a request fails and it waits for its next try. After too many failures the rest
becomes a dead letter, and each new record is sent as one probe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import msgspec
import structlog

from hub.core.delivery.catch_up_outcomes import (
    NOT_KEPT,
    NOT_RENDERABLE,
    CatchUpProgress,
    announced,
    finished,
    held_up,
    progressed,
    released,
    unsendable,
)
from hub.core.delivery.delivery_outcome import (
    CallbackResponse,
    DeliveryOutcome,
    Verdict,
)
from hub.core.fetch_traces import FetchTrace
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.asked_retries import AskedRetries
from hub.delivery.callback_events import CallbackEvents
from hub.delivery.halted_subscriptions import HaltedSubscriptions
from hub.delivery.notifications import (
    NotificationBody,
    Notifications,
    NotRenderable,
    is_sent_as_is,
)
from hub.delivery.webhook import Poster
from hub.limits.callback_origin_limiter import origin_of
from hub.runtime.background import DrainingTaskGroup
from hub.runtime.clock import Clock
from hub.runtime.event_log import EventLog
from hub.runtime.metrics import Metrics
from hub.runtime.work_leases import WorkLeases
from protocols.urls import selector_of
from storage.contract import DeliveryStore, LogStore
from storage.errors import StorageError
from storage.records import (
    Flushed,
    Format,
    Position,
    Record,
    RetryingSubscription,
    Subscription,
)
from storage.subscription_filter import wants

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

PAGE = 100
"""Records read at once; also the most that share one request."""

SHORT_PAGE = 2
"""Records read first for a subscription that gets each record on its own: most often
the next record is one that it wants. While none is, each read takes four times as many,
up to a page."""

BATCH_BYTES = 2**20
"""A batch larger than this many bytes is halved until it is smaller or one record."""


class CatchUpRequest(msgspec.Struct, frozen=True):
    """A document, and the position up to which it brings its subscriber.

    If ``document`` is None, nothing is left to send up to that position, unless
    ``missing`` says why a wanted document cannot be sent. ``records``: the positions of
    the records that the document tells of; ``fetches``: the traces that these belong
    to.
    """

    last: Position
    document: NotificationBody | None
    missing: str = ""
    records: tuple[Position, ...] = ()
    fetches: tuple[FetchTrace, ...] = ()


class CatchUpRequests:
    def __init__(
        self,
        log: LogStore,
        notifications: Notifications,
        traces: Traces | None = None,
    ) -> None:
        self._traces = traces
        self._log = log
        self._notifications = notifications

    async def next(self, catch_up: CatchUpProgress) -> CatchUpRequest:
        """The next request of a catch-up, or the end of what the log has for it.

        A subscription with ``batch`` gets several records in one request, an as-is
        subscription only the latest document, any other one record. A batch that was
        tried before does not grow: later records wait for the next one.
        """
        subscription = catch_up.subscription
        wanted, end = await self._wanted(catch_up)
        if not wanted:
            return CatchUpRequest(end, None)
        if _gets_latest(subscription):
            return await self._whole(wanted[-1:], subscription)
        is_single = any(is_sent_as_is(subscription, each) for each in wanted)
        if is_single or not subscription.batch:
            return await self._whole(wanted[:1], subscription)
        tried_to = catch_up.tried_to or 0
        tried = [each for each in wanted if each.position <= tried_to]
        if tried:
            return await self._whole(tried, subscription)
        return await self._pack(wanted, subscription)

    async def _wanted(self, catch_up: CatchUpProgress) -> tuple[list[Record], Position]:
        """The next wanted records, and the position up to which the log was read."""
        subscription = catch_up.subscription
        is_latest_asked = _gets_latest(subscription)
        limit = PAGE if is_latest_asked or subscription.batch else SHORT_PAGE
        wanted: list[Record] = []
        end = catch_up.position
        while True:
            page = await self._log.records(
                after=end, limit=limit, feed_id=subscription.feed_id
            )
            found = [each for each in page if _is_due(each, catch_up)]
            wanted = found or wanted
            end = page[-1].position if page else end
            if len(page) < limit or (wanted and not is_latest_asked):
                return wanted, end
            limit = min(4 * limit, PAGE)

    async def _pack(
        self, records: Sequence[Record], subscription: Subscription
    ) -> CatchUpRequest:
        """A request for as many of the records as fit into a document of
        `BATCH_BYTES`."""
        while True:
            request = await self._whole(records, subscription)
            document = request.document
            is_small = document is None or len(document.body) <= BATCH_BYTES
            if (is_small and not request.missing) or len(records) == 1:
                return request
            records = records[: len(records) // 2]

    async def _whole(
        self, records: Sequence[Record], subscription: Subscription
    ) -> CatchUpRequest:
        last = records[-1].position
        try:
            document = await self._notifications.document(records, subscription)
        except NotRenderable:
            return CatchUpRequest(last, None, NOT_RENDERABLE)
        if document is not None:
            told = tuple(each.position for each in records)
            last = max(last, document.position)
            fetches = self._traces.of_records(records) if self._traces else ()
            return CatchUpRequest(last, document, records=told, fetches=fetches)
        is_as_is = is_sent_as_is(subscription, records[-1])
        return CatchUpRequest(last, None, NOT_KEPT if is_as_is else "")


def _gets_latest(subscription: Subscription) -> bool:
    """Whether the latest document makes up for all earlier records of the topic."""
    is_by_topic = subscription.format is Format.BY_TOPIC
    is_part = is_by_topic and bool(selector_of(subscription.topic))
    return is_part or subscription.format is Format.AS_IS


def _is_due(record: Record, catch_up: CatchUpProgress) -> bool:
    subscription = catch_up.subscription
    any_fresh = any(ref.fresh for ref in record.entries)
    return not catch_up.skips(record.position) and wants(
        subscription.format,
        subscription.updates,
        record.kind,
        any_fresh,
        record.is_superseded,
    )


TURN_SECONDS = 2.0
"""Seconds that a catch-up goes on for while others wait to begin."""

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class RunningCatchUp:
    """A catch-up under way, which may be ahead of what storage has of it.

    ``is_lost``: a write showed that another holder has the lease, or that the
    subscription has ended. ``expires`` and ``turn_ends`` are in monotonic seconds:
    after ``expires`` the lease may belong to another holder, and from ``turn_ends`` on
    this catch-up makes way for others that wait.
    """

    catch_up: CatchUpProgress
    origin: str
    on_slow: Callable[[], None]  # called when a request hangs, possibly more than once
    expires: float
    turn_ends: float
    decisions_missed: int = 0  # of `HaltedSubscriptions`, when it began
    is_lost: bool = False

    def follow(self, written: asyncio.Future[Flushed], expires: float) -> None:
        """Note from a finished write whether the lease was lost, or renewed to
        ``expires``."""

        def learn(written: asyncio.Future[Flushed]) -> None:
            if written.cancelled():
                return
            if self.catch_up.subscription.id in written.result().lost:
                self.is_lost = True
            self.expires = max(self.expires, expires)

        written.add_done_callback(learn)


class CatchUps:
    """Retrying subscriptions, each brought up to date from the log.

    While ``are_waited_for`` is True, more subscriptions wait than may be in hand at
    once. Then each has one turn and is given back as it stands: a hundred subscribers
    with days to catch up must not hold up one that lacks a single record.
    """

    def __init__(
        self,
        log_store: LogStore,
        clock: Clock,
        poster: Poster,
        requests: CatchUpRequests,
        acknowledgements: Acknowledgements,
        leases: WorkLeases,
        random: Random,
        halted: HaltedSubscriptions,
        events: CallbackEvents | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._events = events or CallbackEvents(EventLog(), clock)
        self._freshness = (metrics or Metrics()).freshness
        self._log = log_store
        self._clock = clock
        self._poster = poster
        self._requests = requests
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._random = random
        self._halted = halted
        self.are_waited_for = False
        self._stopping = False

    def stop(self) -> None:
        """Let each running catch-up end after the request that it is making."""
        self._stopping = True

    async def run(
        self, catch_up: CatchUpProgress, expires: float, on_slow: Callable[[], None]
    ) -> None:
        """Send record after record.

        ``expires`` is the (monotonic) end of the lease; ``on_slow`` is called when a
        request begins to hang.
        """
        await self._go_on(self._begin(catch_up, expires, on_slow))

    async def take_over(
        self,
        catch_up: CatchUpProgress,
        expires: float,
        last: Position,
        reply: CallbackResponse,
    ) -> None:
        """Go on with a first delivery that hung, once its reply has come.

        ``expires`` is the (monotonic) end of the lease that its row was written with.
        """
        running = self._begin(catch_up, expires, lambda: None)
        if await self._settle(running, last, reply):
            await self._go_on(running)

    def _begin(
        self, catch_up: CatchUpProgress, expires: float, on_slow: Callable[[], None]
    ) -> RunningCatchUp:
        return RunningCatchUp(
            catch_up,
            origin_of(catch_up.subscription.callback),
            on_slow,
            expires,
            turn_ends=self._clock.monotonic() + TURN_SECONDS,
            decisions_missed=self._halted.decisions_missed,
        )

    async def _go_on(self, running: RunningCatchUp) -> None:
        while await self._step(running):
            pass

    async def _step(self, running: RunningCatchUp) -> bool:
        """Make the next request; returns whether another one is to follow."""
        await self._acknowledgements.until_healthy()
        now = self._clock.monotonic()
        if running.is_lost or running.expires <= now or not self._leases.are_trusted():
            return False
        is_over = self.are_waited_for and running.turn_ends <= now
        is_doubtful = running.decisions_missed != self._halted.decisions_missed
        if self._stopping or is_over or is_doubtful:
            return self._release(running, wait=0.0)
        if not self._poster.has_room(running.origin):
            return self._postpone(running)
        request = await self._requests.next(running.catch_up)
        if request.missing:
            return self._give_up(running, request.last, request.missing)
        if request.document is None:
            return await self._finish(running, request.last)
        if running.catch_up.subscription.batch:
            await self._announce(running, request.last)
        if self._is_over(running):
            return False
        if self._halted.is_paused(running.catch_up.subscription):
            return self._release(running, wait=0.0)
        if not self._poster.admits(running.origin):
            return self._postpone(running)
        reply = await self._poster.post(
            running.catch_up.subscription,
            request.document,
            request.last,
            origin=running.origin,
            on_slow=running.on_slow,
            failures=running.catch_up.failures,
            missed=running.catch_up.missed,
            records=request.records,
            fetches=request.fetches,
        )
        return await self._settle(running, request.last, reply, request.records[0])

    async def _announce(self, running: RunningCatchUp, last: Position) -> None:
        """Store where a batch ends, so that the same batch is sent again after a
        crash."""
        if running.catch_up.tried_to != last:
            running.catch_up = msgspec.structs.replace(running.catch_up, tried_to=last)
            until = self._leases.until()
            await asyncio.shield(
                self._write(running, announced(running.catch_up, until=until))
            )

    def _is_over(self, running: RunningCatchUp) -> bool:
        """Whether the subscription has ended: its row is gone, and nothing more is
        written."""
        return running.is_lost or self._halted.has_ended(running.catch_up.subscription)

    async def _settle(
        self,
        running: RunningCatchUp,
        last: Position,
        reply: CallbackResponse,
        first: Position | None = None,
    ) -> bool:
        now = self._clock.now()
        catch_up = running.catch_up
        if reply.verdict is Verdict.DELIVERED:
            self._freshness.deliver(last, self._clock.monotonic)
            until = self._leases.until()
            outcome = progressed(
                catch_up, last, reply, at=now, until=until, first=first
            )
            self._write(running, outcome)
            running.catch_up = catch_up.delivered(last)
            if catch_up.is_failing:
                since = catch_up.failing_since
                self._events.recovered(catch_up.subscription, since)
            return True
        log_end = await self._log.end()
        outcome = held_up(
            catch_up,
            last,
            reply,
            at=now,
            jitter=self._random.random(),
            log_end=log_end.position,
            first=first,
        )
        self._events.failed(
            catch_up.subscription, outcome, reply, was_failing=catch_up.is_failing
        )
        self._write(running, outcome)
        return False

    def _give_up(self, running: RunningCatchUp, last: Position, reason: str) -> bool:
        """Give up a document that cannot be sent; this is recorded, never skipped
        silently."""
        now = self._clock.now()
        outcome = unsendable(running.catch_up, last, at=now, reason=reason)
        if outcome.given_up is not None:
            self._events.given_up(running.catch_up.subscription, outcome.given_up)
        self._write(running, outcome)
        return False

    async def _finish(self, running: RunningCatchUp, last: Position) -> bool:
        outcome = finished(running.catch_up, last, until=self._leases.until())
        flushed = await asyncio.shield(self._write(running, outcome))
        running.catch_up = msgspec.structs.replace(running.catch_up, position=last)
        return running.catch_up.subscription.id in flushed.unfinished

    def _postpone(self, running: RunningCatchUp) -> bool:
        """Release the row until its origin has a free place.

        Nothing is read from the log for it: thousands of subscriptions may wait in vain
        for an origin that is down.
        """
        wait = self._poster.postponement(running.origin)
        return self._release(running, wait=wait)

    def _release(self, running: RunningCatchUp, *, wait: float) -> bool:
        due = self._clock.now() + timedelta(seconds=wait)
        self._write(running, released(running.catch_up, due=due))
        return False

    def _write(
        self, running: RunningCatchUp, outcome: DeliveryOutcome
    ) -> asyncio.Future[Flushed]:
        expires = self._leases.expiry()
        written = self._acknowledgements.add(outcome)
        running.follow(written, expires)
        return written


POLL_SECONDS = 0.25
"""Seconds after which it is noticed, at the latest, that a subscription is due."""


class RetryingSubscriptions:
    """Keeps up to ``limit`` retrying subscriptions in hand, not counting those that
    hang.

    While more than that are due, they take turns (`CatchUps`).
    """

    def __init__(
        self,
        deliveries: DeliveryStore,
        clock: Clock,
        catch_ups: CatchUps,
        acknowledgements: Acknowledgements,
        leases: WorkLeases,
        *,
        tasks: DrainingTaskGroup,
        limit: int,
        asked: AskedRetries | None = None,
    ) -> None:
        self._asked = asked or AskedRetries()
        self._deliveries = deliveries
        self._clock = clock
        self._catch_ups = catch_ups
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._tasks = tasks
        self._limit = limit
        self._in_hand = 0
        self._freed = asyncio.Event()

    async def run(self) -> None:
        """Claim subscriptions that are due and start on them, until cancelled."""
        while True:
            await self._acknowledgements.until_healthy()
            room = self._limit - self._in_hand
            claimed, expires = await self._claim(room)
            for retrying in claimed:
                self._in_hand += 1
                self._tasks.start(self._catch_up(retrying, expires))
            await self._rest(is_full=len(claimed) == room)

    async def _claim(self, room: int) -> tuple[list[RetryingSubscription], float]:
        """Claim up to ``room`` subscriptions; also returns the (monotonic) end of their
        leases."""
        try:
            if not room or not await self._are_due():
                return [], 0.0
            # Both are read at once: if the clock moved in between, the lease could be
            # over.
            terms, expires = self._leases.terms(room), self._leases.expiry()
            return await self._deliveries.claim_retrying(terms), expires
        except StorageError as error:
            log.warning("retries_not_claimed", error=str(error))
            return [], 0.0

    async def _are_due(self) -> bool:
        """Whether any subscription waits; one in hand is due only when its lease
        ends."""
        due = await self._deliveries.next_retry()
        return due is not None and due <= self._clock.now()

    async def _catch_up(self, retrying: RetryingSubscription, expires: float) -> None:
        """Catch up; the place is freed at the end, or as soon as a request hangs."""
        with ExitStack() as place:
            place.callback(self._free)
            is_asked = self._asked.take(retrying.subscription.id)
            progress = CatchUpProgress.of(retrying, is_asked=is_asked)
            await self._catch_ups.run(progress, expires, place.close)

    async def _rest(self, *, is_full: bool) -> None:
        if not is_full:
            self._catch_ups.are_waited_for = False
            await asyncio.sleep(POLL_SECONDS)
            return
        self._freed.clear()
        while self._in_hand == self._limit:
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._freed.wait()
            except TimeoutError:
                await self._find_waiting()

    async def _find_waiting(self) -> None:
        try:
            self._catch_ups.are_waited_for = await self._are_due()
        except StorageError as error:
            log.warning("retries_not_looked_for", error=str(error))

    def _free(self) -> None:
        self._in_hand -= 1
        self._freed.set()
