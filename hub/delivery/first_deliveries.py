"""First deliveries: chunks of the log's fan-out, and the workers that send them.

A chunk is claimed, rendered once for all subscribers with the same format, renewed
while it is open, and closed when all its outcomes are stored. A bounded pool of workers
sends the deliveries one after the other. When a request hangs, a new worker takes the
place of its worker, which continues outside the pool. So a healthy chunk is done in a
second or two, even if a few callbacks hang. Feeds take turns. A delivery whose origin
has no room for it waits a second, and is then left to the catch-up.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING

import msgspec
import structlog

from hub.core.delivery.catch_up_outcomes import CatchUpProgress
from hub.core.delivery.delivery_outcome import (
    CallbackResponse,
    DeliveryOutcome,
    Verdict,
)
from hub.core.delivery.first_delivery_outcomes import (
    NOT_STARTED,
    FirstDelivery,
    delivered,
    demoted,
    not_started,
    nothing_to_send,
    refused,
)
from hub.core.fetch_traces import FetchTrace
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.callback_events import CallbackEvents
from hub.delivery.catch_ups import CatchUps
from hub.delivery.halted_subscriptions import HaltedSubscriptions
from hub.delivery.notifications import (
    NotificationBody,
    Notifications,
    NotRenderable,
    is_sent_as_is,
)
from hub.delivery.webhook import SLOW_SECONDS, Poster
from hub.limits.callback_origin_limiter import origin_of
from hub.limits.fair_queue import FairQueue
from hub.runtime.background import DrainingTaskGroup, wait_for
from hub.runtime.clock import Clock
from hub.runtime.event_log import EventLog
from hub.runtime.metrics import Metrics
from hub.runtime.work_leases import LEASE_SECONDS, RENEWAL_SECONDS, WorkLeases
from storage.contract import DeliveryStore
from storage.errors import OutcomeUnknown, StorageBusy, TermEnded, WriteFailed
from storage.records import (
    BEFORE_ALL,
    WAS_PAUSED,
    ClaimedChunk,
    ClaimTerms,
    Position,
)

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

NEVER = float("inf")
WORKERS_AT_ONCE = 32
"""Workers that begin in one step of the event loop."""


class OpenChunk(msgspec.Struct, eq=False, kw_only=True):
    """A chunk that we lease. ``expires`` is monotonic: no delivery starts after it."""

    id: int
    lease_id: int
    expires: float
    members: int
    unsettled: int  # members whose outcome is not yet known
    close: Callable[[OpenChunk], None]  # called when all outcomes are durable


class Member(msgspec.Struct, eq=False, kw_only=True, gc=False):
    """One delivery of a chunk, until it is settled."""

    chunk: OpenChunk
    first: FirstDelivery
    document: NotificationBody
    origin: str
    records: tuple[Position, ...]
    fetches: tuple[FetchTrace, ...]
    parked_at: float = NEVER  # monotonic: when its origin first had no room
    demoted: tuple[CatchUpProgress, float] | None = (
        None  # set once it hangs: its catch-up, and when that lease ends
    )


class FirstDeliveries:
    """Sends first deliveries: ``limit`` at once, not counting requests that hang."""

    def __init__(
        self,
        clock: Clock,
        poster: Poster,
        catch_ups: CatchUps,
        acknowledgements: Acknowledgements,
        leases: WorkLeases,
        random: Random,
        halted: HaltedSubscriptions,
        *,
        tasks: DrainingTaskGroup,
        limit: int,
        events: CallbackEvents | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._events = events or CallbackEvents(EventLog(), clock)
        self._freshness = (metrics or Metrics()).freshness
        self._clock = clock
        self._poster = poster
        self._catch_ups = catch_ups
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._random = random
        self._halted = halted
        self._tasks = tasks
        self._limit = limit
        self._ready = FairQueue[Member](attrgetter("first.subscription.feed_id"))
        self._parked: dict[str, deque[Member]] = {}
        self._workers = 0
        self._stopping = False

    def add(self, members: Sequence[Member]) -> None:
        """Take the members of a chunk. They begin in this order, many at once, with
        those of other feeds in between."""
        self._ready.add(members)
        self._start_workers()

    def skip(
        self, chunk: OpenChunk, first: FirstDelivery, *, is_wanted: bool = False
    ) -> None:
        """Settle a member of the chunk without a request: the record has nothing to
        send.

        If the record ``is_wanted`` but its document is not kept or cannot be rendered,
        the member is left to the catch-up, which reports that.
        """
        if is_wanted:
            now = self._clock.now()
            self._write(chunk, not_started(first, at=now, due=now))
        else:
            self._write(chunk, nothing_to_send(first))

    def sweep(self) -> None:
        """Leave deliveries that have waited a second for their origin to the
        catch-up."""
        latest = self._clock.monotonic() - SLOW_SECONDS
        for origin, parked in list(self._parked.items()):
            for _ in range(len(parked)):
                member = parked.popleft()
                if member.parked_at <= latest:
                    self._put_off(member, wait=self._poster.postponement(origin))
                else:
                    parked.append(member)
            if not parked:
                del self._parked[origin]
        self._start_workers()

    def stop(self) -> None:
        """Begin no more deliveries; those not begun stay with their chunk."""
        self._stopping = True

    def _start_workers(self) -> None:
        """Start as many workers as there is work for, within the limit.

        They start a few at a time: callbacks that answer meanwhile free workers, and
        the event loop is not held up by hundreds of signatures at once.
        """
        wanted = min(self._limit - self._workers, len(self._ready))
        if wanted <= 0 or not self._may_begin:
            return
        for _ in range(min(wanted, WORKERS_AT_ONCE)):
            self._workers += 1
            self._tasks.start(self._work())
        if wanted > WORKERS_AT_ONCE:
            asyncio.get_running_loop().call_soon(self._start_workers)

    async def _work(self) -> None:
        """Send deliveries one after the other, until none is ready or a request
        hangs."""
        while (member := self._next()) is not None:
            reply = await self._poster.post(
                member.first.subscription,
                member.document,
                member.first.position,
                origin=member.origin,
                on_slow=partial(self._demote, member),
                records=member.records,
                fetches=member.fetches,
            )
            if member.demoted is not None:
                catch_up, expires = member.demoted
                await self._catch_ups.take_over(
                    catch_up, expires, member.first.position, reply
                )
                return
            self._settle(member, reply)
            if self._parked:
                self._unpark(member.origin)
        self._workers -= 1

    def _next(self) -> Member | None:
        """The next delivery that may begin; None if there is none."""
        while self._ready and self._may_begin:
            member = self._ready.take()
            if member.chunk.expires <= self._clock.monotonic():
                continue  # the lease is over: the next lease of the chunk delivers it
            if self._halted.has_ended(member.first.subscription):
                self._write(member.chunk, nothing_to_send(member.first))
                continue
            if self._halted.is_paused(member.first.subscription):
                self._put_off(member, WAS_PAUSED)
                continue
            if self._poster.admits(member.origin):
                return member
            self._park(member)
        return None

    @property
    def _may_begin(self) -> bool:
        return (
            not self._stopping
            and self._acknowledgements.healthy
            and self._leases.are_trusted()
        )

    def _settle(self, member: Member, reply: CallbackResponse) -> None:
        subscription = member.first.subscription
        if reply.verdict is Verdict.DELIVERED:
            self._freshness.deliver(member.first.position, self._clock.monotonic)
            self._write(member.chunk, delivered(member.first, reply))
            if subscription.exhausted:
                self._events.recovered(subscription)
            return
        now, jitter = self._clock.now(), self._random.random()
        outcome = refused(member.first, reply, at=now, jitter=jitter)
        self._events.failed(
            subscription, outcome, reply, was_failing=subscription.exhausted
        )
        self._write(member.chunk, outcome)

    def _demote(self, member: Member) -> None:
        """Turn a request that hangs into a retry, so that its place in the pool is
        free."""
        lease_id = self._leases.new_id()
        outcome = demoted(
            member.first,
            at=self._clock.now(),
            lease_id=lease_id,
            until=self._leases.until(),
        )
        member.demoted = (
            CatchUpProgress.after(member.first, lease_id),
            self._leases.expiry(),
        )
        self._write(member.chunk, outcome)
        self._workers -= 1
        self._unpark(member.origin)
        self._start_workers()

    def _put_off(
        self, member: Member, reason: str = NOT_STARTED, *, wait: float = 0.0
    ) -> None:
        """Leave a delivery to the catch-up, due in ``wait`` seconds; it is not tried
        here."""
        now = self._clock.now()
        due = now + timedelta(seconds=wait)
        outcome = not_started(member.first, at=now, due=due, reason=reason)
        self._write(member.chunk, outcome)

    def _park(self, member: Member) -> None:
        if member.parked_at == NEVER:
            member.parked_at = self._clock.monotonic()
        self._parked.setdefault(member.origin, deque()).append(member)

    def _unpark(self, origin: str) -> None:
        """Let two deliveries of an origin try again when one of its requests is over:
        two, because the limit of the origin may have grown."""
        parked = self._parked.get(origin)
        if parked is None:
            return
        for _ in range(min(2, len(parked))):
            self._ready.put_back(parked.popleft())
        if not parked:
            del self._parked[origin]

    def _write(self, chunk: OpenChunk, outcome: DeliveryOutcome) -> None:
        written = self._acknowledgements.add(outcome)
        chunk.unsettled -= 1
        if not chunk.unsettled:
            written.add_done_callback(lambda _: chunk.close(chunk))


LOOK_SECONDS = 5.0
"""Seconds after which it is noticed, at the latest, that another's lease is over."""

SMALL_CHUNK = 100
"""A chunk with fewer members is not worth a transaction of its own."""

LARGEST_CHUNK = 500
"""The most members of a chunk, as storage splits a fan-out."""

SMALL_PER_LARGE = 64
"""Small chunks that may be open in place of one large chunk."""

log = structlog.get_logger()


class Chunks:
    """Keeps as many members in memory as ``limit`` of the largest chunks have.

    Members are counted rather than chunks because a chunk closes only when its outcomes
    are stored, which is every 100 ms. If chunks were counted, topics with one
    subscriber each would be served eight at a time, ten times a second.
    """

    def __init__(
        self,
        deliveries: DeliveryStore,
        clock: Clock,
        notifications: Notifications,
        first_deliveries: FirstDeliveries,
        acknowledgements: Acknowledgements,
        leases: WorkLeases,
        *,
        limit: int,
        metrics: Metrics | None = None,
        traces: Traces | None = None,
    ) -> None:
        self._traces = traces
        self._metrics = metrics or Metrics()
        self._deliveries = deliveries
        self._clock = clock
        self._notifications = notifications
        self._first_deliveries = first_deliveries
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._limit = limit
        self._open: dict[int, OpenChunk] = {}
        self._held = 0  # members of all open chunks
        self._expected: deque[float] = deque()
        """The ends of the leases on chunks that commits under way may claim. An end is
        computed when the claim is offered."""
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Claim chunks with each commit and as open chunks close, until cancelled."""
        async with asyncio.TaskGroup() as loops:
            give = partial(self._take, loops)
            with self._deliveries.claim_with_commits(self._ask, give):
                loops.create_task(self._keep_leases())
                await self._claim_all()

    def wake(self) -> None:
        """Look for chunks now: new ones may have come, or room for them."""
        self._wake.set()

    def _ask(self) -> ClaimTerms | None:
        """The terms on which a commit may claim one chunk; None if there is no room."""
        if not (self._acknowledgements.healthy and self._room):
            self.wake()
            return None
        self._expected.append(self._leases.expiry())
        return self._leases.terms(1)

    def _take(
        self, loops: asyncio.TaskGroup, claimed: Sequence[ClaimedChunk] | None
    ) -> None:
        was_full = not self._room
        expires = self._expected.popleft()
        for one in claimed or ():
            loops.create_task(self._start(one, self._hold(one, expires)))
        if claimed or claimed is None or was_full:
            self.wake()

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            await self.renew()

    async def renew(self) -> None:
        """Renew the leases on all open chunks."""
        by_lease: dict[int, list[OpenChunk]] = defaultdict(list)
        for chunk in self._open.values():
            by_lease[chunk.lease_id].append(chunk)
        for lease_id, chunks in by_lease.items():
            expires = self._clock.monotonic() + LEASE_SECONDS
            ids = [chunk.id for chunk in chunks]
            try:
                await self._deliveries.renew(
                    ids,
                    lease_id=lease_id,
                    seconds=LEASE_SECONDS,
                    now=self._clock.now(),
                )
            except (WriteFailed, OutcomeUnknown, StorageBusy, TermEnded) as error:
                log.warning("leases_not_renewed", chunks=ids, error=str(error))
                continue
            for chunk in chunks:
                chunk.expires = expires

    async def _claim_all(self) -> None:
        while True:
            await self._acknowledgements.until_healthy()
            self._wake.clear()
            self._drop_expired()
            await self._fill()
            await wait_for(self._wake, LOOK_SECONDS)

    async def _fill(self) -> None:
        """Claim chunks until none is left, or no room.

        One is claimed first, so that it is under way while the next are read, then
        twice as many each time: a claim waits for everything that is being written,
        which on a busy hub takes longer than to deliver a chunk. If the chunks are
        small (topics with few subscribers), as many as there is room for are claimed.
        """
        at_once = 1
        while room := self._room:
            expires = self._leases.expiry()
            terms = self._leases.terms(min(room, at_once))
            try:
                claimed = await self._deliveries.claim_chunks(terms)
            except (WriteFailed, OutcomeUnknown, StorageBusy, TermEnded) as error:
                log.warning("chunks_not_claimed", error=str(error))
                return
            for one in claimed:
                await self._start(one, self._hold(one, expires))
            if not claimed:
                return
            is_small = len(claimed[-1].pending) < SMALL_CHUNK
            at_once = self._limit if is_small else min(2 * at_once, self._limit)

    @property
    def _room(self) -> int:
        """How many chunks may be claimed, assuming that each is one of the largest."""
        expected = len(self._expected)
        members = (self._limit - expected) * LARGEST_CHUNK - self._held
        chunks = self._limit * SMALL_PER_LARGE - expected - len(self._open)
        return max(0, min(members // LARGEST_CHUNK, chunks))

    def drop_all(self) -> None:
        """Begin no delivery of what was claimed until now: it is claimed, and read,
        anew once the leases are over."""
        for chunk in list(self._open.values()):
            chunk.expires = self._clock.monotonic()
            self._forget(chunk)

    def _drop_expired(self) -> None:
        """Forget chunks whose lease is over: they are delivered under the next
        lease."""
        now = self._clock.monotonic()
        for chunk in list(self._open.values()):
            if chunk.expires <= now:
                log.warning("chunk_lease_expired", chunk=chunk.id)
                self._forget(chunk)

    def _hold(self, claimed: ClaimedChunk, expires: float) -> OpenChunk:
        chunk = OpenChunk(
            id=claimed.id,
            lease_id=claimed.lease_id,
            expires=expires,
            members=len(claimed.pending),
            unsettled=len(claimed.pending),
            close=self._close,
        )
        self._open[chunk.id] = chunk
        self._held += chunk.members
        self._metrics.count_split(chunk.members, self._clock.monotonic())
        return chunk

    async def _start(self, claimed: ClaimedChunk, chunk: OpenChunk) -> None:
        rendered: dict[
            tuple[str, str, str], NotificationBody | NotRenderable | None
        ] = {}
        members = []
        told, positions = (claimed.record,), (claimed.record.position,)
        fetches = self._traces.of_records(told) if self._traces else ()
        for index, subscription in claimed.pending:
            key = (subscription.topic, subscription.format, subscription.updates)
            if key not in rendered:  # once for all subscribers that get the same
                try:
                    rendered[key] = await self._notifications.document(
                        told, subscription
                    )
                except NotRenderable as failure:
                    rendered[key] = failure
            found = rendered[key]
            document = found if isinstance(found, NotificationBody) else None
            brought = document.position if document else BEFORE_ALL
            first = FirstDelivery.of(claimed, index, subscription, brought)
            if document is None:
                is_wanted = found is not None or is_sent_as_is(
                    subscription, claimed.record
                )
                self._first_deliveries.skip(chunk, first, is_wanted=is_wanted)
                continue
            origin = origin_of(subscription.callback)
            members.append(
                Member(
                    chunk=chunk,
                    first=first,
                    document=document,
                    origin=origin,
                    records=positions,
                    fetches=fetches,
                )
            )
        self._first_deliveries.add(members)

    def _close(self, chunk: OpenChunk) -> None:
        """Forget a chunk whose outcomes are all durable, and look for more chunks."""
        if self._open.get(chunk.id) is chunk:
            self._forget(chunk)
        self.wake()

    def _forget(self, chunk: OpenChunk) -> None:
        del self._open[chunk.id]
        self._held -= chunk.members
