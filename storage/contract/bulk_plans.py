"""Plans for actions on many targets: made, confirmed, and carried out."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import AccountId, BulkPlan, PlanId, PlanProgress


class BulkPlanStore(Protocol):
    async def add(
        self, plan: BulkPlan, *, most_open: int, kept: int
    ) -> BulkPlan | None:
        """Store a new plan, and delete the oldest finished plans of its account.

        Returns None, and stores nothing, if ``most_open`` plans of the account are
        running or may still be confirmed. The last ``kept`` finished plans stay.
        """
        ...

    async def get(self, plan_id: PlanId) -> BulkPlan | None: ...

    async def page(
        self, *, after: PlanId, limit: int, account: AccountId | None = None
    ) -> list[BulkPlan]:
        """Plans by id, of all accounts or of one."""
        ...

    async def latest(self, limit: int) -> list[BulkPlan]:
        """The plans of all accounts that were made last, the newest first."""
        ...

    async def running(self) -> list[BulkPlan]:
        """Plans that are confirmed and not finished, by id."""
        ...

    async def confirm(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        """Let the plan run; None if it cannot, or can no longer, be confirmed."""
        ...

    async def cancel(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        """Stop the plan; what it has done stays done. None if it has ended or does not
        exist."""
        ...

    async def advance(
        self, plan_id: PlanId, progress: PlanProgress, *, ended: datetime | None
    ) -> None:
        """Store the plan's progress; ``ended``: when it finished, None while work is
        left. A plan that was cancelled meanwhile stays cancelled."""
        ...
