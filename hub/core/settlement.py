"""Writes that belong together: what one reply, or one decision, changes in storage."""

from __future__ import annotations

from datetime import datetime

import msgspec

from hub.core.replies import Reply
from storage.records import (
    Attempt,
    ChunkOutcome,
    GivenUp,
    Position,
    StragglerMoved,
    StragglerOpened,
    SubscriptionId,
)

GONE = "the callback answered 410 Gone"


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """Written in one transaction or not at all."""

    outcome: ChunkOutcome | None = None
    opened: StragglerOpened | None = None
    moved: StragglerMoved | None = None
    given_up: GivenUp | None = None
    ended: tuple[SubscriptionId, str] | None = None
    recovered: SubscriptionId | None = None
    advanced: tuple[SubscriptionId, Position] | None = None
    attempt: Attempt | None = None


def attempt_of(
    subscription_id: SubscriptionId, position: Position, reply: Reply, at: datetime
) -> Attempt:
    return Attempt(
        subscription_id=subscription_id,
        position=position,
        at=at,
        status=reply.status,
        milliseconds=reply.milliseconds,
        error=reply.error,
    )


def reason_of(reply: Reply, failures: int) -> str:
    """Why a record was given up, for people."""
    tries = "1 try" if failures == 1 else f"{failures} tries"
    return f"{reply.error} (after {tries})"
