"""Subscriptions of the model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from msgspec.structs import replace

from protocols.operational_events import EventType
from protocols.urls import normal_url
from storage.errors import NotFound
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    AccountId,
    FeedId,
    NewSubscription,
    PauseChanged,
    Position,
    RecordKind,
    RetryingSubscription,
    SubscriberGroup,
    Subscription,
    SubscriptionId,
    SubscriptionsEnded,
    SubscriptionState,
    WorkKind,
)
from storage.subscription_filter import keeps_document

from .state import ModelRetry, State, milliseconds


class Former(TypedDict, total=False):
    former_secret: str
    former_until: datetime | None


TROUBLE = {RecordKind.ERROR, RecordKind.RECOVERED}
NEVER = 2**63 - 1
"""A position above that of every record."""
ALIVE = {SubscriptionState.PENDING, SubscriptionState.ACTIVE}


class MemorySubscriptions:
    def __init__(self, state: State) -> None:
        self._state = state

    async def add(self, new: NewSubscription, now: datetime) -> Subscription:
        feed = self._state.feed(new.feed_id)
        if feed.credentials is not None and new.account != OPERATOR:
            raise NotFound("feed", new.feed_id)
        self._state.topics.setdefault(new.topic, new.feed_id)
        known = await self.find(new.account, new.topic, new.callback)
        lease_end = None if new.lease_end is None else milliseconds(new.lease_end)
        terms: dict[str, Any] = {
            "secret": new.secret,
            "algorithm": new.algorithm,
            "format": new.format,
            "updates": new.updates,
            "batch": new.batch,
            "lease_end": lease_end,
        }
        is_new = known is None or self._state.leaves_gaps
        new_id = self._state.next_id("subscription") if is_new else 0
        if known is not None and known.state in ALIVE:
            spelled = {"topic": new.topic, "callback": new.callback}
            former = _former(known, new, now)
            return self._put(replace(known, **terms, **spelled, **former))
        subscription_id = known.id if known else new_id
        self._state.conditions.pop(SubscriptionId(subscription_id), None)
        self._state.told_since.pop(SubscriptionId(subscription_id), None)
        made = self._put(
            Subscription(
                id=SubscriptionId(subscription_id),
                account=new.account,
                topic=new.topic,
                feed_id=new.feed_id,
                callback=new.callback,
                state=SubscriptionState.ACTIVE,
                from_position=Position(NEVER if new.is_silent else self._state.log_end),
                created_at=milliseconds(now),
                exhausted=False,
                **terms,
            )
        )
        self._tell_of_trouble(made)
        return made

    async def edit(
        self, subscription_id: SubscriptionId, new: NewSubscription, now: datetime
    ) -> Subscription | None:
        known = await self.get(subscription_id)
        if known is None or known.state is not SubscriptionState.ACTIVE:
            return None
        return await self.add(replace(new, lease_end=known.lease_end), now)

    def _tell_of_trouble(self, made: Subscription) -> None:
        """Owe the subscription the record of the feed's error, or wait for one."""
        state = self._state
        of_feed = [
            each for each in state.records.values() if each.feed_id == made.feed_id
        ]
        told = [each for each in of_feed if each.kind in TROUBLE]
        last = max(told, key=lambda each: each.position, default=None)
        if last is None or last.kind is not RecordKind.ERROR:
            feed = state.feeds[made.feed_id]
            if feed.stored.polling.failures:
                feed.is_error_awaited = True
            return
        if made.from_position == NEVER or not state.is_wanted(made, last):
            return
        is_ahead = state.log_end > last.position
        retrying = RetryingSubscription(
            subscription=made,
            position=Position(last.position - 1),
            attempts=0,
            next_try=made.created_at,
            failing_since=made.created_at,
            last_status=0,
            last_error="",
            skip_after=last.position if is_ahead else None,
            skip_to=Position(state.log_end) if is_ahead else None,
        )
        now = made.created_at
        state.retries[made.id] = ModelRetry(retrying, now, now)

    def _put(self, subscription: Subscription) -> Subscription:
        self._state.subscriptions[subscription.id] = subscription
        feed = self._state.feeds[subscription.feed_id]
        subscribers = self._state.active(subscription.feed_id)
        format = feed.stored.format
        if not any(keeps_document(each.format, format) for each in subscribers):
            feed.body = None
        return subscription

    async def get(self, subscription_id: SubscriptionId) -> Subscription | None:
        return self._state.subscriptions.get(subscription_id)

    async def find(
        self, account: AccountId, topic: str, callback: str
    ) -> Subscription | None:
        for each in self._state.subscriptions.values():
            if each.account == account and _is_same(each, topic, callback):
                return each
        return None

    async def holds(self, account: AccountId, feed_id: FeedId) -> bool:
        return any(each.account == account for each in self._state.active(feed_id))

    async def page(
        self,
        *,
        after: SubscriptionId,
        limit: int,
        account: AccountId | None = None,
        topic: str | None = None,
        callback: str | None = None,
    ) -> list[Subscription]:
        return [
            each
            for each in self._state.subscriptions.values()
            if each.id > after
            and each.state in ALIVE
            and account in (None, each.account)
            and (topic is None or normal_url(topic) == normal_url(each.topic))
            and (callback is None or normal_url(callback) == normal_url(each.callback))
        ][:limit]

    async def end(
        self, subscription_id: SubscriptionId, reason: str, now: datetime, *, tell: bool
    ) -> Subscription:
        if subscription_id not in self._state.subscriptions:
            raise NotFound("subscription", subscription_id)
        state = SubscriptionState.ENDING if tell else SubscriptionState.ENDED
        self.end_these([subscription_id], reason, state, now)
        return self._state.subscriptions[subscription_id]

    async def end_all(
        self,
        feed_id: FeedId,
        reason: str,
        now: datetime,
        limit: int,
        whose: SubscriberGroup = SubscriberGroup.ALL,
    ) -> int:
        meant = (each for each in self._state.active(feed_id) if _is_of(whose, each))
        ids = [each.id for each in meant][:limit]
        return self.end_these(ids, reason, SubscriptionState.ENDING, now)

    async def expire(self, now: datetime, limit: int) -> int:
        over = sorted(
            (each.lease_end, each.id)
            for each in self._state.subscriptions.values()
            if each.state is SubscriptionState.ACTIVE
            and each.lease_end is not None
            and each.lease_end <= milliseconds(now)
        )
        ids = [each for _, each in over[:limit]]
        return self.end_these(
            ids, "the lease has expired", SubscriptionState.ENDING, now
        )

    def is_alive(self, subscription_id: SubscriptionId) -> bool:
        return self._state.subscriptions[subscription_id].state in ALIVE

    def end_these(
        self,
        ids: Sequence[SubscriptionId],
        reason: str,
        state: SubscriptionState,
        now: datetime,
    ) -> int:
        self._state.queue_of_subscriptions(
            ids, EventType.SUBSCRIPTION_ENDED, milliseconds(now), reason=reason
        )
        ended = 0
        for each in ids:
            subscription = self._state.subscriptions[each]
            self._state.retries.pop(each, None)
            if subscription.state in ALIVE:
                self._state.condition(each).paused_at = None
                self._put(replace(subscription, state=state, ended_reason=reason))
                self._state.ended_at[each] = milliseconds(now)
                ended += 1
        if ids:
            end = Position(self._state.log_end)
            self._state.tell(SubscriptionsEnded(tuple(ids), end))
        return ended

    async def pause(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        if self._state.active_or_none(subscription_id) is None:
            return False
        condition = self._state.condition(subscription_id)
        condition.paused_at = condition.paused_at or milliseconds(now)
        retry = self._state.retries.get(subscription_id)
        if retry is not None:
            retry.stored = replace(retry.stored, is_paused=True)
        self._state.tell(PauseChanged(subscription_id, is_paused=True))
        return True

    async def resume(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        state = self._state
        if state.active_or_none(subscription_id) is None:
            return False
        state.condition(subscription_id).paused_at = None
        retry = state.retries.get(subscription_id)
        if retry is not None and retry.stored.is_paused:
            retry.stored = replace(retry.stored, is_paused=False)
            retry.make_due(milliseconds(now))
        state.note_conditions([subscription_id], now)
        self._state.tell(PauseChanged(subscription_id, is_paused=False))
        return True

    async def ending(self, now: datetime, limit: int) -> list[Subscription]:
        return [
            each
            for each in self._state.subscriptions.values()
            if each.state is SubscriptionState.ENDING
            and not self._state.holds(WorkKind.DENIALS, each.id, now)
        ][:limit]

    async def mark_denied(
        self, ids: Sequence[SubscriptionId], *, lease_id: int
    ) -> frozenset[SubscriptionId]:
        held = frozenset(
            each
            for each in ids
            if self._state.end_claim(WorkKind.DENIALS, each, lease_id)
        )
        for each in held:
            known = self._state.subscriptions.get(each)
            if known is not None and known.state is SubscriptionState.ENDING:
                self._put(replace(known, state=SubscriptionState.ENDED))
        return held

    async def forget_secrets(self, now: datetime, limit: int) -> int:
        over = sorted(
            (each.former_until, each.id)
            for each in self._state.subscriptions.values()
            if each.former_until is not None and each.former_until <= milliseconds(now)
        )
        for _, gone in over[:limit]:
            known = self._state.subscriptions[gone]
            self._put(replace(known, former_secret="", former_until=None))
        return len(over[:limit])

    async def purge_ended(self, before: datetime, limit: int) -> int:
        state = self._state
        over = sorted(
            (state.ended_at[each.id], each.id)
            for each in state.subscriptions.values()
            if each.state is SubscriptionState.ENDED
            and state.ended_at[each.id] < milliseconds(before)
        )
        gone = {each for _, each in over[:limit]}
        for each in gone:
            del state.subscriptions[each]
        state.dead = {
            key: each
            for key, each in state.dead.items()
            if each.subscription_id not in gone
        }
        state.attempts = [
            each for each in state.attempts if each.subscription_id not in gone
        ]
        return len(gone)

    async def count(self, feed_id: FeedId) -> int:
        return len(self._state.active(feed_id))

    async def counts(self, feeds: Sequence[FeedId]) -> dict[FeedId, int]:
        known = [each for each in feeds if each in self._state.feeds]
        return {each: len(self._state.active(each)) for each in known}


def _is_of(whose: SubscriberGroup, subscription: Subscription) -> bool:
    if whose is SubscriberGroup.STRANGERS:
        return subscription.account == ANONYMOUS
    return whose is SubscriberGroup.ALL or subscription.account != OPERATOR


def _former(known: Subscription, new: NewSubscription, now: datetime) -> Former:
    if not known.secret or not new.secret:
        return {"former_secret": "", "former_until": None}
    if known.secret == new.secret:
        return {}
    if new.former_until is None or new.former_until <= now:
        return {"former_secret": "", "former_until": None}
    until = milliseconds(new.former_until)
    return {"former_secret": known.secret, "former_until": until}


def _is_same(known: Subscription, topic: str, callback: str) -> bool:
    return (normal_url(known.topic), normal_url(known.callback)) == (
        normal_url(topic),
        normal_url(callback),
    )
