"""Catching up: a retrying subscription under our lease, sent record after record."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from hub.core.delivery.delivery_outcome import (
    GONE,
    CallbackResponse,
    DeliveryOutcome,
    Verdict,
    attempt_of,
    reason_of,
)
from hub.core.delivery.first_delivery_outcomes import FirstDelivery
from hub.core.delivery.retry_schedule import FAILURES_ALLOWED, news_pause, retry_delay
from storage.records import (
    AttemptReason,
    NewDeadLetter,
    Position,
    RetryingSubscription,
    RetryMoved,
    Subscription,
)

NOT_KEPT = "the document is not kept"
NOT_RENDERABLE = "the hub could not render the notification"


class CatchUpProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a retrying subscription has come: it is owed all records above
    ``position``.

    Those in (``skip_after``, ``skip_to``] are left out, as it got them before; those up
    to ``skip_after`` are sent again, as somebody asked. ``failures`` are consecutive,
    at the next record; an exhausted subscription has used up all tries. A try before
    ``scheduled``, when the next one is due, is made because of new records or because
    somebody asked for it, and is not counted. ``missed`` records are named in the next
    request. A request up to ``tried_to`` was made, or is being made: a repetition must
    be the same notification.
    """

    subscription: Subscription
    lease_id: int
    position: Position
    skip_after: Position | None = None
    skip_to: Position | None = None
    failures: int = 0
    missed: tuple[Position, Position] | None = None
    is_exhausted: bool = False
    last_status: int = 0
    last_error: str = ""
    tried_to: Position | None = None
    scheduled: datetime | None = None
    failing_since: datetime | None = None
    is_first: bool = False  # the request under way is the first for its record
    is_asked: bool = False  # somebody asked for the next request

    @classmethod
    def of(
        cls, retrying: RetryingSubscription, *, is_asked: bool = False
    ) -> CatchUpProgress:
        return cls(
            subscription=retrying.subscription,
            lease_id=retrying.lease_id,
            position=retrying.position,
            skip_after=retrying.skip_after,
            skip_to=retrying.skip_to,
            failures=retrying.attempts,
            missed=retrying.missed,
            is_exhausted=retrying.subscription.exhausted,
            # A 2xx is not carried on: it would say that ``missed`` has been told.
            last_status=retrying.last_status if retrying.last_error else 0,
            last_error=retrying.last_error,
            tried_to=retrying.tried_to,
            scheduled=retrying.next_try,
            failing_since=retrying.failing_since,
            is_asked=is_asked,
        )

    @classmethod
    def after(cls, first: FirstDelivery, lease_id: int) -> CatchUpProgress:
        """The progress after a first delivery whose callback does not answer."""
        return cls(
            subscription=first.subscription,
            lease_id=lease_id,
            position=first.before,
            is_exhausted=first.subscription.exhausted,
            tried_to=first.position,
            is_first=True,
        )

    @property
    def is_failing(self) -> bool:
        """Whether an attempt has failed since the last one that succeeded."""
        return self.failures > 0 or self.is_exhausted

    def skips(self, position: Position) -> bool:
        """Whether the record at that position was delivered before."""
        if self.skip_after is None or self.skip_to is None:
            return False
        return self.skip_after < position <= self.skip_to

    def delivered(self, last: Position) -> CatchUpProgress:
        """The progress after a 2xx."""
        return msgspec.structs.replace(
            self,
            position=last,
            failures=0,
            missed=None,
            is_exhausted=False,
            last_status=0,
            last_error="",
            tried_to=None,
            scheduled=None,
            failing_since=None,
            is_first=False,
            is_asked=False,
        )

    def moved(self, next_try: datetime) -> RetryMoved:
        """The row to store: the position stays, and the next try is then."""
        return RetryMoved(
            subscription_id=self.subscription.id,
            lease_id=self.lease_id,
            position=self.position,
            attempts=self.failures,
            next_try=next_try,
            last_status=self.last_status,
            last_error=self.last_error,
            tried_to=self.tried_to,
        )

    def held(self, until: datetime) -> RetryMoved:
        """The row to store while the lease goes on until then; the schedule stays."""
        return replace(self.moved(self.scheduled or until), due=until)


def progressed(
    before: CatchUpProgress,
    last: Position,
    reply: CallbackResponse,
    *,
    at: datetime,
    until: datetime,
    first: Position | None = None,
) -> DeliveryOutcome:
    """The outcome of a 2xx for all records up to ``last``; the lease goes on.

    ``first``: the first of the records, if there are several.
    """
    subscription_id = before.subscription.id
    why = _why(before, first or last, at)
    return DeliveryOutcome(
        moved=replace(before.delivered(last).moved(until), last_status=reply.status),
        recovered=subscription_id if before.is_exhausted else None,
        attempt=attempt_of(subscription_id, last, reply, at, why),
    )


def announced(catch_up: CatchUpProgress, *, until: datetime) -> DeliveryOutcome:
    """The outcome before a request up to ``tried_to`` is made."""
    return DeliveryOutcome(moved=catch_up.held(until))


def finished(
    catch_up: CatchUpProgress, last: Position, *, until: datetime
) -> DeliveryOutcome:
    """The outcome when nothing is left to send up to ``last``; closed unless more came
    meanwhile."""
    moved = replace(catch_up.held(until), position=last, finished=True)
    return DeliveryOutcome(moved=moved)


def unsendable(
    catch_up: CatchUpProgress, last: Position, *, at: datetime, reason: str = NOT_KEPT
) -> DeliveryOutcome:
    """The outcome if no document (any more) contains the records up to ``last``."""
    lost = NewDeadLetter(
        subscription_id=catch_up.subscription.id,
        lease_id=catch_up.lease_id,
        first=Position(catch_up.position + 1),
        last=last,
        reason=reason,
        at=at,
        was_untried=True,
    )
    return DeliveryOutcome(given_up=lost)


def released(catch_up: CatchUpProgress, *, due: datetime) -> DeliveryOutcome:
    """The outcome of giving a lease back unchanged; no try was made, and none is
    counted."""
    next_try = max(due, catch_up.scheduled or due)
    moved = replace(catch_up.moved(next_try), due=due, news_from=due, release=True)
    return DeliveryOutcome(moved=moved)


def held_up(
    catch_up: CatchUpProgress,
    last: Position,
    reply: CallbackResponse,
    *,
    at: datetime,
    jitter: float,
    log_end: Position,
    first: Position | None = None,
) -> DeliveryOutcome:
    """The outcome of a request for the records up to ``last`` that got no 2xx.

    ``log_end`` is the end of the log: all records up to it are given up with the last
    try. ``first``: the first of the records, if there are several.
    """
    subscription_id = catch_up.subscription.id
    why = _why(catch_up, first or last, at)
    attempt = attempt_of(subscription_id, last, reply, at, why)
    if reply.verdict is Verdict.GONE:
        return DeliveryOutcome(ended=(subscription_id, GONE), attempt=attempt)
    failures, next_try = _next_try(catch_up, reply, at, jitter)
    if next_try is None:
        lost = NewDeadLetter(
            subscription_id=subscription_id,
            lease_id=catch_up.lease_id,
            first=Position(catch_up.position + 1),
            last=log_end,
            reason=reason_of(reply, is_exhausted=catch_up.is_exhausted),
            at=at,
        )
        return DeliveryOutcome(given_up=lost, attempt=attempt)
    failed = msgspec.structs.replace(
        catch_up,
        failures=failures,
        last_status=reply.status,
        last_error=reply.error,
        tried_to=last,
    )
    news_from = at + timedelta(seconds=news_pause(reply.retry_after))
    moved = replace(failed.moved(next_try), news_from=news_from, release=True)
    return DeliveryOutcome(moved=moved, attempt=attempt)


def _why(catch_up: CatchUpProgress, first: Position, at: datetime) -> AttemptReason:
    """Why the next request, which begins with that record, is made at that time."""
    if catch_up.is_asked:
        return AttemptReason.ASKED
    is_early = catch_up.scheduled is not None and at < catch_up.scheduled
    if is_early or catch_up.is_first:
        if catch_up.is_exhausted:
            return AttemptReason.PROBE
        return AttemptReason.NEWS if is_early else AttemptReason.NEW_RECORD
    if catch_up.failures:
        return AttemptReason.RETRY
    is_again = catch_up.skip_after is not None and first <= catch_up.skip_after
    return AttemptReason.SENT_AGAIN if is_again else AttemptReason.CATCH_UP


def _next_try(
    catch_up: CatchUpProgress, reply: CallbackResponse, at: datetime, jitter: float
) -> tuple[int, datetime | None]:
    """The number of failures including this one, and the next time; None: no more
    tries.

    A try ahead of the schedule, because of new records or because somebody asked for
    it, changes neither, except for ``Retry-After``.
    """
    if catch_up.scheduled is not None and at < catch_up.scheduled:
        pause = timedelta(seconds=news_pause(reply.retry_after))
        requested = at + pause if reply.retry_after else at
        return catch_up.failures, max(catch_up.scheduled, requested)
    failures = catch_up.failures + 1
    counted = FAILURES_ALLOWED + 1 if catch_up.is_exhausted else failures
    delay = retry_delay(counted, jitter=jitter, retry_after=reply.retry_after)
    return failures, None if delay is None else at + timedelta(seconds=delay)
