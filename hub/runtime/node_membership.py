"""This hub as a node of its database: it joins, renews its term, and leaves.

On SQLite the lock of the file keeps others out, and a term has no end. On a server, a
hub that was killed stays a member until its term is over, and its successor waits for
that; a hub that finds it was replaced ends.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from hub.runtime.clock import SystemClock
from storage.contract import Storage
from storage.errors import StorageBusy, StorageError, StorageFull, TermEnded
from storage.records import (
    ControlEvent,
    DecisionsMissed,
    EpochBegan,
    NewNode,
    NodeTerm,
)

RENEWALS: Final = 5
"""Renewals in a term, so that a few may fail."""
MARGIN: Final = 1.0
"""Seconds before the end of a term from which on it is not relied on: clocks may run at
slightly different rates, and what begins takes a moment."""
JOINING_SECONDS: Final = 20.0
"""How long to wait for another node's term to end: longer than the term of a killed
hub."""
JOINING_PAUSE: Final = 0.5
LEAVING_SECONDS: Final = 2.0
MISSED_TOLD: Final = 3_600.0
MOST_MISSED: Final = 1_000
REPEATED: Final = 2
"""How many decisions must have been unreadable within so many seconds before a warning
tells of them."""
ONLY_NODE: Final = NewNode(name="hub", is_alone=True)
_CLOCK: Final = SystemClock()

log = structlog.get_logger()


class MembershipLost(Exception):
    """What this hub knows of its database no longer holds; it has to start anew."""


class NodeMembership:
    """Keeps this hub's membership. ``sleep`` takes seconds, ``monotonic`` returns them;
    tests pass their own."""

    def __init__(
        self,
        storage: Storage,
        node: NewNode = ONLY_NODE,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        monotonic: Callable[[], float] = _CLOCK.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._trusted_until = math.inf
        self._storage = storage
        self._node = node
        self._sleep = sleep
        self._term: NodeTerm | None = None
        self._has_joined = asyncio.Event()
        self._epoch = ""
        self._is_late = False
        self._missed: deque[tuple[float, str]] = deque(maxlen=MOST_MISSED)

    async def join(self) -> None:
        """Wait until another hub has left, or its term is over.

        On a full disk, joining is left to `ensure_joined`, once there is room. Raises
        `StorageError`: `StorageBusy` if another hub keeps running.
        """
        for tries in range(int(JOINING_SECONDS / JOINING_PAUSE)):
            try:
                return await self.ensure_joined()
            except StorageFull:
                return None
            except StorageBusy as error:
                if not tries:
                    log.warning("database_waited_for", reason=str(error))
                await self._sleep(JOINING_PAUSE)
        return await self.ensure_joined()

    async def ensure_joined(self) -> None:
        """Join, unless this hub has joined already. Raises `StorageError`."""
        if self._term is None:
            asked_at = self._monotonic()
            self._trust(await self._storage.membership.join(self._node), asked_at)
            self._has_joined.set()

    def is_trusted(self) -> bool:
        """Whether the term, once there is one, cannot be over by now.

        It is counted from before it was asked for, and ends a little early. If not,
        another node may have taken over what this hub holds: it begins nothing until
        the term is renewed.
        """
        until = self._trusted_until
        return until == math.inf or self._monotonic() < until

    def _trust(self, term: NodeTerm, asked_at: float) -> None:
        self._term = term
        if term.seconds is not None:
            self._trusted_until = asked_at + term.seconds - MARGIN

    async def leave(self) -> None:
        """End the term, so that a successor need not wait. If this fails, the successor
        waits."""
        if self._term is None:
            return
        with suppress(StorageError, TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                await self._storage.membership.leave(self._term)

    async def run(self) -> None:
        """Renew the term, until cancelled. Raises `MembershipLost`."""
        with self._storage.control.watch(self._note):
            await self._has_joined.wait()
            while not self._epoch:
                await self._renew()
        raise MembershipLost(
            "the database was restored, or another server took over: its log may lack"
            f" its end, and begins epoch {self._epoch}"
        )

    async def _renew(self) -> None:
        term = self._term
        if term is None or term.seconds is None:
            await asyncio.Event().wait()  # it has no end
            return
        await self._sleep(term.seconds / RENEWALS)
        asked_at = self._monotonic()
        try:
            self._trust(await self._storage.membership.renew(term), asked_at)
        except TermEnded as error:
            raise MembershipLost("another hub has taken over the database") from error
        except StorageError as error:
            if not self._is_late:
                log.warning("term_not_renewed", error=str(error))
            self._is_late = True
        else:
            if self._is_late:
                log.info("term_renewed")
            self._is_late = False

    def _note(self, event: ControlEvent) -> None:
        match event:
            case EpochBegan(epoch):
                self._epoch = epoch
            case DecisionsMissed(reason):
                log.error("decision_not_read", reason=reason)
                self._missed.append((self._monotonic(), reason))
            case _:
                pass

    def warning(self) -> str:
        """That decisions of other hubs could not be read, if it was repeated in the
        last hour; else ""."""
        earliest = self._monotonic() - MISSED_TOLD
        missed = [each for at, each in self._missed if at > earliest]
        if len(missed) < REPEATED:
            return ""
        return (
            f"{len(missed)} decisions of other hubs could not be read in the last hour,"
            f" so all that they may have changed was read anew; the last: {missed[-1]}"
        )
