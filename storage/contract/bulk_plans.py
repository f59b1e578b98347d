"""Plans for actions on many targets: made, confirmed, and carried out."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from storage.records import AccountId, BulkPlan, PlanId, PlanProgress


class BulkPlanStore(Protocol):
    async def add(
        self, plan: BulkPlan, *, most_open: int, kept: int
    ) -> BulkPlan | None:
        """Store a new plan, and forget its account's oldest that are over.

        None, and nothing stored: ``most_open`` of the account's are running, or may
        still be confirmed. Of those that are over ``kept`` stay.
        """
        ...

    async def get(self, plan_id: PlanId) -> BulkPlan | None: ...

    async def page(
        self, *, after: PlanId, limit: int, account: AccountId | None = None
    ) -> list[BulkPlan]:
        """Plans by id, of all accounts or of one."""
        ...

    async def latest(self, limit: int) -> list[BulkPlan]:
        """Those of all accounts that were made last, the newest first."""
        ...

    async def running(self) -> list[BulkPlan]:
        """Those that are confirmed and not over, by id."""
        ...

    async def confirm(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        """Let it run; None: it cannot be confirmed, or not any more."""
        ...

    async def cancel(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        """What is done stays done; None: it is over, or there is none."""
        ...

    async def advance(
        self, plan_id: PlanId, progress: PlanProgress, *, ended: datetime | None
    ) -> None:
        """Note how far it is; ``ended``: there is nothing left. One that was cancelled
        meanwhile stays so."""
        ...
