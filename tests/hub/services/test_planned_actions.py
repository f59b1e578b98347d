"""Plan, then act: how many, which, a confirmation, and then all of them in batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.services.plan_targets import NOT_FETCHED, PlanTarget, TargetPage
from hub.services.planned_actions import (
    BATCH,
    FAULT,
    KEPT,
    LIFETIME,
    MOST_OPEN,
    MOST_UNDELIVERED,
    PlanPage,
    PlanService,
    UndeliveredCount,
)
from hub.services.service_errors import Conflict, TooManyWaiting
from protocols.protocol_errors import InvalidValue
from storage.contract import BulkPlanStore
from storage.errors import NotFound, WriteFailed
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    Account,
    BulkPlan,
    FeedFilter,
    FeedHealth,
    FeedId,
    FeedState,
    ListPlace,
    NewDeadLetter,
    NewFeed,
    PlanAction,
    PlanId,
    PlanKind,
    PlannedItem,
    PlanState,
    Polling,
    PollReason,
    Position,
    RetryMoved,
    StoredFeed,
    Subscription,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionState,
    UndeliveredFilter,
    UndeliveredOutcome,
)
from tests.support.clock import ManualClock
from tests.support.failures import failed
from tests.support.memory.storage import MemoryStorage
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import LEASE, NODE, START, Scene, at, fetch, stored_at
from tests.support.waiting import eventually, in_background

OWN = Account(id=OPERATOR, name="operator")
STRANGER = Account(id=ANONYMOUS, name="anonymous")
FAILING = FeedFilter(health=(FeedHealth.FAILING,))
ALL = FeedFilter()


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with open_hub(tmp_path) as hub:
        hub.clock.advance(60)
        yield hub


@pytest.fixture
def scene(hub: Hub) -> Scene:
    return Scene(hub.storage)


async def make(
    hub: Hub,
    action: PlanAction = PlanAction.PAUSE,
    wanted: FeedFilter | SubscriptionFilter | UndeliveredFilter = ALL,
    category: str | None = None,
    account: Account = OWN,
) -> BulkPlan:
    return await hub.services.plans.make(account, action, wanted, category)


async def finish(hub: Hub, plan: BulkPlan) -> BulkPlan:
    """Work on what is confirmed until the plan is over."""

    async def is_over() -> bool:
        return (await hub.services.plans.get(plan.id)).state is not PlanState.RUNNING

    async with in_background(hub.built.background["plans"]):
        await eventually(is_over)
    return await hub.services.plans.get(plan.id)


async def carry_out(hub: Hub, plan: BulkPlan) -> BulkPlan:
    await hub.services.plans.confirm(plan)
    return await finish(hub, plan)


async def add_failing(hub: Hub, scene: Scene, name: str) -> StoredFeed:
    feed = await scene.add_feed(name)
    await poll(hub, feed, FeedHealth.FAILING)
    return feed


async def poll(hub: Hub, feed: StoredFeed, condition: FeedHealth) -> None:
    """One that leads to this condition."""
    now = hub.clock.now()
    error = "answered 500" if condition is FeedHealth.FAILING else ""
    polling = Polling(code=200, error=error, last_fetch=now)
    commit = fetch(feed, when=now, polling=polling, condition=condition)
    await stored_at(hub.storage.log.commit(commit))


async def states(hub: Hub) -> dict[int, FeedState]:
    feeds = await hub.storage.feeds.page(after=FeedId(0), limit=99)
    return {each.id: each.state for each in feeds}


# --- planning and confirming ---


async def test_a_plan_says_how_many_there_are_and_shows_some_and_does_nothing(
    hub: Hub, scene: Scene
) -> None:
    for number in range(12):
        await scene.add_feed(f"f{number}")

    plan = await make(hub)

    assert (plan.total, len(plan.sample)) == (12, 10)
    assert plan.sample[0] == PlannedItem(
        id=1, name="https://f0.example/feed", note="ok"
    )
    assert (plan.state, plan.account) == (PlanState.PLANNED, OWN)
    assert plan.expires_at - plan.created_at == LIFETIME
    assert set((await states(hub)).values()) == {FeedState.ACTIVE}


async def test_a_plan_is_done_once_it_is_confirmed_and_only_once(
    hub: Hub, scene: Scene
) -> None:
    await scene.add_feed("a")
    plan = await make(hub)

    done = await carry_out(hub, plan)

    assert (done.state, done.progress.done, done.progress.failed) == ("done", 1, 0)
    assert done.finished_at == hub.clock.now()
    assert await states(hub) == {1: FeedState.PAUSED}
    with pytest.raises(Conflict, match="plan 1 is done, and cannot be confirmed"):
        await hub.services.plans.confirm(plan)


async def test_a_plan_that_runs_is_not_confirmed_again(hub: Hub) -> None:
    plan = await make(hub)
    await hub.services.plans.confirm(plan)

    with pytest.raises(Conflict, match="was confirmed already"):
        await hub.services.plans.confirm(plan)


async def test_a_plan_expires(hub: Hub) -> None:
    plan = await make(hub)
    hub.clock.advance(LIFETIME.total_seconds())

    with pytest.raises(Conflict, match="was not confirmed in time"):
        await hub.services.plans.confirm(plan)
    with pytest.raises(Conflict, match="in time, and cannot be cancelled"):
        await hub.services.plans.cancel(plan)


async def test_a_plan_that_was_cancelled_stays_so(hub: Hub, scene: Scene) -> None:
    await scene.add_feed("a")
    plan = await make(hub)

    assert (await hub.services.plans.cancel(plan)).state is PlanState.CANCELLED

    with pytest.raises(Conflict, match="was cancelled, and cannot be confirmed"):
        await hub.services.plans.confirm(plan)
    with pytest.raises(Conflict, match="was cancelled, and cannot be cancelled"):
        await hub.services.plans.cancel(plan)
    assert await states(hub) == {1: FeedState.ACTIVE}


OF_STRANGER = SubscriptionFilter(account=STRANGER.id)


@pytest.mark.parametrize(
    ("account", "wanted", "is_seen"),
    [
        (STRANGER, OF_STRANGER, True),
        (OWN, OF_STRANGER, False),  # made by another account
        (STRANGER, SubscriptionFilter(), False),  # by its administrator, for everybody
        (STRANGER, ALL, False),
    ],
)
async def test_an_account_sees_its_plans_for_its_own_subscriptions_and_the_operator_all(
    hub: Hub, account: Account, wanted: FeedFilter | SubscriptionFilter, is_seen: bool
) -> None:
    plans = hub.services.plans
    made = await make(hub, wanted=wanted, account=account)

    listed = await plans.page(after=PlanId(0), limit=9, account=STRANGER.id)
    assert listed.plans == ((made,) if is_seen else ())
    if is_seen:
        assert await plans.get(made.id, STRANGER.id) == made
    else:
        with pytest.raises(NotFound, match="plan"):
            await plans.get(made.id, STRANGER.id)
    assert await plans.get(made.id) == made
    assert (await plans.page(after=PlanId(0), limit=9)).plans == (made,)


async def test_a_page_of_plans_goes_on_behind_those_that_the_account_does_not_see(
    hub: Hub,
) -> None:
    plans = hub.services.plans
    hidden = [await make(hub, account=STRANGER) for _ in range(2)]
    seen = await make(hub, wanted=OF_STRANGER, account=STRANGER)

    first = await plans.page(after=PlanId(0), limit=2, account=STRANGER.id)
    assert first == PlanPage(plans=(), next=hidden[-1].id)
    second = await plans.page(after=hidden[-1].id, limit=2, account=STRANGER.id)
    assert second == PlanPage(plans=(seen,), next=None)


async def test_an_account_has_so_many_plans_and_not_more(hub: Hub) -> None:
    plans = [await make(hub) for _ in range(MOST_OPEN)]
    with pytest.raises(TooManyWaiting, match=f"{MOST_OPEN} plans are running"):
        await make(hub)
    await make(hub, account=STRANGER)

    await hub.services.plans.cancel(plans[0])
    for _ in range(KEPT + 2):
        await hub.services.plans.cancel(await make(hub))

    found = await hub.storage.plans.page(after=PlanId(0), limit=999, account=OPERATOR)
    over = [each for each in found if each.state is PlanState.CANCELLED]
    assert (
        len(over) == KEPT + 1
    )  # those that are over when the last one is made, and it


@pytest.mark.parametrize(
    ("action", "wanted", "category", "reason"),
    [
        (PlanAction.RETRY, ALL, None, "action: expected one of fetch, pause, remove"),
        (PlanAction.FETCH, SubscriptionFilter(), None, "retry for subscriptions"),
        (PlanAction.REMOVE, UndeliveredFilter(), None, "discard, retry for deliveries"),
        (PlanAction.PAUSE, ALL, "news", "category: expected one for set_category"),
        (PlanAction.SET_CATEGORY, ALL, None, "category: expected one for"),
        (PlanAction.SET_CATEGORY, ALL, "c" * 201, "category: expected at most 200"),
    ],
)
async def test_what_cannot_be_done_is_not_planned(
    hub: Hub,
    action: PlanAction,
    wanted: FeedFilter,
    category: str | None,
    reason: str,
) -> None:
    with pytest.raises(InvalidValue, match=reason):
        await make(hub, action, wanted, category)


# --- what is done to feeds ---


async def test_feeds_are_paused_resumed_put_in_a_category_and_removed(
    hub: Hub, scene: Scene
) -> None:
    failing, _well = await add_failing(hub, scene, "a"), await scene.add_feed("b")
    hub.clock.advance(1)
    plan = await make(hub, PlanAction.PAUSE, FAILING)
    assert plan.sample[0].note == "failing: answered 500"

    await carry_out(hub, plan)
    assert await states(hub) == {1: FeedState.PAUSED, 2: FeedState.ACTIVE}

    paused = FeedFilter(health=(FeedHealth.PAUSED,))
    await carry_out(hub, await make(hub, PlanAction.RESUME, paused))
    assert set((await states(hub)).values()) == {FeedState.ACTIVE}

    await carry_out(hub, await make(hub, PlanAction.SET_CATEGORY, FAILING, "ill"))
    feed = await hub.storage.feeds.get(failing.id)
    assert feed is not None
    assert feed.category == "ill"

    await carry_out(hub, await make(hub, PlanAction.REMOVE, FeedFilter(category="ill")))
    assert await states(hub) == {2: FeedState.ACTIVE}


async def test_what_comes_or_begins_to_fail_after_a_plan_was_made_is_left_out(
    hub: Hub, scene: Scene
) -> None:
    await add_failing(hub, scene, "old")
    later, mended = await scene.add_feed("later"), await add_failing(hub, scene, "m")
    failing, every = await make(hub, wanted=FAILING), await make(hub)
    hub.clock.advance(1)
    await poll(hub, later, FeedHealth.FAILING)
    await poll(hub, mended, FeedHealth.OK)
    await hub.storage.feeds.add(NewFeed(url="https://new.example/"), hub.clock.now())

    done = await carry_out(hub, failing)
    assert (done.total, done.progress.done) == (2, 1)
    assert [each for each, it in (await states(hub)).items() if it == "paused"] == [1]

    done = await carry_out(hub, every)
    assert (done.total, done.progress.done) == (3, 3)
    assert (await states(hub))[4] is FeedState.ACTIVE


async def test_feeds_are_fetched_and_those_that_fail_are_named(
    hub: Hub, scene: Scene
) -> None:
    await scene.add_feed("a")
    removed = await scene.add_feed("b")
    hub.poller.removed = removed.id
    hub.poller.outcome = lambda polling: replace(polling, error="answered 404")

    done = await carry_out(hub, await make(hub, PlanAction.FETCH))

    assert (done.progress.done, done.progress.failed) == (0, 2)
    assert [each.note for each in done.progress.failures] == [
        "answered 404",
        "no feed 2",
    ]


async def test_a_feed_that_was_fetched_since_the_confirmation_is_not_asked_again(
    hub: Hub, scene: Scene
) -> None:
    fetched, _other = await scene.add_feed("a"), await scene.add_feed("b")
    plan = await make(hub, PlanAction.FETCH)
    await hub.services.plans.confirm(plan)
    hub.clock.advance(1)
    await poll(hub, fetched, FeedHealth.OK)
    hub.poller.fetched.clear()

    done = await finish(hub, plan)

    assert hub.poller.fetched == [2]
    assert hub.poller.fetch_reasons[-1] is PollReason.BY_PLAN
    assert done.progress.done == 2


async def test_a_feed_whose_server_asked_for_patience_is_not_fetched(
    hub: Hub, scene: Scene
) -> None:
    await scene.add_feed("a")
    hub.poller.outcome = lambda polling: replace(polling, last_fetch=None)

    done = await carry_out(hub, await make(hub, PlanAction.FETCH))

    assert [each.note for each in done.progress.failures] == [NOT_FETCHED]


# --- subscriptions and deliveries ---


@pytest.mark.parametrize(
    ("account", "whose", "reason"),
    [
        (OWN, None, "ended by the operator"),
        (OWN, ANONYMOUS, "ended by the operator"),
        (STRANGER, ANONYMOUS, "ended by the subscriber"),
    ],
)
async def test_subscriptions_are_ended_and_their_callbacks_told(
    hub: Hub, scene: Scene, account: Account, whose: int | None, reason: str
) -> None:
    feed = await scene.add_feed()
    ids = [(await scene.subscribe(feed, name)).id for name in "ab"]
    wanted = SubscriptionFilter(account=whose, callback="https://subscriber.example/a")

    plan = await make(hub, PlanAction.REMOVE, wanted, account=account)
    await carry_out(hub, plan)

    ended, kept = [await hub.storage.subscriptions.get(each) for each in ids]
    assert ended is not None
    assert kept is not None
    assert plan.sample[0].name == f"https://subscriber.example/a of {feed.url}"
    assert (ended.state, ended.ended_reason) == (SubscriptionState.ENDING, reason)
    assert kept.state is SubscriptionState.ACTIVE


async def test_subscriptions_are_paused_and_resumed(hub: Hub, scene: Scene) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    paused = SubscriptionFilter(health=(SubscriptionHealth.PAUSED,))
    every = SubscriptionFilter()

    await carry_out(hub, await make(hub, PlanAction.PAUSE, every))

    [condition] = await hub.storage.subscription_selections.conditions([late.id])
    assert condition.health is SubscriptionHealth.PAUSED
    retried = await carry_out(
        hub, await make(hub, PlanAction.RETRY, UndeliveredFilter())
    )
    [failure] = retried.progress.failures
    assert failure.note.startswith("subscription 1 is paused")
    hub.clock.advance(1)
    await carry_out(hub, await make(hub, PlanAction.RESUME, paused))
    [condition] = await hub.storage.subscription_selections.conditions([late.id])
    assert condition.health is SubscriptionHealth.FAILING


async def test_subscriptions_that_wait_for_a_try_are_tried_now(
    hub: Hub, scene: Scene
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    await scene.subscribe(await scene.add_feed("b"), "well")
    [claimed] = await scene.claim_retrying(at(10))
    waits = RetryMoved(
        subscription_id=late.id,
        lease_id=claimed.lease_id,
        position=claimed.position,
        attempts=4,
        next_try=at(9_000),
        last_status=500,
        last_error="answered 500",
        release=True,
    )
    await scene.flush(moved=(waits,))

    plan = await make(hub, PlanAction.RETRY, SubscriptionFilter())
    done = await carry_out(hub, plan)

    [due] = await hub.storage.deliveries.retrying(after=SubscriptionId(0), limit=9)
    assert (due.subscription.id, due.next_try) == (late.id, at(9_000))
    assert await hub.storage.deliveries.next_retry() == hub.clock.now()
    assert (done.progress.done, done.progress.failed) == (1, 1)


async def test_a_subscription_that_recovered_since_is_left_out(
    hub: Hub, scene: Scene
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    hub.clock.advance(1)
    wanted = SubscriptionFilter(health=(SubscriptionHealth.FAILING,))
    plan = await make(hub, PlanAction.REMOVE, wanted)
    assert plan.sample[0].note == "failing: answered 500"
    await hub.storage.deliveries.discard_retry(late.id, hub.clock.now())

    done = await carry_out(hub, plan)

    assert (done.total, done.progress.done, done.progress.failed) == (1, 0, 0)


async def give_up(
    scene: Scene, late: Subscription, position: int, at: datetime = START
) -> None:
    await scene.claim_retrying(START + timedelta(minutes=1))
    await scene.flush(given_up=(given_up(late, position, at, LEASE),))
    await scene.storage.membership.join(NODE)


def given_up(
    late: Subscription, position: int, at: datetime = START, lease_id: int = 0
) -> NewDeadLetter:
    return NewDeadLetter(
        subscription_id=late.id,
        lease_id=lease_id,
        first=Position(position),
        last=Position(position),
        reason="answered 500 (after 11 tries)",
        at=at,
    )


@pytest.fixture
async def undelivered(scene: Scene) -> tuple[Subscription, Subscription]:
    """One has a dead letter, and one is retried: of an answer 500 and of a 404."""
    lost, late = [
        await scene.subscribe_retrying(await scene.add_feed(name), name)
        for name in ("lost", "late")
    ]
    await give_up(scene, lost, 1)
    attempt = replace(failed(late, status=404), position=Position(2))
    await scene.flush(attempts=(attempt,))
    return lost, late


async def test_what_is_undelivered_is_retried(
    hub: Hub, scene: Scene, undelivered: tuple[Subscription, Subscription]
) -> None:
    plan = await make(hub, PlanAction.RETRY, UndeliveredFilter())
    assert plan.total == 2
    assert [each.note for each in plan.sample] == [
        "dead letter, records 1 to 1: answered 500 (after 11 tries)",
        "retrying subscription, records above 1: answered 500",
    ]

    done = await carry_out(hub, plan)

    assert (done.progress.done, done.progress.failed) == (2, 0)
    due = await scene.claim_retrying(hub.clock.now())
    assert {each.subscription.id for each in due} == {1, 2}


async def test_what_is_undelivered_is_discarded_as_far_as_it_is_meant(
    hub: Hub, undelivered: tuple[Subscription, Subscription]
) -> None:
    _lost, late = undelivered
    wanted = UndeliveredFilter(statuses=(404, 404))

    done = await carry_out(hub, await make(hub, PlanAction.DISCARD, wanted))

    assert (done.total, done.progress.done) == (1, 1)
    deliveries = hub.storage.deliveries
    assert await deliveries.retrying_subscription(late.id) is None
    assert len(await deliveries.dead_letters(after=0, limit=9)) == 1
    await carry_out(hub, await make(hub, PlanAction.DISCARD, UndeliveredFilter()))
    assert await deliveries.count_undelivered(UndeliveredFilter(), 9) == 0


@pytest.mark.parametrize(
    ("outcome", "left"),
    [(UndeliveredOutcome.RETRIED, (0, 1)), (UndeliveredOutcome.GIVEN_UP, (1, 0))],
)
async def test_only_the_outcome_that_is_meant_is_discarded(
    hub: Hub,
    undelivered: tuple[Subscription, Subscription],
    outcome: UndeliveredOutcome,
    left: tuple[int, int],
) -> None:
    wanted = UndeliveredFilter(outcome=outcome)
    await carry_out(hub, await make(hub, PlanAction.DISCARD, wanted))
    deliveries = hub.storage.deliveries
    late = await deliveries.retrying(after=SubscriptionId(0), limit=9)
    lost = await deliveries.dead_letters(after=0, limit=9)
    assert (len(late), len(lost)) == left


async def test_a_dead_letter_that_is_sent_again_is_not_accepted_by_that(
    hub: Hub, scene: Scene, undelivered: tuple[Subscription, Subscription]
) -> None:
    lost, _late = undelivered
    wanted = UndeliveredFilter(outcome=UndeliveredOutcome.GIVEN_UP)
    done = await carry_out(hub, await make(hub, PlanAction.RETRY, wanted))
    assert done.progress.done == 1
    plans = hub.services.plans
    # Beside it the other one, which lacked a record of before the plan as well.
    assert await plans.undelivered(done) == UndeliveredCount(2, False)
    await hub.storage.deliveries.discard_retry(lost.id, hub.clock.now())
    await scene.subscribe_retrying(await scene.add_feed("later"), "later")
    assert await plans.undelivered(done) == UndeliveredCount(1, False)


@pytest.mark.parametrize(
    "wanted",
    [
        SubscriptionFilter(health=(SubscriptionHealth.SLOW,)),
        SubscriptionFilter(health=(SubscriptionHealth.OK,)),
        SubscriptionFilter(since=at(-9)),
    ],
    ids=str,
)
async def test_a_subscription_that_fails_is_not_well_because_its_state_has_changed(
    hub: Hub, undelivered: tuple[Subscription, Subscription], wanted: SubscriptionFilter
) -> None:
    done = await carry_out(hub, await make(hub, PlanAction.RETRY, wanted))
    assert await hub.services.plans.undelivered(done) == UndeliveredCount(2, False)


async def test_failures_that_are_no_longer_kept_do_not_tell_that_nothing_is_lacking(
    hub: Hub, undelivered: tuple[Subscription, Subscription]
) -> None:
    plans, deliveries = hub.services.plans, hub.storage.deliveries
    wanted = UndeliveredFilter(statuses=(404, 404))
    done = await carry_out(hub, await make(hub, PlanAction.RETRY, wanted))
    assert await plans.undelivered(done) == UndeliveredCount(1)
    hub.clock.advance(8 * 86_400)
    assert await plans.undelivered(done) == UndeliveredCount(1, is_least=True)
    await deliveries.trim_attempts(hub.clock.now(), 9, kept=9)
    left = await plans.undelivered(done)
    assert left == UndeliveredCount(0, is_least=True)
    assert left is not None
    assert not left.is_known
    unfiltered = replace(done, wanted=UndeliveredFilter())
    assert await plans.undelivered(unfiltered) == UndeliveredCount(2)
    await carry_out(hub, await make(hub, PlanAction.DISCARD, UndeliveredFilter()))
    none = await plans.undelivered(done)
    assert none == UndeliveredCount(0)
    assert none is not None
    assert none.is_known


async def test_no_more_than_a_thousand_undelivered_are_counted(
    hub: Hub, scene: Scene
) -> None:
    feed = await scene.add_feed()
    await scene.publish(feed)
    subscriptions = [
        await scene.subscribe(feed, f"s{number}")
        for number in range(MOST_UNDELIVERED + 2)
    ]
    await scene.flush(given_up=tuple(given_up(one, 1) for one in subscriptions))
    plan = await make(hub, PlanAction.RETRY, UndeliveredFilter())
    assert plan.total == MOST_UNDELIVERED + 2
    confirmed = await hub.services.plans.confirm(plan)
    found = await hub.services.plans.undelivered(confirmed)
    assert found == UndeliveredCount(MOST_UNDELIVERED, True)


async def test_what_a_callback_did_not_get_after_a_plan_was_made_is_left_alone(
    hub: Hub, scene: Scene
) -> None:
    await scene.subscribe_retrying(await scene.add_feed("a"), "a")
    again = await scene.subscribe_retrying(await scene.add_feed("d"), "d")
    plan = await make(hub, PlanAction.DISCARD, UndeliveredFilter())
    feed, lost = await scene.add_feed("b"), await scene.add_feed("c")
    late = await scene.subscribe(feed, "b")
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    await scene.fail(chunk, late, when=hub.clock.now() + timedelta(seconds=1))
    await give_up(scene, await scene.subscribe_retrying(lost, "c"), 3)

    hub.clock.advance(1)  # records of before are given up after the plan was made
    await give_up(scene, again, 1, hub.clock.now())

    await carry_out(hub, plan)

    assert await hub.storage.deliveries.count_undelivered(UndeliveredFilter(), 9) == 3
    kept = await hub.storage.deliveries.retrying(after=SubscriptionId(0), limit=9)
    assert [each.subscription.id for each in kept] == [late.id]


async def test_a_dead_letter_of_a_subscription_at_work_fails_and_says_why(
    hub: Hub, scene: Scene
) -> None:
    feed = await scene.add_feed()
    await give_up(scene, await scene.subscribe_retrying(feed), 1)
    await scene.publish(feed)
    await scene.claim()

    done = await carry_out(hub, await make(hub, PlanAction.RETRY, UndeliveredFilter()))

    [failure] = done.progress.failures
    assert failure.note.startswith("its callback is being sent something else")


async def test_dead_letters_and_retries_are_worked_through_page_by_page(
    hub: Hub, scene: Scene
) -> None:
    feed = await scene.add_feed()
    for number in range(2 * BATCH + 3):
        await scene.subscribe(feed, f"s{number}")
    await scene.publish(feed)
    (chunk,) = await scene.claim()
    lost = [member for _, member in chunk.pending][: BATCH + 1]
    dead = tuple(
        NewDeadLetter(
            subscription_id=each.id,
            lease_id=0,
            first=Position(1),
            last=Position(1),
            reason="answered 500 (after 1 try)",
            at=START,
        )
        for each in lost
    )
    await scene.flush(given_up=dead)
    for _, late in chunk.pending[BATCH + 1 :]:
        await scene.fail(chunk, late)

    done = await carry_out(
        hub, await make(hub, PlanAction.DISCARD, UndeliveredFilter())
    )

    assert done.progress.done == done.total == 2 * BATCH + 3
    assert await hub.storage.deliveries.count_undelivered(UndeliveredFilter(), 9) == 0


# --- at work ---


@dataclass
class Numbers:
    """Targets 1 to ``most``; what is done to each may fail."""

    most: int = 3
    act: Callable[[int], Awaitable[object]] = lambda number: asyncio.sleep(0)
    done: list[int] = field(default_factory=list)
    most_at_once: int = 0
    actions: frozenset[PlanAction] = frozenset({PlanAction.PAUSE, PlanAction.FETCH})
    _at_once: int = 0

    async def count(self, plan: BulkPlan, most: int) -> int:
        return min(self.most, most)

    async def page(
        self, plan: BulkPlan, after: ListPlace | None, limit: int
    ) -> TargetPage:
        start = after.id if after else 0
        numbers = range(start + 1, min(start + limit, self.most) + 1)
        targets = [
            PlanTarget(
                PlannedItem(id=each, name=f"number {each}", note="ok"),
                lambda each=each: self._act(each),  # type: ignore[misc]
            )
            for each in numbers
        ]
        is_last = start + limit >= self.most
        return TargetPage(targets, None if is_last else ListPlace(start + limit))

    async def _act(self, number: int) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self.act(number)
            self.done.append(number)
        finally:
            self._at_once -= 1


@dataclass
class AtWork:
    """Plans over numbers, and what is stored of them."""

    numbers: Numbers = field(default_factory=Numbers)
    storage: MemoryStorage = field(default_factory=MemoryStorage)
    clock: ManualClock = field(default_factory=ManualClock)

    @property
    def store(self) -> BulkPlanStore:
        return self.storage.plans

    def service(self) -> PlanService:
        targets = {PlanKind.FEEDS: self.numbers}
        return PlanService(
            self.store,
            self.storage.log,
            self.storage.subscription_selections,
            targets,
            self.clock,
            retry_seconds=0.01,
        )

    async def confirmed(
        self, service: PlanService, action: PlanAction = PlanAction.PAUSE
    ) -> BulkPlan:
        return await service.confirm(await service.make(OWN, action, ALL))

    async def is_over(self) -> bool:
        return not await self.store.running()

    async def work(self, service: PlanService) -> None:
        async with in_background(service.run):
            await eventually(self.is_over)


async def test_a_filter_that_finds_too_many_is_refused() -> None:
    work = AtWork(Numbers(most=2_000_000))
    with pytest.raises(InvalidValue, match="finds at most 1,000,000"):
        await work.service().make(OWN, PlanAction.PAUSE, ALL)


async def test_few_things_are_done_at_once() -> None:
    work = AtWork(Numbers(most=50))
    service = work.service()
    await work.confirmed(service)
    await work.work(service)
    assert work.numbers.most_at_once == 4
    assert sorted(work.numbers.done) == [*range(1, 51)]


async def test_plans_that_run_take_turns() -> None:
    work = AtWork(Numbers(most=3 * BATCH))
    service = work.service()
    plans = [await work.confirmed(service) for _ in range(2)]
    met: list[tuple[int, ...]] = []

    async def note(number: int) -> None:
        if number % BATCH == 1:
            found = [await service.get(each.id) for each in plans]
            met.append(tuple(each.progress.done // BATCH for each in found))

    work.numbers.act = note
    await work.work(service)

    assert met == [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)]


async def test_a_plan_goes_on_after_a_crash_behind_the_last_batch_it_has_stored() -> (
    None
):
    work = AtWork(Numbers(most=2 * BATCH + 1))
    stuck = asyncio.Event()

    async def get_stuck(number: int) -> None:
        if number > BATCH + 50:
            stuck.set()
            await asyncio.Event().wait()

    work.numbers.act = get_stuck
    service = work.service()
    plan = await work.confirmed(service)
    async with in_background(service.run):
        await stuck.wait()
    [halted] = await work.store.running()
    assert (halted.progress.done, halted.progress.place) == (BATCH, ListPlace(BATCH))

    work.numbers.act = lambda number: asyncio.sleep(0)
    work.numbers.done.clear()
    again = work.service()
    await work.work(again)

    assert sorted(work.numbers.done) == [*range(BATCH + 1, 2 * BATCH + 2)]
    done = await again.get(plan.id)
    assert (done.state, done.progress.done) == (PlanState.DONE, 2 * BATCH + 1)


async def test_failures_are_counted_and_the_first_are_named() -> None:
    work = AtWork(Numbers(most=30))

    async def fail(number: int) -> None:
        match number % 3:
            case 0:
                raise Conflict(f"{number} is a multiple of 3")
            case 1:
                raise ZeroDivisionError

    work.numbers.act = fail
    service = work.service()
    plan = await work.confirmed(service)
    with capture_logs() as logs:
        await work.work(service)

    progress = (await service.get(plan.id)).progress
    assert (progress.done, progress.failed, len(progress.failures)) == (10, 20, 10)
    assert [each.note for each in progress.failures][:3] == [
        FAULT,
        "3 is a multiple of 3",
        FAULT,
    ]
    assert sum(it["event"] == "planned_action_failed" for it in logs) == 10


async def test_a_batch_that_cannot_be_stored_is_tried_again_and_counted_once() -> None:
    work = AtWork(Numbers(most=4))
    full = True

    async def fail(number: int) -> None:
        nonlocal full
        if full and number == 3:
            full = False
            raise WriteFailed("no space left")

    work.numbers.act = fail
    service = work.service()
    plan = await work.confirmed(service)
    with capture_logs() as logs:
        await work.work(service)

    progress = (await service.get(plan.id)).progress
    assert (progress.done, progress.failed) == (4, 0)
    assert work.numbers.done == [1, 2, 4, 1, 2, 3, 4]
    assert [it["error"] for it in logs if it["log_level"] == "warning"] == [
        "no space left"
    ]


async def test_a_plan_that_is_cancelled_ends_with_its_batch() -> None:
    work = AtWork(Numbers(most=3 * BATCH))
    service = work.service()
    plan = await work.confirmed(service)

    async def cancel(number: int) -> None:
        if number == BATCH + 1:
            await service.cancel(plan)

    work.numbers.act = cancel
    await work.work(service)
    done = await service.get(plan.id)
    await eventually(lambda: work.numbers.done[-1:] == [2 * BATCH])

    assert done.state is PlanState.CANCELLED
    assert len(work.numbers.done) == 2 * BATCH


async def test_a_confirmation_wakes_the_hub() -> None:
    work = AtWork()
    service = work.service()
    async with in_background(service.run):
        await asyncio.sleep(0)
        await work.confirmed(service)
        await eventually(work.is_over)
    assert work.numbers.done == [1, 2, 3]


@pytest.mark.bulk
async def test_many_batches_of_feeds_are_put_in_a_category(hub: Hub) -> None:
    number = 5 * BATCH + 50
    now = hub.clock.now()
    await asyncio.gather(
        *(
            hub.storage.feeds.add(NewFeed(url=f"https://f{each}.example/"), now)
            for each in range(number)
        )
    )
    hub.clock.advance(1)

    plan = await make(hub, PlanAction.SET_CATEGORY, FeedFilter(text="example"), "many")
    done = await carry_out(hub, plan)

    assert plan.total == done.progress.done == number
    counts = await hub.storage.feed_selections.counts()
    assert {each.category: each.total for each in counts} == {"many": number}
