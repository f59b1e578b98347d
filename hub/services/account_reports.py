"""Reports on accounts, for the account itself and for the operator: subscriptions, the
notifications they were sent, and tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hub.delivery.notification_counter import NotificationCounter
from hub.live.connection_quotas import Holder, HolderKind
from hub.services.token_authentication import Principal
from storage.contract import SubscriptionSelectionStore, TokenStore
from storage.errors import NotFound
from storage.records import (
    ANONYMOUS,
    Account,
    AccountSummary,
    SelectedSubscription,
    SubscriptionFilter,
    SubscriptionHealth,
    SubscriptionSort,
    TokenScope,
)

SHOWN_FAILING: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountReport:
    """An account. ``scopes`` are those of the token in use. ``notified``: requests to
    the account's callbacks so far; ``credits``: what ``X-Superfeedr-Credits`` counts
    down. Totals are None if there are too many to count.

    ``failing``: the subscriptions that have failed for the longest time, longest first.
    """

    account: Account
    scopes: frozenset[TokenScope]
    notified: int
    credits: int
    total: int | None
    total_failing: int | None
    failing: tuple[SelectedSubscription, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountActivity:
    """An account in a list. ``notified`` and ``credits`` are as in `AccountReport`;
    ``connections``: how many live connections it has now."""

    summary: AccountSummary
    notified: int
    credits: int
    connections: int


class AccountReportService:
    def __init__(
        self,
        subscriptions: SubscriptionSelectionStore,
        tokens: TokenStore,
        counter: NotificationCounter,
        connections: Callable[[Holder], int],
        anonymous: Callable[[], int],
    ) -> None:
        """``connections``: returns how many live connections a holder has now;
        ``anonymous``: how many are of clients without a token."""
        self._subscriptions = subscriptions
        self._tokens = tokens
        self._counter = counter
        self._connections = connections
        self._anonymous = anonymous

    async def page(
        self, *, prefix: str = "", after: str = "", limit: int
    ) -> list[AccountActivity]:
        """Accounts by name, those whose name begins with ``prefix``; ``after``: a
        name."""
        found = await self._tokens.accounts(prefix=prefix, after=after, limit=limit)
        return [self._activity(each) for each in found]

    async def find(self, name: str) -> AccountActivity:
        """The account of that name, in upper or lower case. Raises `NotFound`."""
        written = name.lower()
        found = await self._tokens.accounts(prefix=written, limit=1)
        if not found or found[0].account.name != written:
            raise NotFound("account", name[:100])
        return self._activity(found[0])

    def _activity(self, summary: AccountSummary) -> AccountActivity:
        whose = summary.account.id
        holder = Holder(HolderKind.ACCOUNT, str(whose))
        is_anonymous = whose == ANONYMOUS
        return AccountActivity(
            summary=summary,
            notified=self._counter.notified(whose),
            credits=self._counter.left(whose),
            connections=(
                self._anonymous() if is_anonymous else self._connections(holder)
            ),
        )

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
