"""The first delivery of a record to a subscription, as a member of a chunk.

Whatever its outcome, its part in the chunk is over. What is still undelivered goes to a
retry, a dead letter or the subscription's end in the same transaction.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from hub.core.delivery.delivery_outcome import (
    GONE,
    CallbackResponse,
    DeliveryOutcome,
    Verdict,
    attempt_of,
    reason_of,
)
from hub.core.delivery.retry_schedule import FAILURES_ALLOWED, news_pause, retry_delay
from storage.records import (
    AttemptReason,
    ChunkOutcome,
    ClaimedChunk,
    NewDeadLetter,
    Position,
    RetryOpened,
    Subscription,
)

UNANSWERED = "no answer within a second"
NOT_STARTED = "held back: the callback's origin is busy or failing"


class FirstDelivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The delivery that brings its subscriber up to ``position``.

    That is the position of the chunk's record, or, ``is_ahead``, of a later record
    whose document is sent instead.
    """

    subscription: Subscription
    position: Position
    chunk_id: int
    lease_id: int
    index: int
    is_ahead: bool = False

    @staticmethod
    def of(
        chunk: ClaimedChunk,
        index: int,
        subscription: Subscription,
        brought: Position,
    ) -> FirstDelivery:
        """``brought``: the record that brought the document, if that is known."""
        own = chunk.record.position
        return FirstDelivery(
            subscription=subscription,
            position=max(own, brought),
            chunk_id=chunk.id,
            lease_id=chunk.lease_id,
            index=index,
            is_ahead=brought > own,
        )

    def over(self, status: int = 0, milliseconds: int = 0, at: int = 0) -> ChunkOutcome:
        return ChunkOutcome(
            chunk_id=self.chunk_id,
            lease_id=self.lease_id,
            index=self.index,
            status=status,
            milliseconds=milliseconds,
            at=at,
        )

    @property
    def chunk(self) -> tuple[int, int]:
        return self.chunk_id, self.lease_id

    @property
    def before(self) -> Position:
        """The position from which a catch-up starts with this record."""
        return Position(self.position - 1)


def nothing_to_send(first: FirstDelivery) -> DeliveryOutcome:
    return DeliveryOutcome(outcome=first.over())


def delivered(first: FirstDelivery, reply: CallbackResponse) -> DeliveryOutcome:
    subscription = first.subscription
    return DeliveryOutcome(
        outcome=first.over(reply.status, reply.milliseconds, reply.at),
        recovered=subscription.id if subscription.exhausted else None,
        advanced=(subscription.id, first.position) if first.is_ahead else None,
    )


def refused(
    first: FirstDelivery, reply: CallbackResponse, *, at: datetime, jitter: float
) -> DeliveryOutcome:
    """The outcome without a 2xx. For an exhausted subscription, the record is not tried
    again."""
    subscription = first.subscription
    outcome = first.over(reply.status, reply.milliseconds)
    is_probe = subscription.exhausted
    why = AttemptReason.PROBE if is_probe else AttemptReason.NEW_RECORD
    attempt = attempt_of(subscription.id, first.position, reply, at, why)
    if reply.verdict is Verdict.GONE:
        ended = (subscription.id, GONE)
        return DeliveryOutcome(outcome=outcome, ended=ended, attempt=attempt)
    failures = FAILURES_ALLOWED if subscription.exhausted else 0
    delay = retry_delay(failures + 1, jitter=jitter, retry_after=reply.retry_after)
    if delay is None:
        lost = NewDeadLetter(
            subscription_id=subscription.id,
            lease_id=0,
            chunk=first.chunk,
            first=first.position,
            last=first.position,
            reason=reason_of(reply, is_exhausted=True),
            at=at,
        )
        return DeliveryOutcome(outcome=outcome, given_up=lost, attempt=attempt)
    opened = RetryOpened(
        chunk=first.chunk,
        subscription_id=subscription.id,
        position=first.before,
        attempts=1,
        next_try=at + timedelta(seconds=delay),
        news_from=at + timedelta(seconds=news_pause(reply.retry_after)),
        failing_since=at,
        last_status=reply.status,
        last_error=reply.error,
        tried_to=first.position,
    )
    return DeliveryOutcome(outcome=outcome, opened=opened, attempt=attempt)


def not_started(
    first: FirstDelivery, *, at: datetime, due: datetime, reason: str = NOT_STARTED
) -> DeliveryOutcome:
    """The outcome of a delivery that the hub itself held back: no try was made, and
    none is counted."""
    opened = RetryOpened(
        chunk=first.chunk,
        subscription_id=first.subscription.id,
        position=first.before,
        attempts=0,
        next_try=due,
        failing_since=at,
        last_error=reason,
    )
    return DeliveryOutcome(outcome=first.over(), opened=opened)


def demoted(
    first: FirstDelivery, *, at: datetime, lease_id: int, until: datetime
) -> DeliveryOutcome:
    """The outcome if the request goes on as one of a retrying subscription, under that
    lease."""
    opened = RetryOpened(
        chunk=first.chunk,
        subscription_id=first.subscription.id,
        position=first.before,
        attempts=0,
        next_try=until,
        failing_since=at,
        last_error=UNANSWERED,
        lease_id=lease_id,
        tried_to=first.position,
    )
    return DeliveryOutcome(outcome=first.over(), opened=opened)
