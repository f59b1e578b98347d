"""Claims as the parts of a hub make them, and as tests do for outcomes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Final

from hub.runtime.clock import Clock
from hub.runtime.work_leases import WorkClaims, WorkLeases
from storage.contract import ClaimStore, Storage
from storage.records import (
    FeedId,
    FeedStatisticsWrite,
    NewPushCallback,
    PushCallback,
    VerificationState,
    VerificationTry,
    WorkKind,
)
from tests.support.waiting import eventually

HOLD: Final = 77
"""The lease of tests."""
ALL_IS_DUE: Final = datetime(2100, 1, 1, tzinfo=UTC)


def claims_of(
    storage: Storage, clock: Clock, is_trusted: Callable[[], bool] = lambda: True
) -> WorkClaims:
    return WorkClaims(storage.claims, WorkLeases(clock, Random(1), is_trusted))


async def hold(
    storage: Storage,
    kind: WorkKind,
    *ids: int,
    now: datetime,
    lease_id: int = HOLD,
    seconds: float = 60.0,
) -> int:
    """Claim all of these, which must be due; returns the lease."""
    held = await storage.claims.claim(
        kind, ids, lease_id=lease_id, seconds=seconds, now=now
    )
    assert held == frozenset(ids)
    return lease_id


async def save_statistics(storage: Storage, *writes: FeedStatisticsWrite) -> None:
    """As maintenance does once they are due."""
    ids = [each.feed_id for each in writes]
    lease_id = await hold(storage, WorkKind.STATISTICS, *ids, now=ALL_IS_DUE)
    assert await storage.feed_statistics.save(writes, lease_id=lease_id) == set(ids)


@asynccontextmanager
async def held_push(storage: Storage, feed_id: FeedId) -> AsyncIterator[int]:
    """While entered, its push is held, under this lease."""
    yield await hold(storage, WorkKind.PUSHES, feed_id, now=ALL_IS_DUE)
    await storage.claims.release(WorkKind.PUSHES, [feed_id], lease_id=HOLD)


async def ask_hub(storage: Storage, new: NewPushCallback) -> None:
    async with held_push(storage, new.feed_id) as lease_id:
        assert await storage.pushes.ask(new, lease_id=lease_id)


async def leave_hub(storage: Storage, callback: PushCallback, until: datetime) -> None:
    async with held_push(storage, callback.feed_id) as lease_id:
        assert await storage.pushes.leave(callback, until, lease_id=lease_id)


async def finish_verification(
    storage: Storage,
    id: int,
    state: VerificationState,
    last: VerificationTry,
    now: datetime,
) -> None:
    lease_id = await hold(storage, WorkKind.VERIFICATIONS, id, now=now)
    assert await storage.verifications.finish(
        id, state, last, kept_until=now, lease_id=lease_id
    )


@dataclass
class LongWork:
    """The claims of somebody whose work lasts, and which of them were renewed."""

    store: ClaimStore
    clock: Clock
    renewed: list[tuple[WorkKind, frozenset[int]]] = field(default_factory=list)
    _is_later: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def claims(self) -> WorkClaims:
        return WorkClaims(self, WorkLeases(self.clock, Random(1)), self._sleep)

    async def go_on(self) -> None:
        """Work until a renewal is due, and is made."""
        count = len(self.renewed)
        self._is_later.set()
        await eventually(lambda: len(self.renewed) > count, seconds=9)

    async def _sleep(self, seconds: float) -> None:
        await self._is_later.wait()
        self._is_later.clear()

    async def claim(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        return await self.store.claim(
            kind, ids, lease_id=lease_id, seconds=seconds, now=now
        )

    async def renew(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        held = await self.store.renew(
            kind, ids, lease_id=lease_id, seconds=seconds, now=now
        )
        self.renewed.append((kind, held))
        return held

    async def release(
        self, kind: WorkKind, ids: Sequence[int], *, lease_id: int
    ) -> None:
        await self.store.release(kind, ids, lease_id=lease_id)
