"""`storage.contract.BulkPlanStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from storage.records import (
    KIND_OF_FILTER,
    Account,
    AccountId,
    BulkPlan,
    ListPlace,
    PlanAction,
    PlanFilter,
    PlanId,
    PlannedItem,
    PlanProgress,
    PlanState,
)
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    to_milliseconds,
    to_milliseconds_or_none,
)
from storage.sqlite.readers import Readers, Row
from storage.sqlite.writer import Writer

_PLANS: Final = (
    "SELECT p.id, p.account_id, a.name, p.action, p.kind, p.wanted, p.category, p.head,"
    " p.total, p.sample, p.state, p.created_at, p.expires_at, p.confirmed_at,"
    " p.finished_at, p.place_id, p.place_key, p.done, p.failed, p.failures"
    " FROM plans p JOIN accounts a ON a.id = p.account_id"
)
_IS_OPEN: Final = "(state = 'running' OR state = 'planned' AND expires_at > :now)"
_filters: Final[dict[str, msgspec.json.Decoder[PlanFilter]]] = {
    kind: msgspec.json.Decoder(type) for type, kind in KIND_OF_FILTER.items()
}
_items: Final = msgspec.json.Decoder(tuple[PlannedItem, ...])


class SqliteBulkPlans:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(
        self, plan: BulkPlan, *, most_open: int, kept: int
    ) -> BulkPlan | None:
        parameters = {**_parameters(plan), "kept": kept}
        plan_id = await self._writer.submit(partial(_add, parameters, most_open))
        return None if plan_id is None else await self.get(plan_id)

    async def get(self, plan_id: PlanId) -> BulkPlan | None:
        row = await self._readers.first(f"{_PLANS} WHERE p.id = ?", (plan_id,))
        return None if row is None else read_plan(row)

    async def page(
        self, *, after: PlanId, limit: int, account: AccountId | None = None
    ) -> list[BulkPlan]:
        whose = "" if account is None else " AND p.account_id = :account"
        rows = await self._readers.all(
            f"{_PLANS} WHERE p.id > :after{whose} ORDER BY p.id LIMIT :limit",
            {"after": after, "limit": limit, "account": account},
        )
        return [read_plan(row) for row in rows]

    async def latest(self, limit: int) -> list[BulkPlan]:
        rows = await self._readers.all(f"{_PLANS} ORDER BY p.id DESC LIMIT ?", (limit,))
        return [read_plan(row) for row in rows]

    async def running(self) -> list[BulkPlan]:
        rows = await self._readers.all(
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
        parameters = {"id": plan_id, "now": to_milliseconds(now)}
        is_changed = await self._writer.submit(partial(_update, sql, parameters))
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
            "ended": to_milliseconds_or_none(ended),
        }
        await self._writer.submit(partial(_update, _ADVANCE, parameters))


def _parameters(plan: BulkPlan) -> dict[str, object]:
    return {
        "account": plan.account.id,
        "action": plan.action,
        "kind": plan.kind,
        "wanted": msgspec.json.encode(plan.wanted).decode(),
        "category": plan.category,
        "head": plan.log_end,
        "total": plan.total,
        "sample": msgspec.json.encode(plan.sample).decode(),
        "now": to_milliseconds(plan.created_at),
        "expires_at": to_milliseconds(plan.expires_at),
    }


def read_plan(row: Row) -> BulkPlan:
    plan_id, account_id, name, action, kind, wanted, category, log_end, total, *rest = (
        row
    )
    sample, state, created, expires, confirmed, finished, *progress = rest
    return BulkPlan(
        id=plan_id,
        account=Account(id=account_id, name=name),
        action=PlanAction(action),
        wanted=_filters[kind].decode(wanted),
        category=category,
        log_end=log_end,
        total=total,
        sample=_items.decode(sample),
        state=PlanState(state),
        created_at=from_milliseconds(created),
        expires_at=from_milliseconds(expires),
        confirmed_at=from_milliseconds_or_none(confirmed),
        finished_at=from_milliseconds_or_none(finished),
        progress=_read_progress(*progress),
    )


def _read_progress(
    place_id: int | None, place_key: str | None, done: int, failed: int, failures: str
) -> PlanProgress:
    return PlanProgress(
        place=None if place_id is None else ListPlace(place_id, place_key),
        done=done,
        failed=failed,
        failures=_items.decode(failures),
    )


# --- units of work ---

_CONFIRM: Final = (
    "UPDATE plans SET state = 'running', confirmed_at = :now"
    " WHERE id = :id AND state = 'planned' AND expires_at > :now"
)
_CANCEL: Final = (
    "UPDATE plans SET state = 'cancelled', finished_at = :now"
    f" WHERE id = :id AND {_IS_OPEN}"
)
_ADVANCE: Final = (
    "UPDATE plans SET place_id = :place_id, place_key = :place_key, done = :done,"
    " failed = :failed, failures = :failures,"
    " finished_at = iif(state = 'running', :ended, finished_at),"
    " state = iif(state = 'running' AND :ended IS NOT NULL, 'done', state)"
    " WHERE id = :id"
)


def _add(
    parameters: dict[str, object], most_open: int, connection: sqlite3.Connection
) -> PlanId | None:
    ((open_plans,),) = connection.execute(
        f"SELECT count(*) FROM plans WHERE account_id = :account AND {_IS_OPEN}",
        parameters,
    ).fetchall()
    if open_plans >= most_open:
        return None
    connection.execute(
        "DELETE FROM plans WHERE id IN (SELECT id FROM plans"
        f" WHERE account_id = :account AND NOT {_IS_OPEN}"
        " ORDER BY id DESC LIMIT -1 OFFSET :kept)",
        parameters,
    )
    added = connection.execute(
        "INSERT INTO plans (account_id, action, kind, wanted, category, head, total,"
        " sample, state, created_at, expires_at) VALUES (:account, :action, :kind,"
        " :wanted, :category, :head, :total, :sample, 'planned', :now, :expires_at)",
        parameters,
    )
    return PlanId(added.lastrowid or 0)


def _update(
    sql: str, parameters: Mapping[str, object], connection: sqlite3.Connection
) -> bool:
    return connection.execute(sql, parameters).rowcount > 0
