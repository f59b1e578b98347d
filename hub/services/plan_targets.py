"""The targets of plans, page by page, and what each action does to one of them.

An action is idempotent: after a crash a part of a plan is repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from hub.core.status.feed_health import health_of
from hub.services.account_subscriptions import SubscriptionService
from hub.services.feed_registration import FeedService
from hub.services.feed_requests import EditFeed
from hub.services.service_errors import Conflict
from hub.services.undelivered_records import UndeliveredService
from storage.contract import DeliveryStore, FeedSelectionStore
from storage.contract import SubscriptionSelectionStore as SubscriptionSelections
from storage.records import (
    AccountId,
    BulkPlan,
    DeadLetter,
    FeedFilter,
    FeedSort,
    ListPlace,
    PlanAction,
    PlannedItem,
    PollReason,
    RetryingSubscription,
    SelectedSubscription,
    StoredFeed,
    SubscriptionFilter,
    SubscriptionId,
    SubscriptionSort,
    UndeliveredFilter,
)

_Target = TypeVar("_Target")
Actions = Mapping[PlanAction, Callable[[BulkPlan, _Target], Awaitable[object]]]


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """One of the things that a plan acts upon; ``act`` does it. It raises
    `ServiceError`, `InvalidValue` and `NotFound` if that cannot be done."""

    item: PlannedItem
    act: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class TargetPage:
    """Some targets of a plan. A page may be short or empty without being the last one.
    ``next`` None: it is the last."""

    targets: Sequence[PlanTarget]
    next: ListPlace | None


class PlanTargets(Protocol):
    """All targets of one kind."""

    @property
    def actions(self) -> frozenset[PlanAction]: ...

    async def count(self, plan: BulkPlan, most: int) -> int: ...

    async def page(
        self, plan: BulkPlan, after: ListPlace | None, limit: int
    ) -> TargetPage:
        """Targets that the filter finds now, and also found when the plan was made:
        without those that were added, or have changed their state, since then."""
        ...


class FeedTargets:
    def __init__(self, selections: FeedSelectionStore, feeds: FeedService) -> None:
        self._selections = selections
        self._feeds = feeds
        self._actions: Actions[StoredFeed] = {
            PlanAction.PAUSE: lambda _, feed: feeds.pause(feed.id),
            PlanAction.RESUME: lambda _, feed: feeds.resume(feed.id),
            PlanAction.REMOVE: lambda _, feed: feeds.remove(feed.id),
            PlanAction.FETCH: self._fetch,
            PlanAction.SET_CATEGORY: lambda plan, feed: feeds.edit(
                feed.id, EditFeed(category=plan.category)
            ),
        }
        self.actions = frozenset(self._actions)

    async def count(self, plan: BulkPlan, most: int) -> int:
        return await self._selections.count(_feed_filter(plan), most)

    async def page(
        self, plan: BulkPlan, after: ListPlace | None, limit: int
    ) -> TargetPage:
        wanted = _feed_filter(plan)
        page = await self._selections.page(
            wanted, FeedSort.ID, after=after, limit=limit, has_total=False
        )
        act = self._actions[plan.action]
        targets = [
            PlanTarget(_feed_item(feed), partial(act, plan, feed))
            for feed in page.feeds
            if (feed.health_since if wanted.health else feed.created_at)
            <= plan.created_at
        ]
        return TargetPage(targets, page.next)

    async def _fetch(self, plan: BulkPlan, feed: StoredFeed) -> None:
        """Fetch a feed, unless it was fetched after the plan was confirmed."""
        last, confirmed = feed.polling.last_fetch, plan.confirmed_at
        if last is None or confirmed is None or last < confirmed:
            fetched = await self._feeds.fetch(feed.id, PollReason.BY_PLAN)
            if not fetched.is_fetched:
                raise Conflict(NOT_FETCHED)
            feed = fetched.feed
        if feed.polling.error:
            raise Conflict(feed.polling.error)


NOT_FETCHED: Final = (
    "not fetched yet: its server has not answered, or asks for no requests now"
)


def _feed_filter(plan: BulkPlan) -> FeedFilter:
    assert isinstance(plan.wanted, FeedFilter)  # noqa: S101 - by its kind
    return plan.wanted


def _feed_item(feed: StoredFeed) -> PlannedItem:
    health = health_of(feed)
    return PlannedItem(
        id=feed.id, name=feed.url, note=_note(health.state, health.reason)
    )


def _note(state: str, reason: str) -> str:
    return f"{state}: {reason}" if reason else state


class SubscriptionTargets:
    def __init__(
        self,
        selections: SubscriptionSelections,
        subscriptions: SubscriptionService,
        undelivered: UndeliveredService,
    ) -> None:
        self._selections = selections
        self._actions: Actions[SelectedSubscription] = {
            PlanAction.PAUSE: lambda plan, found: subscriptions.pause(
                found.subscription.id, account=_acting_account(plan)
            ),
            PlanAction.RESUME: lambda plan, found: subscriptions.resume(
                found.subscription.id, account=_acting_account(plan)
            ),
            PlanAction.REMOVE: lambda plan, found: subscriptions.remove(
                found.subscription.id, tell=True, account=_acting_account(plan)
            ),
            PlanAction.RETRY: lambda plan, found: undelivered.retry(
                found.subscription.id, account=_acting_account(plan)
            ),
        }
        self.actions = frozenset(self._actions)

    async def count(self, plan: BulkPlan, most: int) -> int:
        return await self._selections.count(_subscription_filter(plan), most)

    async def page(
        self, plan: BulkPlan, after: ListPlace | None, limit: int
    ) -> TargetPage:
        wanted = _subscription_filter(plan)
        page = await self._selections.page(
            wanted, SubscriptionSort.ID, after=after, limit=limit, has_total=False
        )
        act = self._actions[plan.action]
        targets = [
            PlanTarget(_subscription_item(each), partial(act, plan, each))
            for each in page.subscriptions
            if (each.condition.since if wanted.health else each.subscription.created_at)
            <= plan.created_at
        ]
        return TargetPage(targets, page.next)


def _subscription_filter(plan: BulkPlan) -> SubscriptionFilter:
    assert isinstance(plan.wanted, SubscriptionFilter)  # noqa: S101 - by its kind
    return plan.wanted


def _acting_account(plan: BulkPlan) -> AccountId | None:
    """The account that acts upon its own subscriptions; None: an administrator acts
    upon those of others."""
    is_own = _subscription_filter(plan).account == plan.account.id
    return plan.account.id if is_own else None


def _subscription_item(found: SelectedSubscription) -> PlannedItem:
    subscription, condition = found.subscription, found.condition
    return PlannedItem(
        id=subscription.id,
        subscription=subscription.id,
        name=f"{subscription.callback} of {subscription.topic}",
        note=_note(condition.health, condition.reason),
    )


DEAD_LETTERS: Final = "dead letters"
RETRYING: Final = "retrying"
"""Keys of places. Dead letters come first, because a retry may merge one into a retry
that is under way."""


class DeliveryTargets:
    """Dead letters, and then retrying subscriptions."""

    def __init__(
        self, deliveries: DeliveryStore, undelivered: UndeliveredService
    ) -> None:
        self._deliveries = deliveries
        self._of_dead: Actions[DeadLetter] = {
            PlanAction.RETRY: lambda _, dead: undelivered.retry_dead_letter(dead.id),
            PlanAction.DISCARD: lambda _, dead: undelivered.discard_dead_letter(
                dead.id
            ),
        }
        self._of_retrying: Actions[RetryingSubscription] = {
            PlanAction.RETRY: lambda _, late: undelivered.retry(late.subscription.id),
            PlanAction.DISCARD: lambda _, late: undelivered.discard(
                late.subscription.id
            ),
        }
        self.actions = frozenset(self._of_dead)

    async def count(self, plan: BulkPlan, most: int) -> int:
        return await self._deliveries.count_undelivered(_wanted_deliveries(plan), most)

    async def page(
        self, plan: BulkPlan, after: ListPlace | None, limit: int
    ) -> TargetPage:
        after = after or ListPlace(0, DEAD_LETTERS)
        if after.key == DEAD_LETTERS:
            return await self._dead_letters(plan, after.id, limit)
        return await self._retrying(plan, SubscriptionId(after.id), limit)

    async def _dead_letters(self, plan: BulkPlan, after: int, limit: int) -> TargetPage:
        dead = await self._deliveries.dead_letters(
            after=after, limit=limit, wanted=_wanted_deliveries(plan)
        )
        act = self._of_dead[plan.action]
        targets = [
            PlanTarget(_dead_item(each), partial(act, plan, each))
            for each in dead
            # A dead letter made by a retry of this plan is not a target, or the plan
            # would never end.
            if each.first <= plan.log_end and each.at <= plan.created_at
        ]
        is_last = len(dead) < limit
        next = (
            ListPlace(0, RETRYING) if is_last else ListPlace(dead[-1].id, DEAD_LETTERS)
        )
        return TargetPage(targets, next)

    async def _retrying(
        self, plan: BulkPlan, after: SubscriptionId, limit: int
    ) -> TargetPage:
        late = await self._deliveries.retrying(
            after=after, limit=limit, wanted=_wanted_deliveries(plan)
        )
        act = self._of_retrying[plan.action]
        targets = [
            PlanTarget(_retrying_item(each), partial(act, plan, each))
            for each in late
            if each.failing_since < plan.created_at
        ]
        is_last = len(late) < limit
        next = None if is_last else ListPlace(late[-1].subscription.id, RETRYING)
        return TargetPage(targets, next)


def _wanted_deliveries(plan: BulkPlan) -> UndeliveredFilter:
    assert isinstance(plan.wanted, UndeliveredFilter)  # noqa: S101 - by its kind
    return plan.wanted


def _dead_item(dead: DeadLetter) -> PlannedItem:
    return PlannedItem(
        id=dead.id,
        subscription=dead.subscription_id,
        name=f"{dead.callback} of {dead.topic}",
        note=f"dead letter, records {dead.first} to {dead.last}: {dead.reason}",
    )


def _retrying_item(late: RetryingSubscription) -> PlannedItem:
    subscription, records = late.subscription, f"records above {late.position}"
    reason = f": {late.last_error}" if late.last_error else ""
    return PlannedItem(
        id=subscription.id,
        subscription=subscription.id,
        name=f"{subscription.callback} of {subscription.topic}",
        note=f"retrying subscription, {records}{reason}",
    )
