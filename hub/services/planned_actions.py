"""Plans: what is done to everything that a filter finds, after confirmation.

A plan says how many targets there are and shows some of them. Once confirmed it is
carried out in batches, a batch of each running plan in turn, few targets at once. The
progress of each batch is stored, and after a crash the plan continues there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from hub.runtime.background import work_when_woken
from hub.runtime.clock import Clock
from hub.services.feed_requests import LONGEST_CATEGORY, check_name
from hub.services.plan_targets import PlanTarget, PlanTargets
from hub.services.service_errors import Conflict, ServiceError, TooManyWaiting
from protocols.protocol_errors import InvalidValue
from storage.contract import BulkPlanStore, LogStore, SubscriptionSelectionStore
from storage.errors import NotFound, StorageError, SubscriptionPaused
from storage.records import (
    KIND_OF_FILTER,
    Account,
    AccountId,
    BulkPlan,
    ListPlace,
    PlanAction,
    PlanFilter,
    PlanId,
    PlanKind,
    PlannedItem,
    PlanProgress,
    PlanState,
    SubscriptionCondition,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    UndeliveredFilter,
)

LIFETIME: Final = timedelta(hours=1)
"""How long a plan can be confirmed."""
MOST_OPEN: Final = 20
"""Plans of an account that run, or may still be confirmed."""
KEPT: Final = 50
"""Finished plans of an account that are kept."""
MOST_PLANNED: Final = 1_000_000
SHOWN: Final = 10
"""How many targets of a plan are shown, and how many failures."""
BATCH: Final = 100
FETCHED_AT_ONCE: Final = 16
"""The batch size for fetches, which take as long as servers do."""
AT_ONCE: Final = 4
"""Targets that are acted upon at the same time, except for fetches."""
RETRY_SECONDS: Final = 5.0
"""Seconds between tries while storage fails."""
MOST_UNDELIVERED: Final = 1_000
"""How much of what is not accepted yet is counted."""
LACKING: Final = (SubscriptionHealth.FAILING, SubscriptionHealth.SLOW)
FAILURES_FOUND: Final = timedelta(days=1)
"""How long after a plan was made the failures that its filter found are taken to be
kept; what is older than a week is not."""
FAULT: Final = "an internal error; the log has details"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class UndeliveredCount:
    """What callbacks have not accepted; ``has_more``: more than that. ``is_least``:
    failures by which a filter finds it may no longer be kept, so there may be more."""

    count: int
    has_more: bool = False
    is_least: bool = False

    @property
    def is_known(self) -> bool:
        return self.count > 0 or not self.is_least


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPage:
    """A page of plans, by id. ``next``: the ``after`` of the following page, None after
    the last."""

    plans: tuple[BulkPlan, ...]
    next: PlanId | None


class PlanService:
    def __init__(
        self,
        plans: BulkPlanStore,
        log_store: LogStore,
        subscriptions: SubscriptionSelectionStore,
        targets: Mapping[PlanKind, PlanTargets],
        clock: Clock,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._plans = plans
        self._log = log_store
        self._subscriptions = subscriptions
        self._targets = targets
        self._clock = clock
        self._retry_seconds = retry_seconds
        self._woken = asyncio.Event()

    async def make(
        self,
        account: Account,
        action: PlanAction,
        wanted: PlanFilter,
        category: str | None = None,
    ) -> BulkPlan:
        """Make a plan that says how many targets it has; nothing is done yet.

        Raises `InvalidValue` and `TooManyWaiting`.
        """
        self._check(action, wanted, category)
        now = self._clock.now()
        plan = BulkPlan(
            account=account,
            action=action,
            wanted=wanted,
            category=category or "",
            log_end=(await self._log.end()).position,
            created_at=now,
            expires_at=now + LIFETIME,
        )
        total = await self._targets[plan.kind].count(plan, MOST_PLANNED + 1)
        if total > MOST_PLANNED:
            raise InvalidValue(
                plan.kind, f"a filter that finds at most {MOST_PLANNED:,}"
            )
        plan = replace(plan, total=total, sample=await self._sample(plan))
        stored = await self._plans.add(plan, most_open=MOST_OPEN, kept=KEPT)
        if stored is None:
            raise TooManyWaiting(
                f"{MOST_OPEN} plans are running or waiting for confirmation; cancel one"
            )
        return stored

    def _check(
        self, action: PlanAction, wanted: PlanFilter, category: str | None
    ) -> None:
        kind = KIND_OF_FILTER[type(wanted)]
        possible = self._targets[kind].actions
        if action not in possible:
            expected = f"one of {', '.join(sorted(possible))} for {kind}"
            raise InvalidValue("action", expected, action)
        if (category is not None) is not (action is PlanAction.SET_CATEGORY):
            raise InvalidValue("category", f"one for {PlanAction.SET_CATEGORY} alone")
        check_name("category", category or "", LONGEST_CATEGORY)

    async def _sample(self, plan: BulkPlan) -> tuple[PlannedItem, ...]:
        found: list[PlannedItem] = []
        after: ListPlace | None = None
        while True:
            page = await self._targets[plan.kind].page(plan, after, SHOWN)
            found += [each.item for each in page.targets]
            after = page.next
            if after is None or len(found) >= SHOWN:
                return tuple(found[:SHOWN])

    async def get(self, plan_id: PlanId, account: AccountId | None = None) -> BulkPlan:
        """A plan. Raises `NotFound`, also if the given account may not see it."""
        plan = await self._plans.get(plan_id)
        if plan is None or not _may_see(account, plan):
            raise NotFound("plan", plan_id)
        return plan

    async def page(
        self, *, after: PlanId, limit: int, account: AccountId | None = None
    ) -> PlanPage:
        """Plans of all accounts; with an account those that it may see."""
        found = await self._plans.page(after=after, limit=limit, account=account)
        return PlanPage(
            plans=tuple(each for each in found if _may_see(account, each)),
            next=found[-1].id if len(found) == limit else None,
        )

    async def latest(self, limit: int) -> list[BulkPlan]:
        """The plans that were made last, by whomever, the newest first."""
        return await self._plans.latest(limit)

    async def conditions_now(
        self, plan: BulkPlan
    ) -> dict[SubscriptionId, SubscriptionCondition]:
        """How the subscriptions are of what was sent again and is shown; empty if
        nothing was."""
        if plan.action is not PlanAction.RETRY or plan.confirmed_at is None:
            return {}
        shown = (*plan.sample, *plan.progress.failures)
        ids = sorted({each.subscription for each in shown if each.subscription})
        found = await self._subscriptions.conditions(ids)
        return {each.id: each for each in found}

    async def undelivered(self, plan: BulkPlan) -> UndeliveredCount | None:
        """What callbacks have not accepted by now of what the filter of a plan finds;
        None unless the plan sends something again, and was confirmed.

        The outcome or the state that the filter names is left aside: what is sent again
        changes it. Of deliveries only those count that lack a record of before the
        plan. So this may be more than what the plan is for.
        """
        if plan.action is not PlanAction.RETRY or plan.confirmed_at is None:
            return None
        wanted = plan.wanted
        if isinstance(wanted, SubscriptionFilter):
            wanted = replace(wanted, health=LACKING, since=None, after=None)
        if isinstance(wanted, UndeliveredFilter):
            wanted = replace(wanted, outcome=None, lacking=plan.log_end)
        found = await self._count(plan, wanted)
        return UndeliveredCount(
            count=min(found, MOST_UNDELIVERED),
            has_more=found > MOST_UNDELIVERED,
            is_least=await self._may_be_more(plan, wanted, found),
        )

    async def _may_be_more(
        self, plan: BulkPlan, wanted: PlanFilter, found: int
    ) -> bool:
        """Whether a filter may have found more when the plan was made, by failures that
        are no longer kept."""
        if not isinstance(wanted, UndeliveredFilter) or not wanted.names_failures:
            return False
        if self._clock.now() - plan.created_at < FAILURES_FOUND:
            return False
        every = UndeliveredFilter(
            subscription_id=wanted.subscription_id, lacking=wanted.lacking
        )
        return found < await self._count(plan, every)

    async def _count(self, plan: BulkPlan, wanted: PlanFilter) -> int:
        """How much a filter finds, up to one more than is counted."""
        return await self._targets[plan.kind].count(
            replace(plan, wanted=wanted), MOST_UNDELIVERED + 1
        )

    async def confirm(self, plan: BulkPlan) -> BulkPlan:
        """Begin to carry out a plan. Raises `Conflict`, also if it was confirmed
        before."""
        confirmed = await self._plans.confirm(plan.id, self._clock.now())
        if confirmed is None:
            raise await self._refusal(plan, "confirmed")
        self._woken.set()
        _tell("plan_confirmed", confirmed)
        return confirmed

    async def cancel(self, plan: BulkPlan) -> BulkPlan:
        """Stop a plan after the batch under way. Raises `Conflict`."""
        cancelled = await self._plans.cancel(plan.id, self._clock.now())
        if cancelled is None:
            raise await self._refusal(plan, "cancelled")
        _tell("plan_cancelled", cancelled)
        return cancelled

    async def _refusal(self, plan: BulkPlan, what: str) -> Conflict:
        state = (await self.get(plan.id)).state_at(self._clock.now())
        return Conflict(f"plan {plan.id} {_REFUSALS[state]}, and cannot be {what}")

    # --- at work ---

    async def run(self) -> None:
        """Carry out confirmed plans, until cancelled."""
        await work_when_woken(
            self._woken,
            self._work,
            failure="plans_not_worked_on",
            retry_seconds=self._retry_seconds,
        )

    async def _work(self) -> bool:
        """Do a batch of each running plan; False if there is none."""
        running = await self._plans.running()
        for plan in running:
            await self._work_on(plan)
        return bool(running)

    async def _work_on(self, plan: BulkPlan) -> None:
        is_fetch = plan.action is PlanAction.FETCH
        limit = FETCHED_AT_ONCE if is_fetch else BATCH
        at_once = FETCHED_AT_ONCE if is_fetch else AT_ONCE
        before = plan.progress
        page = await self._targets[plan.kind].page(plan, before.place, limit)
        failures = await _act_on_all(page.targets, at_once)
        after = PlanProgress(
            place=page.next,
            done=before.done + len(page.targets) - len(failures),
            failed=before.failed + len(failures),
            failures=(*before.failures, *failures)[:SHOWN],
        )
        ended = self._clock.now() if page.next is None else None
        await self._plans.advance(plan.id, after, ended=ended)
        if ended is not None:
            _tell("plan_done", replace(plan, progress=after))


def _may_see(account: AccountId | None, plan: BulkPlan) -> bool:
    """Whether an account may see a plan; None: whoever may see all.

    An administrator's plan is for things of all accounts, so a token of the same
    account sees only plans for the account's own subscriptions.
    """
    if account is None:
        return True
    wanted, is_own = plan.wanted, plan.account.id == account
    return (
        is_own and isinstance(wanted, SubscriptionFilter) and wanted.account == account
    )


_REFUSALS: Final[Mapping[PlanState, str]] = {
    PlanState.PLANNED: "has not been confirmed",
    PlanState.RUNNING: "was confirmed already",
    PlanState.DONE: "is done",
    PlanState.CANCELLED: "was cancelled",
    PlanState.EXPIRED: "was not confirmed in time",
}


def _tell(event: str, plan: BulkPlan) -> None:
    log.info(
        event,
        plan=plan.id,
        action=plan.action,
        kind=plan.kind,
        account=plan.account.name,
        total=plan.total,
        done=plan.progress.done,
        failed=plan.progress.failed,
    )


async def _act_on_all(
    targets: Sequence[PlanTarget], at_once: int
) -> tuple[PlannedItem, ...]:
    """The targets that failed, and why. Raises `StorageError` if nothing can be
    stored."""
    turns = asyncio.Semaphore(at_once)

    async def act(target: PlanTarget) -> str | StorageError:
        async with turns:
            return await _act_on(target)

    async with asyncio.TaskGroup() as tasks:
        acting = [tasks.create_task(act(each)) for each in targets]
    failures = []
    for target, task in zip(targets, acting, strict=True):
        reason = task.result()
        if isinstance(reason, StorageError):
            raise reason
        if reason:
            failures.append(replace(target.item, note=reason))
    return tuple(failures)


async def _act_on(target: PlanTarget) -> str | StorageError:
    """Act upon a target; returns why it failed, or "". An error of storage is returned
    as such, since it is no fault of the target."""
    try:
        await target.act()
    except (ServiceError, InvalidValue, NotFound, SubscriptionPaused) as error:
        return str(error)
    except StorageError as error:
        return error
    except Exception:
        log.exception("planned_action_failed", target=target.item.id)
        return FAULT
    return ""
