"""Plans as every engine keeps them: made, confirmed in time, worked through."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Account,
    BulkPlan,
    FeedFilter,
    FeedHealth,
    ListPlace,
    PlanAction,
    PlanFilter,
    PlanId,
    PlannedItem,
    PlanProgress,
    PlanState,
    Position,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    UndeliveredFilter,
    UndeliveredOutcome,
)
from tests.support.storage_scene import START, Scene, at

HOUR = timedelta(hours=1)
OWN = Account(id=OPERATOR, name="operator")
OTHER = Account(id=ANONYMOUS, name="anonymous")
ITEM = PlannedItem(id=7, name="https://a.example/feed", note="failing: answered 500")
UNKNOWN = PlanId(99)


def new(**changes: Any) -> BulkPlan:
    created_at = changes.get("created_at", START)
    plan = BulkPlan(
        account=OWN,
        action=PlanAction.PAUSE,
        wanted=FeedFilter(),
        created_at=created_at,
        expires_at=created_at + HOUR,
    )
    return replace(plan, **changes)


async def add(scene: Scene, **changes: Any) -> BulkPlan:
    plan = await scene.storage.plans.add(new(**changes), most_open=9, kept=9)
    assert plan is not None
    return plan


async def add_confirmed(scene: Scene, **changes: Any) -> BulkPlan:
    plan = await add(scene, **changes)
    confirmed = await scene.storage.plans.confirm(plan.id, at(1))
    assert confirmed is not None
    return confirmed


async def ids(scene: Scene) -> list[int]:
    return [
        each.id for each in await scene.storage.plans.page(after=PlanId(0), limit=9)
    ]


@pytest.mark.parametrize(
    "wanted",
    [
        FeedFilter(
            health=(FeedHealth.FAILING, FeedHealth.GONE),
            category="news",
            text="blog",
            since=at(1.5),
            after=at(-4),
        ),
        SubscriptionFilter(
            health=(SubscriptionHealth.FAILING,),
            account=OPERATOR,
            topic="https://a.example/feed",
            callback="https://you.example/",
        ),
        UndeliveredFilter(
            statuses=(500, 599),
            host="you.example",
            since=at(2),
            subscription_id=SubscriptionId(3),
            outcome=UndeliveredOutcome.RETRIED,
        ),
    ],
)
async def test_a_plan_is_read_back_as_it_was_made(
    scene: Scene, wanted: PlanFilter
) -> None:
    made = new(
        wanted=wanted,
        category="other",
        log_end=Position(12),
        total=1_000,
        sample=(ITEM, ITEM),
    )

    added = await scene.storage.plans.add(made, most_open=1, kept=0)

    assert added is not None
    assert added == replace(made, id=added.id)
    assert await scene.storage.plans.get(added.id) == added
    assert await scene.storage.plans.get(UNKNOWN) is None


async def test_a_plan_is_confirmed_once(scene: Scene) -> None:
    plan, plans = await add(scene), scene.storage.plans

    confirmed = await plans.confirm(plan.id, at(5))

    assert confirmed == replace(plan, state=PlanState.RUNNING, confirmed_at=at(5))
    assert await plans.running() == [confirmed]
    assert await plans.confirm(plan.id, at(6)) is None
    assert await plans.confirm(UNKNOWN, at(6)) is None


async def test_a_plan_can_be_confirmed_until_it_expires(scene: Scene) -> None:
    late, plans = await add(scene), scene.storage.plans
    in_time = await add(scene)

    assert await plans.confirm(in_time.id, START + HOUR - timedelta(milliseconds=1))
    assert await plans.confirm(late.id, START + HOUR) is None
    assert await plans.cancel(late.id, START + HOUR) is None

    found = await plans.get(late.id)
    assert found == late
    assert found.state_at(START + HOUR) is PlanState.EXPIRED


async def test_progress_is_kept_until_all_is_done(scene: Scene) -> None:
    plan, plans = await add_confirmed(scene), scene.storage.plans
    half = PlanProgress(
        place=ListPlace(40, "retrying"), done=90, failed=10, failures=(ITEM,)
    )
    whole = replace(half, place=None, done=180)

    await plans.advance(plan.id, half, ended=None)

    assert await plans.running() == [replace(plan, progress=half)]
    await plans.advance(plan.id, whole, ended=at(9))
    assert await plans.running() == []
    done = replace(plan, progress=whole, state=PlanState.DONE, finished_at=at(9))
    assert await plans.get(plan.id) == done


@pytest.mark.parametrize("is_confirmed", [False, True])
async def test_a_plan_is_cancelled_before_it_runs_and_while_it_does(
    scene: Scene, is_confirmed: bool
) -> None:
    plan = await (add_confirmed if is_confirmed else add)(scene)
    plans, progress = scene.storage.plans, PlanProgress(done=3)

    cancelled = await plans.cancel(plan.id, at(5))

    assert cancelled == replace(plan, state=PlanState.CANCELLED, finished_at=at(5))
    assert await plans.running() == []
    assert await plans.confirm(plan.id, at(6)) is None
    assert await plans.cancel(plan.id, at(6)) is None
    # The batch that was under way is counted, and is the last one.
    await plans.advance(plan.id, progress, ended=at(7))
    assert await plans.get(plan.id) == replace(cancelled, progress=progress)


async def test_plans_are_listed_by_id_and_account(scene: Scene) -> None:
    plans = scene.storage.plans
    first, foreign, last = [await add(scene, account=it) for it in (OWN, OTHER, OWN)]

    assert await plans.page(after=PlanId(0), limit=2) == [first, foreign]
    assert await plans.page(after=foreign.id, limit=2) == [last]
    assert await plans.page(after=PlanId(0), limit=9, account=OPERATOR) == [first, last]
    assert await plans.latest(2) == [last, foreign]


async def test_an_account_has_no_more_open_plans_than_it_may(scene: Scene) -> None:
    plans = scene.storage.plans
    await add(scene)
    running = await add_confirmed(scene)

    assert await plans.add(new(), most_open=2, kept=9) is None
    assert await plans.add(new(account=OTHER), most_open=2, kept=9) is not None
    later = new(created_at=START + HOUR)  # the first has expired
    assert await plans.add(later, most_open=2, kept=9) is not None
    assert await plans.add(later, most_open=2, kept=9) is None
    await plans.advance(running.id, PlanProgress(), ended=at(9))
    assert await plans.add(later, most_open=2, kept=9) is not None


async def test_of_the_plans_that_are_over_the_last_are_kept(scene: Scene) -> None:
    plans = scene.storage.plans
    foreign = await add(scene, account=OTHER)
    done, running = await add_confirmed(scene), await add_confirmed(scene)
    cancelled, expiring = await add(scene), await add(scene)
    await plans.cancel(foreign.id, at(2))
    await plans.cancel(cancelled.id, at(2))
    await plans.advance(done.id, PlanProgress(), ended=at(2))

    added = await plans.add(new(created_at=START + HOUR), most_open=9, kept=2)

    assert added is not None
    kept = [foreign, running, cancelled, expiring, added]
    assert await ids(scene) == [each.id for each in kept]
