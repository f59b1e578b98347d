"""Plans of the model."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from storage.records import AccountId, BulkPlan, PlanId, PlanProgress, PlanState

from .state import State, milliseconds

OPEN = (PlanState.PLANNED, PlanState.RUNNING)


class MemoryBulkPlans:
    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def _plans(self) -> dict[PlanId, BulkPlan]:
        return self._state.plans

    async def add(
        self, plan: BulkPlan, *, most_open: int, kept: int
    ) -> BulkPlan | None:
        now = milliseconds(plan.created_at)
        own = [it for it in self._plans.values() if it.account.id == plan.account.id]
        over = [it.id for it in own if it.state_at(now) not in OPEN]
        if len(own) - len(over) >= most_open:
            return None
        for each in over[: len(over) - kept]:
            del self._plans[each]
        plan_id = PlanId(self._state.next_id("plan"))
        expires_at = milliseconds(plan.expires_at)
        self._plans[plan_id] = replace(
            plan, id=plan_id, created_at=now, expires_at=expires_at
        )
        return self._plans[plan_id]

    async def get(self, plan_id: PlanId) -> BulkPlan | None:
        return self._plans.get(plan_id)

    async def page(
        self, *, after: PlanId, limit: int, account: AccountId | None = None
    ) -> list[BulkPlan]:
        return [
            each
            for each in self._plans.values()
            if each.id > after and account in (None, each.account.id)
        ][:limit]

    async def latest(self, limit: int) -> list[BulkPlan]:
        return [*self._plans.values()][::-1][:limit]

    async def running(self) -> list[BulkPlan]:
        return [
            each for each in self._plans.values() if each.state is PlanState.RUNNING
        ]

    async def confirm(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        now = milliseconds(now)
        plan = self._plans.get(plan_id)
        if plan is None or plan.state_at(now) is not PlanState.PLANNED:
            return None
        return self._store(replace(plan, state=PlanState.RUNNING, confirmed_at=now))

    async def cancel(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        now = milliseconds(now)
        plan = self._plans.get(plan_id)
        if plan is None or plan.state_at(now) not in OPEN:
            return None
        return self._store(replace(plan, state=PlanState.CANCELLED, finished_at=now))

    async def advance(
        self, plan_id: PlanId, progress: PlanProgress, *, ended: datetime | None
    ) -> None:
        plan = self._store(replace(self._plans[plan_id], progress=progress))
        if plan.state is PlanState.RUNNING and ended is not None:
            finished_at = milliseconds(ended)
            self._store(replace(plan, state=PlanState.DONE, finished_at=finished_at))

    def _store(self, plan: BulkPlan) -> BulkPlan:
        self._plans[plan.id] = plan
        return plan
