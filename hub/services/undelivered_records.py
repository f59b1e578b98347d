"""Undelivered records of callbacks: try again to deliver them, or discard them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hub.delivery.asked_retries import AskedRetries
from hub.runtime.clock import Clock
from hub.services.service_errors import DeliveryUnderWay
from storage.contract import DeliveryStore, SubscriptionStore
from storage.errors import NotFound, StorageBusy
from storage.records import (
    AccountId,
    Attempt,
    AttemptRange,
    DeadLetter,
    Position,
    Subscription,
    SubscriptionId,
)

LOOKED_THROUGH: Final = 20
"""Requests among which that of a dead letter is looked for."""


class DeadLetterWaits(DeliveryUnderWay):
    """A dead letter is not sent while its callback is sent something else."""

    def __init__(self, dead_letter: DeadLetter) -> None:
        super().__init__()
        self.dead_letter = dead_letter


@dataclass(frozen=True, slots=True, kw_only=True)
class Resending:
    """What came of a dead letter of a ``subscription`` that was sent again.
    ``attempt``: the last request about it, if that is known. ``is_over``: nothing of it
    is to be sent any more; ``is_lost``: that is because it was given up again."""

    subscription: Subscription
    attempt: Attempt | None = None
    is_over: bool = False
    is_lost: bool = False


class UndeliveredService:
    """Retries and discards undelivered records. With an ``account``, those of other
    accounts count as not found."""

    def __init__(
        self,
        deliveries: DeliveryStore,
        subscriptions: SubscriptionStore,
        clock: Clock,
        asked: AskedRetries,
    ) -> None:
        self._asked = asked
        self._deliveries = deliveries
        self._subscriptions = subscriptions
        self._clock = clock

    async def retry(
        self, subscription_id: SubscriptionId, *, account: AccountId | None = None
    ) -> None:
        """Try a retrying subscription now, ahead of its schedule: that try is none of
        those after which it is given up. Raises `NotFound`."""
        await self._check_owner(subscription_id, account)
        self._asked.note(subscription_id)  # before: it may begin at once
        is_made_due = False
        try:
            is_made_due = await self._deliveries.retry_now(
                subscription_id, self._clock.now()
            )
        finally:
            if not is_made_due:
                self._asked.forget(subscription_id)

    async def retry_dead_letter(
        self, number: int, *, account: AccountId | None = None
    ) -> DeadLetter:
        """Deliver a dead letter after all, as far as the log still has it. Raises
        `NotFound`, and `DeadLetterWaits` while its subscription is sent something
        else."""
        found = await self._dead_letter(number, account)
        try:
            await self._deliveries.retry_dead_letter(number, self._clock.now())
        except StorageBusy as error:
            raise DeadLetterWaits(found) from error
        return found

    async def discard(
        self, subscription_id: SubscriptionId, *, account: AccountId | None = None
    ) -> None:
        """Discard what a retrying subscription still lacks. Raises `NotFound`."""
        await self._check_owner(subscription_id, account)
        await self._deliveries.discard_retry(subscription_id, self._clock.now())

    async def discard_dead_letter(
        self, number: int, *, account: AccountId | None = None
    ) -> DeadLetter:
        """Discard a dead letter. Raises `NotFound`."""
        found = await self._dead_letter(number, account)
        await self._deliveries.discard_dead_letter(number)
        return found

    async def resending(
        self,
        subscription_id: SubscriptionId,
        since: datetime | None,
        first: Position,
        last: Position,
    ) -> Resending | None:
        """What came of records that a subscription is sent again since then; ``since``
        None: they are not. None if there is no such subscription."""
        found = await self._subscriptions.get(subscription_id)
        if found is None:
            return None
        if since is None:
            return Resending(subscription=found)
        attempts = [
            each
            for each in await self._deliveries.attempts(
                subscription_id, LOOKED_THROUGH, AttemptRange(since=since)
            )
            if each.position >= first
        ]
        retrying = await self._deliveries.retrying_subscription(subscription_id)
        if retrying is not None and retrying.lacks(last):
            return Resending(subscription=found, attempt=next(iter(attempts), None))
        taken = [each for each in attempts if not each.error]
        # What was accepted up to its end is followed by records of others.
        inner = [each.position for each in taken if each.position < last]
        edges = [first, last, *(Position(each + 1) for each in inner)]
        if await self._deliveries.dead_letters_of([subscription_id], edges):
            failed = next((each for each in attempts if each.error), None)
            return Resending(
                subscription=found, attempt=failed, is_over=True, is_lost=True
            )
        of_it = [each for each in taken if each.position <= last] or taken[-1:]
        return Resending(
            subscription=found, attempt=next(iter(of_it), None), is_over=True
        )

    async def _dead_letter(self, number: int, account: AccountId | None) -> DeadLetter:
        found = await self._deliveries.dead_letters(after=number - 1, limit=1)
        if not found or found[0].id != number:
            raise NotFound("dead letter", number)
        try:
            await self._check_owner(found[0].subscription_id, account)
        except NotFound:
            raise NotFound("dead letter", number) from None
        return found[0]

    async def _check_owner(
        self, subscription_id: SubscriptionId, account: AccountId | None
    ) -> None:
        if account is None:
            return
        found = await self._subscriptions.get(subscription_id)
        if found is None or found.account != account:
            raise NotFound("subscription", subscription_id)
