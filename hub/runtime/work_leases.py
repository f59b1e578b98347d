"""Leases: a random id, and an end by the engine's clock.

Those on chunks and retries are renewed by who delivers them. All else that is due is
claimed for `WORK_SECONDS`, longer than most of it takes, and renewed while it is worked
on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Final

import structlog

from hub.runtime.clock import Clock
from storage.contract import ClaimStore
from storage.errors import StorageError
from storage.records import ClaimTerms, WorkKind

LEASE_SECONDS = 60.0
"""Three times the longest request, so that progress renews a lease in time."""

RENEWAL_SECONDS = LEASE_SECONDS / 3

WORK_SECONDS: Final = 300.0
"""A lease lasts so long after it was taken or last renewed. What a node held whose term
has ended is free at once."""

WORK_RENEWAL_SECONDS: Final = WORK_SECONDS / 3

LONGEST_WORK_SECONDS: Final = 1_800.0
"""Longer than the deadlines of all requests together that one piece of work may make.
After so long it is taken to be stuck, and its lease ends."""

log = structlog.get_logger()


class WorkLeases:
    """``has_term``: whether this node is still a member as far as it can know; if not,
    its leases may have been given to others."""

    def __init__(
        self,
        clock: Clock,
        random: Random,
        has_term: Callable[[], bool] = lambda: True,
    ) -> None:
        self.clock = clock
        self._random = random
        self.are_trusted = has_term

    def new_id(self) -> int:
        """A new random id; never 0, which stands for no lease."""
        return self._random.getrandbits(62) | 1

    def terms(self, limit: int, seconds: float = LEASE_SECONDS) -> ClaimTerms:
        """The terms on which up to ``limit`` pieces of work are claimed now, for so
        many seconds."""
        return ClaimTerms(
            lease_id=self.new_id(),
            seconds=seconds,
            now=self.clock.now(),
            limit=limit,
        )

    def until(self) -> datetime:
        """When a lease ends that is taken or renewed now."""
        return self.clock.now() + timedelta(seconds=LEASE_SECONDS)

    def expiry(self) -> float:
        """The same end in monotonic seconds, which no clock change moves.

        Call this before the lease is taken: by the engine's clock the lease ends no
        earlier.
        """
        return self.clock.monotonic() + LEASE_SECONDS


class WorkClaims:
    """Claims what is due, for all parts of this node, before they begin it.

    ``sleep`` waits for so many seconds of the clock that ``leases`` go by.
    """

    def __init__(
        self,
        claims: ClaimStore,
        leases: WorkLeases,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = claims
        self._sleep = sleep
        self._leases = leases
        self.are_trusted = leases.are_trusted
        self._unreleased: list[tuple[WorkKind, Sequence[int], int]] = []

    async def may_begin(self) -> bool:
        """Whether anything may be begun: not while this node's term may be over.

        Ask before looking for what is due: what could not be given up before is given
        up now. Raises `StorageError`.
        """
        is_trusted = self.are_trusted()
        if is_trusted:
            await self._release_all()
        return is_trusted

    async def claim(
        self, kind: WorkKind, ids: Collection[int]
    ) -> tuple[int, frozenset[int]]:
        """Claim; returns a lease, and which of these are held under it and may be begun
        now. Raises `StorageError`."""
        terms = self._leases.terms(len(ids), WORK_SECONDS)
        if not ids or not self.are_trusted():
            return terms.lease_id, frozenset()
        held = await self._store.claim(
            kind, ids, lease_id=terms.lease_id, seconds=terms.seconds, now=terms.now
        )
        if not self.are_trusted():  # the answer came late
            await self.release(kind, [*held], terms.lease_id)
            held = frozenset()
        return terms.lease_id, held

    @asynccontextmanager
    async def renewed(
        self, kind: WorkKind, ids: Collection[int], lease_id: int
    ) -> AsyncIterator[None]:
        """While entered, that is while these are worked on, their lease is renewed; but
        no further than `LONGEST_WORK_SECONDS` from now, nor once this node's term may
        be over."""
        renewing = asyncio.create_task(
            self._keep_renewing(kind, ids, lease_id), name="claims-renewal"
        )
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait({renewing})

    async def _keep_renewing(
        self, kind: WorkKind, ids: Collection[int], lease_id: int
    ) -> None:
        clock = self._leases.clock
        end = clock.monotonic() + LONGEST_WORK_SECONDS
        while ids:
            await self._sleep(WORK_RENEWAL_SECONDS)
            left = end - clock.monotonic()
            if left <= 0 or not self.are_trusted():
                return
            try:
                ids = await self._store.renew(
                    kind,
                    ids,
                    lease_id=lease_id,
                    seconds=min(WORK_SECONDS, left),
                    now=clock.now(),
                )
            except StorageError as error:
                log.warning(
                    "claims_not_renewed", kind=kind, ids=[*ids], error=str(error)
                )
            except Exception:  # the work goes on, and the next renewal may succeed
                log.exception("claims_renewal_broke", kind=kind, ids=[*ids])

    async def release(self, kind: WorkKind, ids: Sequence[int], lease_id: int) -> None:
        """Give up what is not done. If storage does not take that now, it is done
        later."""
        if ids:
            self._unreleased.append((kind, ids, lease_id))
            try:
                await self._release_all()
            except StorageError as error:
                count = len(self._unreleased)
                log.warning("claims_not_released", count=count, error=str(error))

    async def _release_all(self) -> None:
        while self._unreleased:
            kind, ids, lease_id = last = self._unreleased.pop()
            try:
                await self._store.release(kind, ids, lease_id=lease_id)
            except StorageError:
                self._unreleased.append(last)
                raise
