"""What the model makes of a flush."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from protocols.operational_events import EventType
from storage.records import (
    Attempt,
    ChunkOutcome,
    DeliveryFlush,
    Flushed,
    NewDeadLetter,
    Position,
    RetryingSubscription,
    RetryMoved,
    RetryOpened,
    SubscriptionHealth,
    SubscriptionId,
    SubscriptionState,
)
from storage.sqlite.columns import from_milliseconds

from .state import ModelChunk, ModelCondition, ModelRetry, State, milliseconds
from .subscriptions import MemorySubscriptions

ATTEMPTS_KEPT = 2_000
DETAILS_KEPT = 5
ENDLESS = 2**63
GONE = SubscriptionHealth.GONE


class Flushing:
    """One flush on its way into the state."""

    def __init__(self, state: State, flush: DeliveryFlush) -> None:
        self._state = state
        self._flush = flush
        self._at = milliseconds(flush.at)
        self._closed: set[tuple[SubscriptionId, int]] = set()
        self._unfinished: set[SubscriptionId] = set()
        self._lost: set[SubscriptionId] = set()
        self._lost_chunks: set[tuple[int, int] | None] = set()

    def _count(self) -> None:
        notified = self._state.notified
        for account, count in self._flush.notified:
            notified[account] = notified.get(account, 0) + count

    def apply(self) -> Flushed:
        flush, state = self._flush, self._state
        self._settle_chunks()
        for moved in flush.moved:
            self._move(moved)
        for given_up in flush.given_up:
            self._give_up(given_up)
        subscriptions = MemorySubscriptions(state)
        for each, reason in flush.ended:
            if subscriptions.is_alive(each):
                state.condition(each).health = GONE
            subscriptions.end_these([each], reason, SubscriptionState.ENDED, flush.at)
        for each in flush.recovered:
            self._change(each, exhausted=False)
        for each, position in flush.advanced:
            known = state.subscriptions.get(each)
            if known is not None:
                furthest = max(known.from_position, position)
                self._change(each, from_position=furthest)
        changed = [
            *(each.subscription_id for each in flush.opened),
            *(each.subscription_id for each in flush.moved),
            *(each.subscription_id for each in flush.given_up),
            *flush.recovered,
        ]
        state.note_conditions(changed, flush.at)
        self._count()
        for attempt in flush.attempts:
            self._keep(attempt)
        return Flushed(
            unfinished=frozenset(self._unfinished - self._lost),
            lost=frozenset(self._lost),
        )

    def _settle_chunks(self) -> None:
        flush, chunks = self._flush, self._state.chunks
        leases = {id: each.lease_id for id, each in chunks.items()}
        self._lost_chunks = {
            (each.chunk_id, each.lease_id)
            for each in flush.outcomes
            if leases.get(each.chunk_id) != each.lease_id
        }
        for outcome in flush.outcomes:
            self._acknowledge(outcome)
        for opened in flush.opened:
            if opened.chunk not in self._lost_chunks:
                self._open(opened)

    def _acknowledge(self, outcome: ChunkOutcome) -> None:
        chunk = self._state.chunks.get(outcome.chunk_id)
        if chunk is None or chunk.lease_id != outcome.lease_id:
            return
        chunk.at = self._at
        milliseconds_kept = min(outcome.milliseconds, 0xFFFF)
        chunk.outcomes[outcome.index] = (outcome.status, milliseconds_kept)
        if outcome.at:
            answered = from_milliseconds(outcome.at)
            chunk.times[outcome.index] = min(self._at, answered)
        finish_if_done(chunk, self._state)

    def _open(self, opened: RetryOpened) -> None:
        subscription = self._state.active_or_none(opened.subscription_id)
        if subscription is None:
            return
        known = self._state.retries.get(subscription.id)
        if known is not None:
            if opened.position < known.stored.position:
                known.stored = replace(
                    known.stored, position=opened.position, tried_to=opened.tried_to
                )
            return
        next_try = milliseconds(opened.next_try)
        retrying = RetryingSubscription(
            subscription=subscription,
            position=opened.position,
            attempts=opened.attempts,
            next_try=next_try,
            failing_since=milliseconds(opened.failing_since),
            last_status=opened.last_status,
            last_error=opened.last_error,
            lease_id=opened.lease_id,
            tried_to=opened.tried_to,
            is_paused=self._state.is_paused(subscription.id),
        )
        self._state.retries[subscription.id] = ModelRetry(
            retrying, next_try, milliseconds(opened.news_from or opened.next_try)
        )

    def _move(self, moved: RetryMoved) -> None:
        found = self._state.retries.get(moved.subscription_id)
        if found is None or found.stored.lease_id != moved.lease_id:
            self._lost.add(moved.subscription_id)
            return
        known = found.stored
        position = max(known.position, moved.position)
        if moved.finished:
            skipped = (known.skip_after, known.skip_to)
            newer = self._state.wanted(
                moved.subscription_id, position, ENDLESS, skipped
            )
            if not newer:
                self._close(moved.subscription_id, max(position, known.skip_to or 0))
                return
            self._unfinished.add(moved.subscription_id)
        has_progressed = moved.position > known.position
        is_told = has_progressed and 200 <= moved.last_status < 300
        found.due = milliseconds(moved.due or moved.next_try)
        found.news_from = milliseconds(moved.news_from or moved.next_try)
        found.stored = replace(
            known,
            position=position,
            attempts=moved.attempts,
            next_try=milliseconds(moved.next_try),
            failing_since=self._at if has_progressed else known.failing_since,
            last_status=moved.last_status,
            last_error=moved.last_error,
            missed=None if is_told else known.missed,
            lease_id=0 if moved.release and not moved.finished else known.lease_id,
            tried_to=moved.tried_to,
        )

    def _give_up(self, given_up: NewDeadLetter) -> None:
        if given_up.chunk in self._lost_chunks:
            return
        state, subscription_id = self._state, given_up.subscription_id
        lease = (subscription_id, given_up.lease_id)
        found = state.retries.get(subscription_id)
        if found is None:
            is_ours = given_up.lease_id == 0 or lease in self._closed
        else:
            is_ours = given_up.lease_id == found.stored.lease_id != 0
        if not is_ours or state.active_or_none(subscription_id) is None:
            self._lost.add(subscription_id)
            return
        self._lost.discard(subscription_id)
        self._unfinished.discard(subscription_id)
        self._closed.add(lease)
        self._bury(given_up, None if found is None else found.stored)
        if not given_up.was_untried:
            self._tell_given_up(given_up)
            self._change(subscription_id, exhausted=True)
            state.condition(subscription_id).failure = given_up.reason

    def _tell_given_up(self, given_up: NewDeadLetter) -> None:
        state, whose = self._state, given_up.subscription_id
        if state.subscriptions[whose].exhausted or not state.are_events_wanted:
            return
        at = milliseconds(given_up.at)
        condition = state.conditions.get(whose, ModelCondition())
        state.told_since.setdefault(whose, condition.since or at)
        state.queue_of_subscriptions(
            [whose],
            EventType.SUBSCRIPTION_GIVEN_UP,
            at,
            reason=given_up.reason,
            code=None,
            first=given_up.first,
            last=given_up.last,
        )

    def _bury(
        self, given_up: NewDeadLetter, known: RetryingSubscription | None
    ) -> None:
        """Make a dead letter of all it did not get, as far as fan-out has passed it.

        What it got before it was set back is left out.
        """
        state, subscription_id = self._state, given_up.subscription_id
        skip_after = known.skip_after if known else None
        skip_to = known.skip_to if known else None
        passed = state.last_passed(subscription_id)
        skipped = (skip_after, skip_to)
        above = state.wanted(subscription_id, given_up.last, passed, skipped)
        last = above[-1] if above else given_up.last
        first = max(given_up.first, (known.position if known else 0) + 1)
        parts = [(first, last)]
        if skip_after is not None and skip_to is not None and skip_after != skip_to:
            rest = state.wanted(subscription_id, max(skip_to, first - 1), last)
            parts = [(first, min(last, skip_after))]
            parts += [(rest[0], rest[-1])] if rest else []
        for start, end in parts:
            if start <= end:
                state.bury(subscription_id, start, end, given_up.reason, given_up.at)
        self._close(subscription_id, max(last, skip_to or 0))

    def _close(self, subscription_id: SubscriptionId, position: int) -> None:
        self._state.retries.pop(subscription_id, None)
        known = self._state.subscriptions[subscription_id].from_position
        self._change(subscription_id, from_position=Position(max(known, position)))

    def _change(self, subscription_id: SubscriptionId, **changes: Any) -> None:
        known = self._state.subscriptions.get(subscription_id)
        if known is not None:
            self._state.subscriptions[subscription_id] = replace(known, **changes)

    def _keep(self, attempt: Attempt) -> None:
        state, whose = self._state, attempt.subscription_id
        id = max((each.id for each in state.attempts), default=0) + 1
        details = attempt.details
        state.asked_hosts[id] = details.request.host if details else ""
        kept = replace(attempt, id=id, at=milliseconds(attempt.at))
        state.attempts.append(kept)
        of_it = [each for each in state.attempts if each.subscription_id == whose]
        for each in of_it[:-ATTEMPTS_KEPT]:
            if each.details is None:
                state.attempts.remove(each)
        detailed = [each for each in of_it if each.details is not None]
        if details is not None and len(detailed) > DETAILS_KEPT:
            oldest = state.attempts.index(detailed[0])
            state.attempts[oldest] = replace(detailed[0], details=None)


def finish_if_done(chunk: ModelChunk, state: State) -> None:
    if not chunk.pending and chunk.id in state.chunks:
        state.finished.append(state.chunks.pop(chunk.id))


def pass_by(chunk: ModelChunk, index: int, at: datetime, state: State) -> None:
    """Note that a member needs nothing more from the chunk."""
    chunk.outcomes[index] = (0, 0)
    chunk.at = at
    finish_if_done(chunk, state)
