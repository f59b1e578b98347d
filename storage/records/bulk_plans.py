"""Plans: actions on many things at once, which somebody confirms after seeing them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from storage.records.deliveries import UndeliveredFilter
from storage.records.identities import BEFORE_ALL, PlanId, Position, SubscriptionId
from storage.records.selections import FeedFilter, ListPlace, SubscriptionFilter
from storage.records.subscriptions import Account

PlanFilter = FeedFilter | SubscriptionFilter | UndeliveredFilter


class PlanKind(StrEnum):
    """What a plan acts upon; deliveries are retrying subscriptions and dead letters."""

    FEEDS = "feeds"
    SUBSCRIPTIONS = "subscriptions"
    DELIVERIES = "deliveries"


KIND_OF_FILTER: Final[Mapping[type[PlanFilter], PlanKind]] = {
    FeedFilter: PlanKind.FEEDS,
    SubscriptionFilter: PlanKind.SUBSCRIPTIONS,
    UndeliveredFilter: PlanKind.DELIVERIES,
}


class PlanAction(StrEnum):
    """What a plan does to each item; not every action suits every kind."""

    PAUSE = "pause"
    RESUME = "resume"
    REMOVE = "remove"
    FETCH = "fetch"
    SET_CATEGORY = "set_category"
    RETRY = "retry"
    DISCARD = "discard"


class PlanState(StrEnum):
    PLANNED = "planned"  # waits to be confirmed
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # was not confirmed in time; never stored


class PlannedItem(msgspec.Struct, frozen=True, kw_only=True):
    """One item that a plan acts upon. ``note``: its condition, or why the action
    failed. ``subscription``: the one that it is, or is of; None for a feed."""

    id: int
    name: str
    note: str
    subscription: SubscriptionId | None = None


class PlanProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a plan has come, in all.

    The plan continues after ``place``; None: at the start. ``failures``: the first
    items that failed.
    """

    place: ListPlace | None = None
    done: int = 0
    failed: int = 0
    failures: tuple[PlannedItem, ...] = ()


class BulkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An action upon all items that a filter found when the plan was made.

    ``total`` items were found then; ``sample`` has the first of them, and the log ended
    at ``log_end``. ``category``: the one that the action assigns.
    """

    id: PlanId = PlanId(0)  # 0: not stored yet
    account: Account
    action: PlanAction
    wanted: PlanFilter
    category: str = ""
    log_end: Position = BEFORE_ALL
    total: int = 0
    sample: tuple[PlannedItem, ...] = ()
    state: PlanState = PlanState.PLANNED
    created_at: datetime
    expires_at: datetime
    confirmed_at: datetime | None = None
    finished_at: datetime | None = None
    progress: PlanProgress = PlanProgress()

    @property
    def kind(self) -> PlanKind:
        return KIND_OF_FILTER[type(self.wanted)]

    def state_at(self, now: datetime) -> PlanState:
        is_over = self.state is PlanState.PLANNED and self.expires_at <= now
        return PlanState.EXPIRED if is_over else self.state
