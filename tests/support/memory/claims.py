"""Claims of the model, to denials and verifications: it knows no other work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from storage.records import SubscriptionState, WorkKind

from .state import State
from .verifications import MemoryVerifications


class MemoryClaims:
    def __init__(self, state: State, verifications: MemoryVerifications) -> None:
        self._state = state
        self._verifications = verifications

    async def claim(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        due = self._due(kind, now)
        claimed = frozenset(
            each
            for each in ids
            if each in due and not self._state.holds(kind, each, now)
        )
        for each in claimed:
            until = now + timedelta(seconds=seconds)
            self._state.claims[kind, each] = (lease_id, until)
        return claimed

    def _due(self, kind: WorkKind, now: datetime) -> set[int]:
        if kind is WorkKind.VERIFICATIONS:
            return {each.stored.id for each in self._verifications.listed(now)}
        assert kind is WorkKind.DENIALS
        return {
            each.id
            for each in self._state.subscriptions.values()
            if each.state is SubscriptionState.ENDING
        }

    async def renew(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        renewed = frozenset(
            each
            for each in ids
            if self._state.holds(kind, each, now)
            and self._state.claims[kind, each][0] == lease_id
        )
        for each in renewed:
            until = now + timedelta(seconds=seconds)
            self._state.claims[kind, each] = (lease_id, until)
        return renewed

    async def release(
        self, kind: WorkKind, ids: Sequence[int], *, lease_id: int
    ) -> None:
        for each in ids:
            self._state.end_claim(kind, each, lease_id)
