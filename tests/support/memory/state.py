"""Everything the model holds, and the questions that several stores ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from protocols.operational_events import EventType
from storage.errors import NotFound
from storage.records import (
    CONFIRMED_FAILURES,
    NOBODY,
    AccountId,
    Attempt,
    BulkPlan,
    ControlEvent,
    Credentials,
    DeadLetter,
    EntryId,
    FeedId,
    FeedState,
    Flushed,
    OperationalEvent,
    PlanId,
    Poll,
    Position,
    Record,
    RetryingSubscription,
    StoredBody,
    StoredEntry,
    StoredFeed,
    StoredSitePage,
    Subscription,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionState,
    WorkKind,
)
from storage.sqlite.log_appends import FEW_SUBSCRIBERS
from storage.subscription_filter import wants


def milliseconds(at: datetime) -> datetime:
    """The time as it is kept: cut to whole milliseconds."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


@dataclass
class ModelFeed:
    stored: StoredFeed
    credentials: Credentials | None = None
    seen: bytes = b""
    slices: bytes = b""
    inventory: bytes = b""
    raw: StoredBody | None = None
    head: bytes | None = None
    body: StoredBody | None = None
    site: bytes = b""
    is_error_awaited: bool = False
    version: int = 0
    polls: tuple[Poll, ...] = ()
    site_pages: dict[str, StoredSitePage] = field(default_factory=dict)


@dataclass
class ModelEntry:
    stored: StoredEntry
    sorted_at: datetime
    last_position: int = 0


@dataclass
class ModelChunk:
    id: int
    position: Position
    feed_id: FeedId
    members: list[SubscriptionId]
    lease_id: int
    due: datetime
    at: datetime
    outcomes: dict[int, tuple[int, int]] = field(default_factory=dict)
    times: dict[int, datetime] = field(default_factory=dict)

    def taken_at(self, index: int) -> datetime:
        """When a member's delivery was over, if that is known."""
        return self.times.get(index, self.at)

    @property
    def pending(self) -> list[int]:
        return [each for each in range(len(self.members)) if each not in self.outcomes]


@dataclass
class ModelRetry:
    stored: RetryingSubscription  # its subscription is as it was when it was opened
    due: datetime
    news_from: datetime

    def make_due(self, now: datetime) -> None:
        """Schedule the retry for now, unless it is leased, and so being tried
        already."""
        if not self.stored.lease_id:
            self.due = now
            self.stored = replace(self.stored, next_try=now)


@dataclass
class ModelCondition:
    """The condition of a subscription; ``since`` None: since the subscription began."""

    health: SubscriptionHealth = SubscriptionHealth.OK
    since: datetime | None = None
    failure: str = ""
    paused_at: datetime | None = None


@dataclass
class State:
    epoch: str = "model"
    log_end: int = 0
    tail: int = 0
    feeds: dict[FeedId, ModelFeed] = field(default_factory=dict)
    topics: dict[str, FeedId] = field(default_factory=dict)
    entries: dict[EntryId, ModelEntry] = field(default_factory=dict)
    records: dict[Position, Record] = field(default_factory=dict)
    trimmed: dict[FeedId, Position] = field(default_factory=dict)
    subscriptions: dict[SubscriptionId, Subscription] = field(default_factory=dict)
    ended_at: dict[SubscriptionId, datetime] = field(default_factory=dict)
    conditions: dict[SubscriptionId, ModelCondition] = field(default_factory=dict)
    fanouts: dict[Position, SubscriptionId] = field(default_factory=dict)
    turns: dict[FeedId, int] = field(default_factory=dict)
    """The last chunks of feeds whose records wait, by feed."""
    chunks: dict[int, ModelChunk] = field(default_factory=dict)
    finished: list[ModelChunk] = field(default_factory=list)
    retries: dict[SubscriptionId, ModelRetry] = field(default_factory=dict)
    dead: dict[int, DeadLetter] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    asked_hosts: dict[int, str] = field(default_factory=dict)
    """The hosts of attempts, by the attempt's id."""
    notified: dict[AccountId, int] = field(default_factory=dict)
    plans: dict[PlanId, BulkPlan] = field(default_factory=dict)
    host_holds: dict[str, datetime] = field(default_factory=dict)
    event_queue: list[OperationalEvent] = field(default_factory=list)
    told_since: dict[SubscriptionId, datetime] = field(default_factory=dict)
    hub_conditions: dict[str, OperationalEvent] = field(default_factory=dict)
    watching: list[Callable[[ControlEvent], None]] = field(default_factory=list)
    node: int = 0  # whose handle it is
    lanes: dict[int, tuple[int, Flushed]] = field(default_factory=dict)
    """By node, the number of its last flush and what came of it."""
    claims: dict[tuple[WorkKind, int], tuple[int, datetime]] = field(
        default_factory=dict
    )
    """Under which lease something is held, and until when."""
    claim_after_commit: Callable[[], None] = lambda: None
    last_ids: dict[str, int] = field(default_factory=dict)
    leaves_gaps: bool = True
    """Who subscribes again takes an id that is not used, as in SQLite."""

    def tell(self, event: ControlEvent) -> None:
        for each in self.watching:
            each(event)

    def holds(self, kind: WorkKind, item: int, now: datetime) -> bool:
        """Whether anybody does."""
        _, until = self.claims.get((kind, item), (0, now))
        return until > now

    def end_claim(self, kind: WorkKind, item: int, lease_id: int) -> bool:
        """End it if it is held under this lease; returns whether it was."""
        is_held = self.claims.get((kind, item), (0,))[0] == lease_id != 0
        if is_held:
            del self.claims[kind, item]
        return is_held

    def next_id(self, kind: str) -> int:
        self.last_ids[kind] = self.last_ids.get(kind, 0) + 1
        return self.last_ids[kind]

    def active(self, feed_id: FeedId) -> list[Subscription]:
        return [
            each
            for each in self.subscriptions.values()
            if each.feed_id == feed_id and each.state is SubscriptionState.ACTIVE
        ]

    def may_read(self, viewer: AccountId | None, feed_id: FeedId) -> bool:
        feed = self.feeds.get(feed_id)
        if feed is None or feed.stored.state is FeedState.REMOVED:
            return False
        if viewer is None:
            return True
        is_found = feed.stored.state is FeedState.TRACK and viewer != NOBODY
        is_held = any(each.account == viewer for each in self.active(feed_id))
        is_opened = not feed.stored.private or is_found or is_held
        return feed.credentials is None and is_opened

    def active_or_none(self, subscription_id: SubscriptionId) -> Subscription | None:
        found = self.subscriptions.get(subscription_id)
        is_active = found is not None and found.state is SubscriptionState.ACTIVE
        return found if is_active else None

    def condition(self, subscription_id: SubscriptionId) -> ModelCondition:
        return self.conditions.setdefault(subscription_id, ModelCondition())

    def is_paused(self, subscription_id: SubscriptionId) -> bool:
        return self.condition(subscription_id).paused_at is not None

    def note_conditions(self, ids: Iterable[SubscriptionId], at: datetime) -> None:
        """Note whether subscriptions fail, are behind or are well."""
        noted = sorted(set(ids))
        for each in noted:
            subscription = self.active_or_none(each)
            if subscription is not None:
                self._note_condition(subscription, milliseconds(at))
        self._queue_turns(noted, milliseconds(at))

    def _note_condition(self, subscription: Subscription, at: datetime) -> None:
        known = self.condition(subscription.id)
        retry = self.retries.get(subscription.id)
        late = retry.stored if retry else None
        is_well = known.health is SubscriptionHealth.OK
        if subscription.exhausted or (late and late.attempts):
            health = SubscriptionHealth.FAILING
        elif late is None or (late.skip_to is not None and is_well):
            health = SubscriptionHealth.OK
        else:
            health = SubscriptionHealth.SLOW
        if health is not known.health:
            known.since = late.failing_since if late else at
        known.health = health
        if late and (late.attempts or not subscription.exhausted):
            known.failure = late.last_error
        elif not subscription.exhausted:
            known.failure = ""

    @property
    def are_events_wanted(self) -> bool:
        return any(
            each.stored.state is FeedState.EVENTS and self.active(feed_id)
            for feed_id, each in self.feeds.items()
        )

    def queue_of_subscriptions(
        self, ids: Iterable[SubscriptionId], type: EventType, at: datetime, **more: Any
    ) -> None:
        """Queue an event for each that is active, unless it is subscribed to events."""
        for each in sorted(set(ids)):
            subscription = self.active_or_none(each)
            if subscription is None or not self.are_events_wanted:
                continue
            feed = self.feeds[subscription.feed_id].stored
            if feed.state is FeedState.EVENTS:
                continue
            condition = self.conditions.get(each, ModelCondition())
            is_failing = condition.health is SubscriptionHealth.FAILING
            retry = self.retries.get(each)
            members = {
                "since": condition.since if is_failing else None,
                "reason": condition.failure,
                "code": retry.stored.last_status if is_failing and retry else None,
                **more,
            }
            self.event_queue.append(
                OperationalEvent(
                    type=type,
                    at=at,
                    subject=each,
                    url=subscription.topic,
                    is_private=feed.private,
                    callback=subscription.callback,
                    **members,
                )
            )

    def _queue_turns(self, ids: Iterable[SubscriptionId], at: datetime) -> None:
        for each in ids:
            is_well = self.active_or_none(each) and not self._is_failing(each)
            if each in self.told_since and is_well:
                since, type = (
                    self.told_since.pop(each),
                    EventType.SUBSCRIPTION_RECOVERED,
                )
                self.queue_of_subscriptions([each], type, at, since=since, reason="")
        for each in ids:
            if each not in self.told_since and self._is_failing(each):
                retry = self.retries.get(each)
                has_failed = retry and retry.stored.attempts >= CONFIRMED_FAILURES
                if has_failed and self.are_events_wanted:
                    self.told_since[each] = self.conditions[each].since or at
                    type = EventType.SUBSCRIPTION_FAILING
                    self.queue_of_subscriptions([each], type, at)

    def _is_failing(self, subscription_id: SubscriptionId) -> bool:
        condition = self.conditions.get(subscription_id)
        return condition is not None and condition.health is SubscriptionHealth.FAILING

    def fan_out(self, position: Position) -> None:
        """Queue the record if anybody gets it; of many subscribers none is asked."""
        record = self.records[position]
        active = self.active(record.feed_id)
        wanting = (
            each.from_position < position and self.is_wanted(each, record)
            for each in active
        )
        if len(active) > FEW_SUBSCRIBERS or any(wanting):
            waiting = {self.records[each].feed_id for each in self.fanouts}
            if record.feed_id not in waiting:
                self.turns.pop(record.feed_id, None)
            self.fanouts[position] = SubscriptionId(0)

    def is_wanted(self, subscription: Subscription, record: Record) -> bool:
        return record.feed_id == subscription.feed_id and wants(
            subscription.format,
            subscription.updates,
            record.kind,
            any(ref.fresh for ref in record.entries),
            record.is_superseded,
        )

    def wanted(
        self,
        subscription_id: SubscriptionId,
        after: int,
        to: int,
        skipped: tuple[int | None, int | None] = (None, None),
    ) -> list[Position]:
        """Positions of wanted records in (after, to], without those skipped."""
        subscription = self.subscriptions[subscription_id]
        skip_after, skip_to = skipped
        return [
            position
            for position, record in sorted(self.records.items())
            if after < position <= to
            and not (skip_after or 0) < position <= (skip_to or 0)
            and self.is_wanted(subscription, record)
        ]

    def feed_positions(self, feed_id: FeedId) -> Iterator[Position]:
        for position, record in sorted(self.records.items()):
            if record.feed_id == feed_id:
                yield position

    def last_passed(self, subscription_id: SubscriptionId) -> int:
        """The position up to which fan-out has passed the subscription."""
        feed_id = self.subscriptions[subscription_id].feed_id
        ahead = [
            position
            for position in self.feed_positions(feed_id)
            if self.fanouts.get(position, subscription_id) < subscription_id
        ]
        return min(ahead) - 1 if ahead else self.log_end

    def bury(
        self,
        subscription_id: SubscriptionId,
        first: int,
        last: int,
        reason: str,
        at: datetime,
    ) -> None:
        ranges = [
            each
            for each in self.dead.values()
            if each.subscription_id == subscription_id
        ]
        previous = ranges[-1] if ranges else None
        subscription = self.subscriptions[subscription_id]
        dead_id = self.next_id("dead")
        start, end = first, last
        if previous is not None and self._adjoins(previous, first, reason):
            self.last_ids["dead"] -= 1
            dead_id, start = previous.id, previous.first
            end = max(previous.last, last)
        self.dead[dead_id] = DeadLetter(
            id=dead_id,
            subscription_id=subscription_id,
            topic=subscription.topic,
            callback=subscription.callback,
            first=Position(start),
            last=Position(end),
            reason=reason,
            at=milliseconds(at),
        )

    def _adjoins(self, previous: DeadLetter, first: int, reason: str) -> bool:
        between = self.wanted(previous.subscription_id, previous.last, first - 1)
        return (
            (previous.reason == "trimmed") == (reason == "trimmed")
            and previous.first <= first
            and (previous.last + 1 >= first or previous.last >= self.tail)
            and not between
        )

    def feed(self, feed_id: FeedId) -> ModelFeed:
        if feed_id not in self.feeds:
            raise NotFound("feed", feed_id)
        return self.feeds[feed_id]
