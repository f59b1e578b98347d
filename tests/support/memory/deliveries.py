"""Deliveries of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import inf

from msgspec.structs import replace

from protocols.urls import normal_url
from storage.errors import NotFound, StorageBusy, SubscriptionPaused
from storage.records import (
    WAS_PAUSED,
    AccountId,
    Attempt,
    AttemptFilter,
    AttemptRange,
    ClaimedChunk,
    ClaimTerms,
    DeadLetter,
    DeliveryFlush,
    DeliveryLag,
    FailedAttempt,
    FeedId,
    Flushed,
    LatestRequests,
    Position,
    Record,
    RetryingSubscription,
    SentChunk,
    Subscription,
    SubscriptionId,
    TimedRequest,
    UndeliveredFilter,
    UndeliveredOutcome,
)

from .flushing import Flushing, pass_by
from .state import ModelChunk, ModelRetry, State, milliseconds

CHUNK_SIZE = 500
MOST_OF_ONE_FEED = 4
MOST_HURRIED = 1_000
_START = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryDeliveries:
    def __init__(self, state: State) -> None:
        self._state = state

    async def claim_chunks(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        chunks = self._reclaim(milliseconds(terms.now), terms.limit)
        return self._claim(chunks, terms)

    @contextmanager
    def claim_with_commits(
        self,
        ask: Callable[[], ClaimTerms | None],
        give: Callable[[list[ClaimedChunk] | None], None],
    ) -> Iterator[None]:
        def claim() -> None:
            if (terms := ask()) is not None:
                give(self._claim([], terms))

        self._state.claim_after_commit = claim
        try:
            yield
        finally:
            self._state.claim_after_commit = lambda: None

    def _claim(self, chunks: list[ModelChunk], terms: ClaimTerms) -> list[ClaimedChunk]:
        now, until = milliseconds(terms.now), milliseconds(terms.until)
        while len(chunks) < terms.limit:
            position = self._next_fanout()
            if position is None:
                break
            chunk = self._split(position, now)
            if chunk is not None:
                chunks.append(chunk)
        for chunk in chunks:
            chunk.lease_id, chunk.due = terms.lease_id, until
        return [self._claimed(chunk) for chunk in chunks]

    def _reclaim(self, now: datetime, limit: int) -> list[ModelChunk]:
        state = self._state
        over = [each for each in state.chunks.values() if each.due <= now]
        over.sort(key=lambda each: (each.position, each.id))
        for chunk in over[:limit]:
            pending = [chunk.members[index] for index in chunk.pending]
            self._owe_to_paused(pending, chunk.position, now)
            for index in chunk.pending:
                if not self._is_able(chunk.members[index], chunk.position):
                    pass_by(chunk, index, now, state)
        return [chunk for chunk in over[:limit] if chunk.id in state.chunks]

    def _is_able(self, subscription_id: SubscriptionId, position: Position) -> bool:
        subscription = self._state.active_or_none(subscription_id)
        return (
            subscription is not None
            and subscription.from_position < position
            and subscription_id not in self._state.retries
            and not self._state.is_paused(subscription_id)
        )

    def _owe_to_paused(
        self, ids: Iterable[SubscriptionId], position: Position, now: datetime
    ) -> None:
        """Note that the paused ones of these subscriptions lack the record."""
        state = self._state
        paused = [each for each in ids if state.is_paused(each)]
        for each in paused:
            subscription = state.subscriptions[each]
            if subscription.from_position < position and each not in state.retries:
                retrying = RetryingSubscription(
                    subscription=subscription,
                    position=Position(position - 1),
                    attempts=0,
                    next_try=now,
                    failing_since=now,
                    last_status=0,
                    last_error=WAS_PAUSED,
                    is_paused=True,
                )
                state.retries[each] = ModelRetry(retrying, now, _START)

    def _next_fanout(self) -> Position | None:
        """The record to split next, by how long ago its feed had a chunk.

        Feeds without chunks come first.
        """
        state = self._state
        able, seen = [], set[int]()
        for position in sorted(state.fanouts):
            feed_id = state.records[position].feed_id
            chunks = [each for each in state.chunks.values() if each.feed_id == feed_id]
            is_next = feed_id not in seen
            seen.add(feed_id)
            is_earlier_left = any(each.position < position for each in chunks)
            if is_next and not is_earlier_left and len(chunks) < MOST_OF_ONE_FEED:
                last = max((each.id for each in chunks), default=0)
                turn = last or state.turns.get(feed_id, 0)
                able.append((bool(chunks), turn, position))
        return min(able, default=(False, 0, None))[2]

    def _split(self, position: Position, now: datetime) -> ModelChunk | None:
        state, record = self._state, self._state.records[position]
        if not state.fanouts[position]:
            self._hurry_retries(record, now)
        following = [
            each.id
            for each in sorted(state.active(record.feed_id), key=lambda each: each.id)
            if each.id > state.fanouts[position] and state.is_wanted(each, record)
        ]
        able = [each for each in following if self._is_able(each, position)]
        members = able[:CHUNK_SIZE]
        if len(members) == CHUNK_SIZE:
            following = [each for each in following if each <= members[-1]]
        self._owe_to_paused(following, position, now)
        if len(members) == CHUNK_SIZE:
            state.fanouts[position] = members[-1]
        else:
            del state.fanouts[position]
        if not members:
            return None
        chunk_id = state.next_id("chunk")
        chunk = ModelChunk(chunk_id, position, record.feed_id, members, 0, now, now)
        state.chunks[chunk_id] = chunk
        state.turns[record.feed_id] = chunk_id
        return chunk

    def _hurry_retries(self, record: Record, now: datetime) -> None:
        state = self._state
        waiting = [
            each
            for subscription_id, each in sorted(state.retries.items())
            if each.news_from <= now < each.due
            and not each.stored.is_paused
            and not each.stored.lease_id
            and state.subscriptions[subscription_id].feed_id == record.feed_id
            and state.is_wanted(state.subscriptions[subscription_id], record)
        ]
        waiting.sort(key=lambda each: each.news_from)
        for each in waiting[:MOST_HURRIED]:
            each.due = now

    def _claimed(self, chunk: ModelChunk) -> ClaimedChunk:
        return ClaimedChunk(
            id=chunk.id,
            lease_id=chunk.lease_id,
            record=self._state.records[chunk.position],
            pending=tuple(
                (index, self._state.subscriptions[chunk.members[index]])
                for index in chunk.pending
            ),
        )

    async def renew(
        self, chunk_ids: Sequence[int], *, lease_id: int, seconds: float, now: datetime
    ) -> None:
        until = now + timedelta(seconds=seconds)
        for each in chunk_ids:
            chunk = self._state.chunks.get(each)
            if chunk is not None and chunk.lease_id == lease_id:
                chunk.due = milliseconds(until)

    async def flush(self, flush: DeliveryFlush) -> Flushed:
        state = self._state
        number, flushed = state.lanes.get(state.node, (0, Flushed()))
        if not flush.number or flush.number != number:
            flushed = Flushing(state, flush).apply()
            state.lanes[state.node] = flush.number, flushed
        return flushed

    async def notified(self) -> dict[AccountId, int]:
        return dict(self._state.notified)

    async def claim_retrying(self, terms: ClaimTerms) -> list[RetryingSubscription]:
        due = sorted(
            (each.due, subscription_id)
            for subscription_id, each in self._state.retries.items()
            if each.due <= milliseconds(terms.now) and not each.stored.is_paused
        )[: terms.limit]
        for _, each in due:
            retrying = self._state.retries[each]
            retrying.due = milliseconds(terms.until)
            retrying.stored = replace(retrying.stored, lease_id=terms.lease_id)
        return [self._retrying(each) for _, each in due]

    def _retrying(self, subscription_id: SubscriptionId) -> RetryingSubscription:
        stored = self._state.retries[subscription_id].stored
        return replace(stored, subscription=self._state.subscriptions[subscription_id])

    async def next_retry(self) -> datetime | None:
        retries = self._state.retries.values()
        claimable = (each.due for each in retries if not each.stored.is_paused)
        return min(claimable, default=None)

    async def retrying(
        self,
        *,
        after: SubscriptionId,
        limit: int,
        wanted: UndeliveredFilter | None = None,
    ) -> list[RetryingSubscription]:
        if wanted and wanted.outcome is UndeliveredOutcome.GIVEN_UP:
            return []
        ids = sorted(each for each in self._state.retries if each > after)
        return [
            self._retrying(each)
            for each in ids
            if self._has_told(
                wanted, each, self._state.retries[each].stored.position + 1
            )
        ][:limit]

    def _has_told(
        self,
        wanted: UndeliveredFilter | None,
        subscription_id: SubscriptionId,
        first: int,
        last: float = inf,
    ) -> bool:
        """Whether a wanted attempt of the subscription was to deliver such a record."""
        wanted = wanted or UndeliveredFilter()
        if wanted.lacking is not None and first > wanted.lacking:
            return False
        if not wanted.names_failures:
            return wanted.subscription_id in (None, subscription_id)
        return any(
            each.subscription_id == subscription_id and first <= each.position <= last
            for each in self._wanted(wanted)
        )

    async def retrying_subscription(
        self, subscription_id: SubscriptionId
    ) -> RetryingSubscription | None:
        is_open = subscription_id in self._state.retries
        return self._retrying(subscription_id) if is_open else None

    async def lag(self, subscription_id: SubscriptionId, most: int) -> DeliveryLag:
        state = self._state
        subscription = state.active_or_none(subscription_id)
        if subscription is None:
            return DeliveryLag(records=0)
        if (retry := state.retries.get(subscription_id)) is not None:
            late = retry.stored
            skipped = (late.skip_after, late.skip_to)
            lacking = state.wanted(
                subscription_id, late.position, state.log_end, skipped
            )
        else:
            passed = max(subscription.from_position, self._reached(subscription_id))
            lacking = state.wanted(subscription_id, passed, state.log_end)
        lacking = lacking[:most]
        oldest = state.records[lacking[0]].at if lacking else None
        return DeliveryLag(records=len(lacking), oldest=oldest)

    def _reached(self, subscription_id: SubscriptionId) -> int:
        """The position up to which a subscription that is not retried was served."""
        pending = (
            chunk.position - 1
            for chunk in self._state.chunks.values()
            if subscription_id in (chunk.members[each] for each in chunk.pending)
        )
        return min(pending, default=self._state.last_passed(subscription_id))

    async def dead_letters(
        self, *, after: int, limit: int, wanted: UndeliveredFilter | None = None
    ) -> list[DeadLetter]:
        if wanted and wanted.outcome is UndeliveredOutcome.RETRIED:
            return []
        return [
            each
            for _, each in sorted(self._state.dead.items())
            if each.id > after
            and self._has_told(wanted, each.subscription_id, each.first, each.last)
        ][:limit]

    async def dead_letters_of(
        self, ids: Sequence[SubscriptionId], positions: Sequence[Position]
    ) -> list[DeadLetter]:
        return [
            each
            for _, each in sorted(self._state.dead.items())
            if each.subscription_id in ids
            and any(each.first <= position <= each.last for position in positions)
        ]

    async def count_undelivered(self, wanted: UndeliveredFilter, most: int) -> int:
        retrying = await self.retrying(
            after=SubscriptionId(0), limit=most, wanted=wanted
        )
        dead = await self.dead_letters(after=0, limit=most, wanted=wanted)
        return min(most, len(retrying) + len(dead))

    async def retry_now(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        if self._state.is_paused(subscription_id):
            raise SubscriptionPaused(subscription_id)
        found = self._state.retries.get(subscription_id)
        if found is None:
            raise NotFound("retrying subscription", subscription_id)
        if found.stored.lease_id:
            return False
        found.due = min(found.due, milliseconds(now))
        return True

    async def discard_retry(
        self, subscription_id: SubscriptionId, now: datetime
    ) -> None:
        state = self._state
        if state.retries.pop(subscription_id, None) is None:
            raise NotFound("retrying subscription", subscription_id)
        known = state.subscriptions[subscription_id]
        passed = max(known.from_position, state.last_passed(subscription_id))
        state.subscriptions[subscription_id] = replace(
            known, from_position=Position(passed)
        )
        state.note_conditions([subscription_id], now)

    async def discard_dead_letter(self, dead_id: int) -> None:
        if self._state.dead.pop(dead_id, None) is None:
            raise NotFound("dead letter", dead_id)

    async def retry_dead_letter(self, dead_id: int, now: datetime) -> None:
        state = self._state
        dead = state.dead.get(dead_id)
        if dead is None or dead.last <= state.tail:
            raise NotFound("dead letter", dead_id)
        subscription = state.active_or_none(dead.subscription_id)
        if subscription is None:
            raise NotFound("subscription", dead.subscription_id)
        if state.is_paused(subscription.id):
            raise SubscriptionPaused(subscription.id)
        if any(subscription.id in chunk.members for chunk in state.chunks.values()):
            raise StorageBusy("in a chunk")
        position = Position(max(dead.first - 1, state.tail))
        self._retry(subscription, position, dead.last, milliseconds(now))
        if dead.first <= state.tail:
            state.dead[dead_id] = replace(dead, last=Position(state.tail))
        else:
            del state.dead[dead_id]
        state.note_conditions([subscription.id], now)

    async def replay(
        self, subscription_id: SubscriptionId, after: Position, now: datetime
    ) -> None:
        state, now = self._state, milliseconds(now)
        subscription = state.active_or_none(subscription_id)
        if subscription is None:
            raise NotFound("active subscription", subscription_id)
        if state.is_paused(subscription_id):
            raise SubscriptionPaused(subscription_id)
        found = state.retries.get(subscription_id)
        if found is not None and found.stored.lease_id:
            raise StorageBusy("leased")
        if any(subscription_id in chunk.members for chunk in state.chunks.values()):
            raise StorageBusy("in a chunk")
        position = Position(max(after, state.tail))
        if found is None:
            passed = state.last_passed(subscription_id)
            self._retry(subscription, position, passed, now)
        else:
            _set_back(found, position, now)
        state.note_conditions([subscription_id], now)

    def _retry(
        self, subscription: Subscription, position: Position, last: int, now: datetime
    ) -> None:
        state = self._state
        found = state.retries.get(subscription.id)
        if found is not None:
            known = found.stored
            between = state.wanted(subscription.id, last, known.position)
            is_behind = known.position >= position and not between
            is_skipping = known.skip_after != known.skip_to
            if known.lease_id or is_skipping or not is_behind:
                raise StorageBusy("elsewhere")
            _set_back(found, position, now)
            return
        retrying = RetryingSubscription(
            subscription=subscription,
            position=position,
            attempts=0,
            next_try=now,
            failing_since=now,
            last_status=0,
            last_error="",
            skip_after=Position(last),
            skip_to=Position(max(last, state.last_passed(subscription.id))),
        )
        state.retries[subscription.id] = ModelRetry(retrying, now, _START)

    async def attempts(
        self,
        subscription_id: SubscriptionId,
        limit: int,
        wanted: AttemptRange | None = None,
    ) -> list[Attempt]:
        found = [
            each
            for each in reversed(self._state.attempts)
            if each.subscription_id == subscription_id
        ]
        for chunk in [*self._state.finished, *self._state.chunks.values()]:
            if subscription_id not in chunk.members:
                continue
            index = chunk.members.index(subscription_id)
            status, taken = chunk.outcomes.get(index, (0, 0))
            if 200 <= status < 300:
                found.append(
                    Attempt(
                        subscription_id=subscription_id,
                        position=chunk.position,
                        at=chunk.taken_at(index),
                        status=status,
                        milliseconds=taken,
                        is_exact=index in chunk.times,
                    )
                )
        found = [each for each in found if _is_in(wanted or AttemptRange(), each)]
        found.sort(key=lambda each: (each.at, each.position), reverse=True)
        return found[:limit]

    async def first_successes(
        self, records: Sequence[tuple[FeedId, Position]]
    ) -> dict[Position, datetime | None]:
        found: dict[Position, datetime | None] = {}
        for chunk in [*self._state.finished, *self._state.chunks.values()]:
            if (chunk.feed_id, chunk.position) not in records:
                continue
            known = found.get(chunk.position)
            times = [known] if known else []
            times += [
                chunk.taken_at(index)
                for index, (status, _) in chunk.outcomes.items()
                if 200 <= status < 300
            ]
            found[chunk.position] = min(times, default=None)
        return found

    async def failed_attempt(self, attempt_id: int) -> FailedAttempt | None:
        found = [each for each in self._state.attempts if each.id == attempt_id]
        return self._failed(found[0]) if found and found[0].error else None

    async def failed_attempts(
        self,
        wanted: AttemptFilter,
        *,
        limit: int,
        before: tuple[datetime, int] | None = None,
    ) -> list[FailedAttempt]:
        found = [
            replace(each, details=None)
            for each in self._wanted(wanted)
            if before is None or (each.at, each.id) < before
        ]
        found.sort(key=lambda each: (each.at, each.id), reverse=True)
        return [self._failed(each) for each in found[:limit]]

    async def sent_chunks(
        self,
        *,
        limit: int,
        before: int | None = None,
        feed_id: FeedId | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[SentChunk]:
        found = [
            each
            for each in self._state.finished
            if feed_id in (None, each.feed_id)
            and (since is None or each.at >= milliseconds(since))
            and (until is None or each.at < milliseconds(until))
        ]
        if feed_id is None:
            found.sort(key=lambda each: (each.at, each.id), reverse=True)
        else:
            found.sort(key=lambda each: (each.position, each.members[0]), reverse=True)
        ids = [each.id for each in found]
        start = 0 if before is None else ids.index(before) + 1
        return [_sent(each) for each in found[start : start + limit]]

    async def count_failed_attempts(self, wanted: AttemptFilter, most: int) -> int:
        return min(len(self._wanted(wanted)), most)

    def _wanted(self, wanted: AttemptFilter) -> list[Attempt]:
        first, last = wanted.statuses or (0, 999)
        hosts = self._state.asked_hosts
        return [
            each
            for each in self._state.attempts
            if each.error
            and first <= each.status <= last
            and wanted.host in ("", hosts[each.id])
            and (wanted.since is None or each.at >= milliseconds(wanted.since))
            and (wanted.until is None or each.at < milliseconds(wanted.until))
            and wanted.subscription_id in (None, each.subscription_id)
            and (
                wanted.topic is None
                or normal_url(self._state.subscriptions[each.subscription_id].topic)
                == normal_url(wanted.topic)
            )
        ]

    def _failed(self, attempt: Attempt) -> FailedAttempt:
        subscription = self._state.subscriptions[attempt.subscription_id]
        return FailedAttempt(
            attempt=attempt,
            host=self._state.asked_hosts[attempt.id],
            topic=subscription.topic,
            callback=subscription.callback,
        )

    async def latest_requests(
        self, until: datetime, *, chunks: int, attempts: int
    ) -> LatestRequests:
        sent = [each for each in self._state.finished if each.at < milliseconds(until)]
        noted = [each for each in self._state.attempts if each.at < milliseconds(until)]
        sent.sort(key=lambda each: each.at, reverse=True)
        noted.sort(key=lambda each: each.at, reverse=True)
        found = [
            TimedRequest(
                subscription_id=chunk.members[index],
                at=chunk.at,
                milliseconds=taken,
                is_delivered=True,
            )
            for chunk in sent[:chunks]
            for index, (status, taken) in chunk.outcomes.items()
            if 200 <= status < 300
        ]
        found += [
            TimedRequest(
                subscription_id=each.subscription_id,
                at=each.at,
                milliseconds=each.milliseconds,
                is_delivered=not each.error,
            )
            for each in noted[:attempts]
        ]
        begun = [
            rows[most - 1].at
            for rows, most in ((sent, chunks), (noted, attempts))
            if len(rows) >= most
        ]
        return LatestRequests(
            requests=tuple(sorted(found, key=lambda each: each.at, reverse=True)),
            since=max(begun, default=None),
        )

    async def attempts_kept_from(
        self, subscription_id: SubscriptionId
    ) -> datetime | None:
        """The model forgets none before so many that no test of it reaches them."""
        return None

    async def trim_attempts(self, before: datetime, limit: int, *, kept: int) -> int:
        state, before = self._state, milliseconds(before)
        crowded = state.attempts[: max(0, len(state.attempts) - kept)]
        old = [each for each in state.attempts if each.at < before or each in crowded]
        old = old[:limit]
        done = [each for each in state.finished if each.at < before][:limit]
        state.attempts = [each for each in state.attempts if each not in old]
        state.finished = [each for each in state.finished if each not in done]
        return len(old) + len(done)


def _set_back(retry: ModelRetry, position: Position, now: datetime) -> None:
    """Send again what it had passed, and what was to be sent again before."""
    known = retry.stored
    reached = Position(max(known.position, known.skip_to or 0))
    retry.due = now
    retry.stored = replace(
        known,
        position=min(known.position, position),
        skip_after=reached,
        skip_to=reached,
        attempts=0,
        next_try=now,
        tried_to=None,
    )


def _sent(chunk: ModelChunk) -> SentChunk:
    taken = sorted(ms for status, ms in chunk.outcomes.values() if 200 <= status < 300)
    return SentChunk(
        id=chunk.id,
        feed_id=chunk.feed_id,
        position=chunk.position,
        at=chunk.at,
        callbacks=len(chunk.members),
        delivered=len(taken),
        median_milliseconds=taken[len(taken) // 2] if taken else 0,
        slowest_milliseconds=taken[-1] if taken else 0,
    )


def _is_in(wanted: AttemptRange, attempt: Attempt) -> bool:
    place = (attempt.at, attempt.position)
    return (
        wanted.is_delivered in (None, not attempt.error)
        and (wanted.since is None or attempt.at >= milliseconds(wanted.since))
        and (wanted.until is None or attempt.at < milliseconds(wanted.until))
        and (wanted.before is None or place < wanted.before)
        and wanted.position in (None, attempt.position)
    )
