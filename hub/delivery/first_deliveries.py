"""First deliveries: a bounded pool of workers sends what chunks bring.

A worker takes one delivery after the other. When its request hangs, its place in the
pool goes to a new worker and it goes on alone; so a healthy chunk is done in a second
or two, whatever a few callbacks do. Feeds take turns. What an origin has no place for
waits a second, and is then left to the catch-up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random

from hub.core.delivery.catch_up import CatchUpProgress
from hub.core.delivery.delivery_outcome import (
    CallbackResponse,
    DeliveryOutcome,
    Verdict,
)
from hub.core.delivery.first_delivery import (
    FirstDelivery,
    delivered,
    not_started,
    nothing_to_send,
    refused,
    set_aside,
)
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.catch_ups import CatchUps
from hub.delivery.ended_subscriptions import RecentlyEnded
from hub.delivery.leases import Leases
from hub.delivery.notifications import NotificationBody
from hub.delivery.webhook import SLOW_SECONDS, Poster
from hub.limits.fair_queue import FairQueue
from hub.runtime.background import DrainingTaskGroup
from hub.runtime.clock import Clock

NEVER = float("inf")


@dataclass(slots=True, eq=False, kw_only=True)
class OpenChunk:
    """A chunk under our lease. ``expires`` is monotonic: nothing starts after it."""

    id: int
    lease_id: int
    expires: float
    members: int
    unsettled: int  # members whose outcome is not yet known
    close: Callable[[OpenChunk], None]  # when all outcomes are durable


@dataclass(slots=True, eq=False, kw_only=True)
class Member:
    """One delivery of a chunk, until it is settled."""

    chunk: OpenChunk
    first: FirstDelivery
    document: NotificationBody
    origin: str
    parked_at: float = NEVER  # monotonic; when its origin first had no place
    aside: tuple[CatchUpProgress, float] | None = (
        None  # it hangs; and its lease's expiry
    )


class FirstDeliveries:
    """``limit`` requests are under way at once, those not counted that hang."""

    def __init__(
        self,
        clock: Clock,
        poster: Poster,
        catch_ups: CatchUps,
        acknowledgements: Acknowledgements,
        leases: Leases,
        random: Random,
        endings: RecentlyEnded,
        *,
        crew: DrainingTaskGroup,
        limit: int,
    ) -> None:
        self._clock = clock
        self._poster = poster
        self._catch_ups = catch_ups
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._random = random
        self._endings = endings
        self._crew = crew
        self._limit = limit
        self._ready = FairQueue[Member](_feed_of)
        self._parked: dict[str, deque[Member]] = {}
        self._workers = 0
        self._stopping = False

    def add(self, members: Sequence[Member]) -> None:
        """Take the members of a chunk; they are begun in this order, many at once, and
        those of other feeds in between."""
        self._ready.add(members)
        self._employ()

    def skip(
        self, chunk: OpenChunk, first: FirstDelivery, *, is_wanted: bool = False
    ) -> None:
        """A member of the chunk for which the record has nothing (left) to send.

        Where it ``is_wanted``, and is not kept or cannot be made, it is left to the
        catch-up, which says so.
        """
        if is_wanted:
            now = self._clock.now()
            self._write(chunk, not_started(first, at=now, due=now))
        else:
            self._write(chunk, nothing_to_send(first))

    def sweep(self) -> None:
        """Leave to the catch-up what has waited a second for its origin."""
        latest = self._clock.monotonic() - SLOW_SECONDS
        for origin, parked in list(self._parked.items()):
            for _ in range(len(parked)):
                member = parked.popleft()
                if member.parked_at <= latest:
                    self._give_up_waiting(member)
                else:
                    parked.append(member)
            if not parked:
                del self._parked[origin]
        self._employ()

    def stop(self) -> None:
        """Begin nothing more; what is not begun stays with its chunk."""
        self._stopping = True

    def _employ(self) -> None:
        """Have as many workers as there is work for, within the limit."""
        for _ in range(min(self._limit - self._workers, len(self._ready))):
            self._workers += 1
            self._crew.start(self._work())

    async def _work(self) -> None:
        """Send one after the other, until none is ready or one hangs."""
        while (member := self._next()) is not None:
            reply = await self._poster.post(
                member.first.subscription,
                member.document,
                member.first.position,
                origin=member.origin,
                move_aside=partial(self._set_aside, member),
            )
            if member.aside is not None:
                catch_up, expires = member.aside
                await self._catch_ups.conclude(
                    catch_up, expires, member.first.position, reply
                )
                return
            self._settle(member, reply)
            self._unpark(member.origin)
        self._workers -= 1

    def _next(self) -> Member | None:
        """The next delivery that may begin."""
        while self._ready and self._may_begin:
            member = self._ready.take()
            if member.chunk.expires <= self._clock.monotonic():
                continue  # no longer ours: whoever claims the chunk next delivers it
            if self._endings.has_ended(member.first.subscription):
                self._write(member.chunk, nothing_to_send(member.first))
                continue
            if self._poster.admits(member.origin):
                return member
            self._park(member)
        return None

    @property
    def _may_begin(self) -> bool:
        return not self._stopping and self._acknowledgements.healthy

    def _settle(self, member: Member, reply: CallbackResponse) -> None:
        if reply.verdict is Verdict.DELIVERED:
            self._write(member.chunk, delivered(member.first, reply))
            return
        now, jitter = self._clock.now(), self._random.random()
        self._write(member.chunk, refused(member.first, reply, at=now, jitter=jitter))

    def _set_aside(self, member: Member) -> None:
        """Its request hangs: from now on it is a straggler's, and its place is free."""
        lease_id = self._leases.new_id()
        settlement = set_aside(
            member.first,
            at=self._clock.now(),
            lease_id=lease_id,
            until=self._leases.until(),
        )
        member.aside = (
            CatchUpProgress.after(member.first, lease_id),
            self._leases.expiry(),
        )
        self._write(member.chunk, settlement)
        self._workers -= 1
        self._unpark(member.origin)
        self._employ()

    def _give_up_waiting(self, member: Member) -> None:
        now = self._clock.now()
        wait = timedelta(seconds=self._poster.postponement(member.origin))
        self._write(member.chunk, not_started(member.first, at=now, due=now + wait))

    def _park(self, member: Member) -> None:
        if member.parked_at == NEVER:
            member.parked_at = self._clock.monotonic()
        self._parked.setdefault(member.origin, deque()).append(member)

    def _unpark(self, origin: str) -> None:
        """A request of this origin is over: two may try, in case its limit grew."""
        parked = self._parked.get(origin)
        if parked is None:
            return
        for _ in range(min(2, len(parked))):
            self._ready.put_back(parked.popleft())
        if not parked:
            del self._parked[origin]

    def _write(self, chunk: OpenChunk, settlement: DeliveryOutcome) -> None:
        written = self._acknowledgements.add(settlement)
        chunk.unsettled -= 1
        if not chunk.unsettled:
            written.add_done_callback(lambda _: chunk.close(chunk))


def _feed_of(member: Member) -> int:
    return member.first.subscription.feed_id
