"""Chunks of the log's fan-out: claimed, rendered once for all, renewed, and closed."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import structlog

from hub.core.delivery.first_delivery import FirstDelivery
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.first_deliveries import FirstDeliveries, Member, OpenChunk
from hub.delivery.leases import LEASE_SECONDS, RENEWAL_SECONDS, Leases
from hub.delivery.notifications import (
    NotificationBody,
    Notifications,
    NotRenderable,
    is_sent_as_is,
)
from hub.limits.origin_limiter import origin_of
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from storage.contract import DeliveryStore
from storage.errors import StorageBusy, WriteFailed
from storage.records import BEFORE_ALL, ClaimedChunk, ClaimTerms, Record, Subscription

POLL_SECONDS = 5.0
"""How late it may be noticed that somebody else's lease on a chunk is over."""

SMALL_CHUNK = 100
"""Members below which a chunk is not worth a transaction of its own."""

LARGEST_CHUNK = 500
"""Members, as storage splits a fan-out."""

SMALL_PER_LARGE = 64
"""Small chunks that may be open in the place of a large one."""

log = structlog.get_logger()


class Chunks:
    """Keeps as many members in memory as ``limit`` of the largest chunks have.

    A chunk is closed when what came of it is stored, which is every 100 ms. So were it
    chunks that are counted, topics with one subscriber each would be served eight at a
    time ten times a second.
    """

    def __init__(
        self,
        deliveries: DeliveryStore,
        clock: Clock,
        notifications: Notifications,
        first_deliveries: FirstDeliveries,
        acknowledgements: Acknowledgements,
        leases: Leases,
        *,
        limit: int,
    ) -> None:
        self._deliveries = deliveries
        self._clock = clock
        self._notifications = notifications
        self._first_deliveries = first_deliveries
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._limit = limit
        self._open: dict[int, OpenChunk] = {}
        self._held = 0  # members of all that are open
        self._asked = 0  # chunks that commits under way may bring
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Claim chunks with each commit and as open ones close, until cancelled."""
        async with asyncio.TaskGroup() as loops:
            give = partial(self._take, loops)
            with self._deliveries.claim_with_commits(self._ask, give):
                loops.create_task(self._keep_leases())
                await self._claim_all()

    def wake(self) -> None:
        """Look for chunks now: there may be some, or room for them."""
        self._wake.set()

    def _ask(self) -> ClaimTerms | None:
        """A commit is handed in: it may claim one chunk, if there is room. What it does
        not claim, of more subscribers or of other feeds, is claimed when it is durable.
        """
        if not (self._acknowledgements.healthy and self._room):
            self.wake()
            return None
        self._asked += 1
        return self._leases.terms(1)

    def _take(
        self, loops: asyncio.TaskGroup, claimed: Sequence[ClaimedChunk] | None
    ) -> None:
        was_full = not self._room
        self._asked -= 1
        for one in claimed or ():
            loops.create_task(self._start(one, self._hold(one)))
        if claimed or claimed is None or was_full:
            self.wake()

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            await self.renew()

    async def renew(self) -> None:
        """Put off the end of the leases on all open chunks."""
        by_lease: dict[int, list[OpenChunk]] = defaultdict(list)
        for chunk in self._open.values():
            by_lease[chunk.lease_id].append(chunk)
        for lease_id, chunks in by_lease.items():
            expires = self._clock.monotonic() + LEASE_SECONDS
            ids = [chunk.id for chunk in chunks]
            try:
                await self._deliveries.renew(
                    ids, lease_id=lease_id, until=self._leases.until()
                )
            except (WriteFailed, StorageBusy) as error:
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
            await wait_for(self._wake, POLL_SECONDS)

    async def _fill(self) -> None:
        """Claim chunks until there are no more, or no room.

        One first, so that it is under way while the next are read, then twice as many
        each time: a claim waits for all that is being written, which on a busy hub
        takes longer than to deliver a chunk. Of small ones, of topics with few
        subscribers, as many as there is room for.
        """
        at_once = 1
        while room := self._room:
            claimed = await self._claim(min(room, at_once))
            for one in claimed:
                await self._start(one, self._hold(one))
            if not claimed:
                return
            is_small = len(claimed[-1].pending) < SMALL_CHUNK
            at_once = self._limit if is_small else min(2 * at_once, self._limit)

    @property
    def _room(self) -> int:
        """How many chunks may be claimed, each of which may be one of the largest."""
        asked = self._asked
        members = (self._limit - asked) * LARGEST_CHUNK - self._held
        chunks = self._limit * SMALL_PER_LARGE - asked - len(self._open)
        return max(0, min(members // LARGEST_CHUNK, chunks))

    async def _claim(self, room: int) -> list[ClaimedChunk]:
        if not room:
            return []
        try:
            return await self._deliveries.claim_chunks(self._leases.terms(room))
        except (WriteFailed, StorageBusy) as error:
            log.warning("chunks_not_claimed", error=str(error))
            return []

    def _drop_expired(self) -> None:
        """Forget chunks whose lease is over; whoever claims them next delivers them."""
        now = self._clock.monotonic()
        for chunk in list(self._open.values()):
            if chunk.expires <= now:
                log.warning("chunk_lease_expired", chunk=chunk.id)
                self._forget(chunk)

    def _hold(self, claimed: ClaimedChunk) -> OpenChunk:
        chunk = OpenChunk(
            id=claimed.id,
            lease_id=claimed.lease_id,
            expires=self._clock.monotonic() + LEASE_SECONDS,
            members=len(claimed.pending),
            unsettled=len(claimed.pending),
            close=self._close,
        )
        self._open[chunk.id] = chunk
        self._held += chunk.members
        return chunk

    async def _start(self, claimed: ClaimedChunk, chunk: OpenChunk) -> None:
        rendered: dict[
            tuple[str, str, str], NotificationBody | NotRenderable | None
        ] = {}
        members = []
        for index, subscription in claimed.pending:
            key = (subscription.topic, subscription.format, subscription.updates)
            if key not in rendered:  # once for all who get the same
                rendered[key] = await self._document(claimed.record, subscription)
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
                Member(chunk=chunk, first=first, document=document, origin=origin)
            )
        self._first_deliveries.add(members)

    async def _document(
        self, record: Record, subscription: Subscription
    ) -> NotificationBody | NotRenderable | None:
        """What the subscription is sent."""
        try:
            return await self._notifications.document((record,), subscription)
        except NotRenderable as failure:
            return failure

    def _close(self, chunk: OpenChunk) -> None:
        """All its outcomes are durable."""
        if self._open.get(chunk.id) is chunk:
            self._forget(chunk)
        self.wake()

    def _forget(self, chunk: OpenChunk) -> None:
        del self._open[chunk.id]
        self._held -= chunk.members
