"""One catch-up from where it stands to the end of the log, or to its next failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import msgspec
import structlog

from hub.core.delivery.catch_up import (
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
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.catch_up_requests import CatchUpRequests
from hub.delivery.ended_subscriptions import RecentlyEnded
from hub.delivery.leases import Leases
from hub.delivery.webhook import Poster
from hub.limits.origin_limiter import origin_of
from hub.runtime.clock import Clock
from storage.contract import LogStore
from storage.records import Flushed, Position

TURN_SECONDS = 2.0
"""How long a catch-up goes on while others wait to begin."""

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class RunningCatchUp:
    """A catch-up under way; storage follows with each flush.

    ``is_lost``: a write showed that the lease is no longer ours, but somebody else's,
    or that the subscription ended. ``expires``: from then on (monotonic) it may be.
    From ``turn_ends`` (monotonic) it makes way for others, if there are any.
    """

    catch_up: CatchUpProgress
    origin: str
    move_aside: Callable[[], None]  # called when a request hangs, if need be again
    expires: float
    turn_ends: float
    is_lost: bool = False

    def follow(self, written: asyncio.Future[Flushed], expires: float) -> None:
        """Learn from a write what became of the lease, which it puts off."""

        def learn(written: asyncio.Future[Flushed]) -> None:
            if written.cancelled():
                return
            if self.catch_up.subscription.id in written.result().lost:
                self.is_lost = True
            self.expires = max(self.expires, expires)

        written.add_done_callback(learn)


class CatchUps:
    """``are_waited_for``: there is more to catch up than may be in hand at once.

    Then each goes on for its turn only and is given back as it stands: a hundred
    subscribers with days to catch up must not hold up one with a single record.
    """

    def __init__(
        self,
        log_store: LogStore,
        clock: Clock,
        poster: Poster,
        requests: CatchUpRequests,
        acknowledgements: Acknowledgements,
        leases: Leases,
        random: Random,
        endings: RecentlyEnded,
    ) -> None:
        self._log = log_store
        self._clock = clock
        self._poster = poster
        self._requests = requests
        self._acknowledgements = acknowledgements
        self._leases = leases
        self._random = random
        self._endings = endings
        self.are_waited_for = False
        self._stopping = False

    def stop(self) -> None:
        """Let each running end with the request it is making."""
        self._stopping = True

    async def pursue(
        self, catch_up: CatchUpProgress, move_aside: Callable[[], None]
    ) -> None:
        """Send record after record. ``move_aside``: a request has begun to hang."""
        expires = self._leases.expiry()
        await self._go_on(self._begin(catch_up, expires, move_aside))

    async def conclude(
        self,
        catch_up: CatchUpProgress,
        expires: float,
        last: Position,
        reply: CallbackResponse,
    ) -> None:
        """Take over a first delivery that hung, when its reply has come at last.

        ``expires`` is the (monotonic) end of the lease that its straggler began with.
        """
        running = self._begin(catch_up, expires, lambda: None)
        if await self._settle(running, last, reply):
            await self._go_on(running)

    def _begin(
        self, catch_up: CatchUpProgress, expires: float, move_aside: Callable[[], None]
    ) -> RunningCatchUp:
        return RunningCatchUp(
            catch_up,
            origin_of(catch_up.subscription.callback),
            move_aside,
            expires,
            turn_ends=self._clock.monotonic() + TURN_SECONDS,
        )

    async def _go_on(self, running: RunningCatchUp) -> None:
        while await self._step(running):
            pass

    async def _step(self, running: RunningCatchUp) -> bool:
        """Make the next request; whether there is another step after it."""
        await self._acknowledgements.until_healthy()
        now = self._clock.monotonic()
        if running.is_lost or running.expires <= now:
            return False
        is_over = self.are_waited_for and running.turn_ends <= now
        if self._stopping or is_over:
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
        if not self._poster.admits(running.origin):
            return self._postpone(running)
        reply = await self._poster.post(
            running.catch_up.subscription,
            request.document,
            request.last,
            origin=running.origin,
            move_aside=running.move_aside,
            failures=running.catch_up.failures,
            missed=running.catch_up.missed,
        )
        return await self._settle(running, request.last, reply)

    async def _announce(self, running: RunningCatchUp, last: Position) -> None:
        """Have it written how far a batch goes: it is to be the same after a crash."""
        if running.catch_up.tried_to != last:
            running.catch_up = msgspec.structs.replace(running.catch_up, tried_to=last)
            until = self._leases.until()
            await asyncio.shield(
                self._write(running, announced(running.catch_up, until=until))
            )

    def _is_over(self, running: RunningCatchUp) -> bool:
        """Whether the subscription has ended: its straggler is gone, and nothing is
        left to be written."""
        return running.is_lost or self._endings.has_ended(running.catch_up.subscription)

    async def _settle(
        self, running: RunningCatchUp, last: Position, reply: CallbackResponse
    ) -> bool:
        now = self._clock.now()
        catch_up = running.catch_up
        if reply.verdict is Verdict.DELIVERED:
            until = self._leases.until()
            self._write(running, progressed(catch_up, last, reply, at=now, until=until))
            running.catch_up = catch_up.delivered(last)
            return True
        head = await self._log.end()
        settlement = held_up(
            catch_up,
            last,
            reply,
            at=now,
            jitter=self._random.random(),
            head=head.position,
        )
        lost = settlement.given_up
        if lost is not None:
            log.warning(
                "delivery_given_up",
                subscription=lost.subscription_id,
                first=lost.first,
                last=lost.last,
                reason=lost.reason,
            )
        self._write(running, settlement)
        return False

    def _give_up(self, running: RunningCatchUp, last: Position, reason: str) -> bool:
        """What is wanted cannot be sent any more: that is told, not skipped."""
        now = self._clock.now()
        settlement = unsendable(running.catch_up, last, at=now, reason=reason)
        self._write(running, settlement)
        return False

    async def _finish(self, running: RunningCatchUp, last: Position) -> bool:
        settlement = finished(running.catch_up, last, until=self._leases.until())
        flushed = await asyncio.shield(self._write(running, settlement))
        running.catch_up = msgspec.structs.replace(running.catch_up, position=last)
        return running.catch_up.subscription.id in flushed.unfinished

    def _postpone(self, running: RunningCatchUp) -> bool:
        """Its origin has no place. Where that is known at once the log is not read:
        of an origin that is down there may be thousands who ask in vain."""
        wait = self._poster.postponement(running.origin)
        return self._release(running, wait=wait)

    def _release(self, running: RunningCatchUp, *, wait: float) -> bool:
        due = self._clock.now() + timedelta(seconds=wait)
        self._write(running, released(running.catch_up, due=due))
        return False

    def _write(
        self, running: RunningCatchUp, settlement: DeliveryOutcome
    ) -> asyncio.Future[Flushed]:
        expires = self._leases.expiry()
        written = self._acknowledgements.add(settlement)
        running.follow(written, expires)
        return written
