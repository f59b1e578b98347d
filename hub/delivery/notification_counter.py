"""Each account's notifications, counted down as Superfeedr's credits were.

Superfeedr's subscribers watch ``X-Superfeedr-Credits``: it decreases by one with each
request, so that a gap shows a missed one. It starts at a billion. After a crash it may
repeat the last numbers, like acknowledgements (docs/explanation/reliability.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from protocols.websub.websub_parameters import ENDLESS_LEASE
from storage.records import ANONYMOUS, AccountId, Subscription

GIVEN = 1_000_000_000


def lease_end(subscription: Subscription, now: int) -> int:
    """The end of a lease in Unix seconds, for ``X-Superfeedr-PubSubHubbub-Expire``.

    For an endless lease it is the end that the callback was told when it subscribed.
    """
    if subscription.lease_end is None:
        return now + ENDLESS_LEASE
    return int(subscription.lease_end.timestamp())


class NotificationCounter:
    def __init__(self, notified: Mapping[AccountId, int] | None = None) -> None:
        """``notified``: how many requests each account was sent before."""
        self._notified = dict(notified or {})
        self._further = Counter[AccountId]()

    def resume(self, notified: Mapping[AccountId, int]) -> None:
        """Go on from stored counts; requests counted meanwhile are added to them."""
        for account, count in notified.items():
            self._notified[account] = count + self._notified.get(account, 0)

    def take(self, account: AccountId) -> int | None:
        """Count one more request; returns what is left. None: the open hub has no
        credits."""
        if account == ANONYMOUS:
            return None
        count = self._notified[account] = self._notified.get(account, 0) + 1
        self._further[account] += 1
        return GIVEN - count % GIVEN

    def notified(self, account: AccountId) -> int:
        """How many requests the account was sent so far."""
        return self._notified.get(account, 0)

    def left(self, account: AccountId) -> int:
        return GIVEN - self.notified(account) % GIVEN

    def changes(self) -> tuple[tuple[AccountId, int], ...]:
        """The requests since the last call, to be added to the stored counts.

        They are added because other nodes count as well.
        """
        further, self._further = self._further, Counter()
        return tuple(sorted(further.items()))
