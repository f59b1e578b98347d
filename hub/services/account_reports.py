"""What an account is told of itself: its subscriptions, and what they were sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hub.delivery.notification_counter import NotificationCounter
from hub.services.token_authentication import Principal
from storage.contract import SubscriptionSelectionStore
from storage.records import (
    Account,
    SelectedSubscription,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionSort,
    TokenScope,
)

SHOWN_FAILING: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """``scopes`` are those of the token that asks. ``notified``: requests to the
    account's callbacks so far, and ``credits`` what ``X-Superfeedr-Credits`` counts
    down. Totals are None where there are too many to be counted.

    ``failing``: the first of those that fail, the longest first.
    """

    account: Account
    scopes: frozenset[TokenScope]
    notified: int
    credits: int
    total: int | None
    total_failing: int | None
    failing: tuple[SelectedSubscription, ...]


class AccountReportService:
    def __init__(
        self, subscriptions: SubscriptionSelectionStore, counter: NotificationCounter
    ) -> None:
        self._subscriptions = subscriptions
        self._counter = counter

    async def get(self, principal: Principal) -> AccountReport:
        whose = principal.account.id
        every = await self._subscriptions.page(
            SubscriptionFilter(account=whose), SubscriptionSort.ID, after=None, limit=1
        )
        failing = await self._subscriptions.page(
            SubscriptionFilter(account=whose, health=(SubscriptionHealth.FAILING,)),
            SubscriptionSort.SINCE,
            after=None,
            limit=SHOWN_FAILING,
        )
        return AccountReport(
            account=principal.account,
            scopes=principal.scopes,
            notified=self._counter.notified(whose),
            credits=self._counter.left(whose),
            total=every.total,
            total_failing=failing.total,
            failing=failing.subscriptions,
        )
