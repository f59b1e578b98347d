"""What an answer of a callback means, and what it changes in storage."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from hub.core.delivery.retry_schedule import FAILURES_ALLOWED
from storage.records import (
    Attempt,
    AttemptDetails,
    AttemptReason,
    ChunkOutcome,
    NewDeadLetter,
    Position,
    RetryMoved,
    RetryOpened,
    SubscriptionId,
)

STRAINED_STATUSES = frozenset({0, 429, 502, 503, 504})
"""Statuses that concern the whole origin; 0: no answer. A 404 or 500 is one
callback's."""


class Verdict(StrEnum):
    DELIVERED = "delivered"
    GONE = "gone"  # the subscription ends
    FAILED = "failed"


def verdict(status: int) -> Verdict:
    """WebSub 7: a 2xx "indicates successful delivery"; 410 may end the subscription.

    All else is a failure, redirects (which are not followed) included.
    """
    if 200 <= status <= 299:
        return Verdict.DELIVERED
    return Verdict.GONE if status == 410 else Verdict.FAILED


class CallbackResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of one request. ``status`` 0: no answer, then ``error`` says why.
    ``at``: when a delivery was over, in Unix milliseconds."""

    status: int
    milliseconds: int
    at: int = 0
    error: str = ""  # for people; "" after a 2xx
    retry_after: float | None = None  # seconds, of a 429 or 503
    details: AttemptDetails | None = None  # of a failure

    @property
    def verdict(self) -> Verdict:
        return verdict(self.status)


GONE = "the callback answered 410 Gone"


class DeliveryOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything a delivery writes, in one transaction or not at all."""

    outcome: ChunkOutcome | None = None
    opened: RetryOpened | None = None
    moved: RetryMoved | None = None
    given_up: NewDeadLetter | None = None
    ended: tuple[SubscriptionId, str] | None = None
    recovered: SubscriptionId | None = None
    advanced: tuple[SubscriptionId, Position] | None = None
    attempt: Attempt | None = None


def attempt_of(
    subscription_id: SubscriptionId,
    position: Position,
    reply: CallbackResponse,
    at: datetime,
    reason: AttemptReason = AttemptReason.NEW_RECORD,
) -> Attempt:
    return Attempt(
        subscription_id=subscription_id,
        position=position,
        at=at,
        status=reply.status,
        milliseconds=reply.milliseconds,
        error=reply.error,
        reason=reason,
        details=reply.details,
    )


def reason_of(reply: CallbackResponse, *, is_exhausted: bool) -> str:
    """Why records were given up, for people. An exhausted subscription used up all
    tries before, and each new record since is one more."""
    more = ", then 1 for each new record" if is_exhausted else ""
    return f"{reply.error} (after {FAILURES_ALLOWED + 1} tries{more})"
