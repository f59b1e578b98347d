"""`storage.contract.BulkPlanStore` on PostgreSQL."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from storage.postgres.connections import Connections
from storage.records import AccountId, BulkPlan, PlanId, PlanProgress
from storage.sqlite.bulk_plans import read_plan

_PLANS: Final = (
    "SELECT p.id, p.account_id, a.name, p.action, p.kind, p.wanted, p.category, p.head,"
    " p.total, p.sample, p.state, p.created_at, p.expires_at, p.confirmed_at,"
    " p.finished_at, p.place_id, p.place_key, p.done, p.failed, p.failures"
    " FROM plans p JOIN accounts a ON a.id = p.account_id"
)
_ADD: Final = (
    "SELECT add_plan(%(account)s, %(action)s, %(kind)s, %(wanted)s, %(category)s,"
    " %(head)s, %(total)s, %(sample)s, %(now)s, %(until)s, %(most_open)s, %(kept)s)"
)
_CONFIRM: Final = (
    "UPDATE plans SET state = 'running', confirmed_at = %(now)s"
    " WHERE id = %(id)s AND state = 'planned' AND expires_at > %(now)s"
)
_CANCEL: Final = (
    "UPDATE plans SET state = 'cancelled', finished_at = %(now)s WHERE id = %(id)s"
    " AND (state = 'running' OR state = 'planned' AND expires_at > %(now)s)"
)
_ADVANCE: Final = """
UPDATE plans SET place_id = %(place_id)s, place_key = %(place_key)s, done = %(done)s,
    failed = %(failed)s, failures = %(failures)s,
    finished_at = CASE state WHEN 'running' THEN %(ended)s::bigint
        ELSE finished_at END,
    state = CASE WHEN state = 'running' AND %(ended)s::bigint IS NOT NULL THEN 'done'
        ELSE state END
WHERE id = %(id)s
"""


class PostgresBulkPlans:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(
        self, plan: BulkPlan, *, most_open: int, kept: int
    ) -> BulkPlan | None:
        parameters = {
            "account": plan.account.id,
            "action": plan.action.value,
            "kind": plan.kind.value,
            "wanted": msgspec.json.encode(plan.wanted).decode(),
            "category": plan.category,
            "head": plan.log_end,
            "total": plan.total,
            "sample": msgspec.json.encode(plan.sample).decode(),
            "now": plan.created_at,
            "until": plan.expires_at,
            "most_open": most_open,
            "kept": kept,
        }
        ((plan_id,),) = await self._connections.write(_ADD, parameters)
        return None if plan_id is None else await self.get(plan_id)

    async def get(self, plan_id: PlanId) -> BulkPlan | None:
        row = await self._connections.first(f"{_PLANS} WHERE p.id = %s", (plan_id,))
        return None if row is None else read_plan(row)

    async def page(
        self, *, after: PlanId, limit: int, account: AccountId | None = None
    ) -> list[BulkPlan]:
        whose = "" if account is None else " AND p.account_id = %(account)s"
        rows = await self._connections.all(
            f"{_PLANS} WHERE p.id > %(after)s{whose} ORDER BY p.id LIMIT %(limit)s",
            {"after": after, "limit": limit, "account": account},
        )
        return [read_plan(row) for row in rows]

    async def latest(self, limit: int) -> list[BulkPlan]:
        rows = await self._connections.all(
            f"{_PLANS} ORDER BY p.id DESC LIMIT %s", (limit,)
        )
        return [read_plan(row) for row in rows]

    async def running(self) -> list[BulkPlan]:
        rows = await self._connections.all(
            f"{_PLANS} WHERE p.state = 'running' ORDER BY p.id"
        )
        return [read_plan(row) for row in rows]

    async def confirm(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        return await self._change(_CONFIRM, plan_id, now)

    async def cancel(self, plan_id: PlanId, now: datetime) -> BulkPlan | None:
        return await self._change(_CANCEL, plan_id, now)

    async def _change(
        self, sql: str, plan_id: PlanId, now: datetime
    ) -> BulkPlan | None:
        is_changed = await self._connections.change(sql, {"id": plan_id, "now": now})
        return await self.get(plan_id) if is_changed else None

    async def advance(
        self, plan_id: PlanId, progress: PlanProgress, *, ended: datetime | None
    ) -> None:
        place = progress.place
        parameters = {
            "id": plan_id,
            "place_id": place and place.id,
            "place_key": place and place.key,
            "done": progress.done,
            "failed": progress.failed,
            "failures": msgspec.json.encode(progress.failures).decode(),
            "ended": ended,
        }
        await self._connections.write(_ADVANCE, parameters)
