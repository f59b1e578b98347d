"""Deliveries: claimed chunks, retries, dead letters and their outcomes."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from protocols.http import RequestStage
from storage.records.identities import AccountId, FeedId, Position, SubscriptionId
from storage.records.log import Record
from storage.records.subscriptions import Subscription


class ClaimTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Who leases up to ``limit`` chunks or retries, and for how long.

    The engine's own clock says when a lease ends, for all nodes; ``now`` says what is
    due. On SQLite's only node both come from one clock.
    """

    lease_id: int
    seconds: float
    now: datetime
    limit: int

    @property
    def until(self) -> datetime:
        """When the lease ends, by the clock that ``now`` was read from."""
        return self.now + timedelta(seconds=self.seconds)


class ClaimedChunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Up to 500 subscriptions that one record is to be sent to, under a lease.

    ``pending`` pairs each index of the chunk that is not yet acknowledged with its
    subscription, in id order.
    """

    id: int
    lease_id: int
    record: Record
    pending: tuple[tuple[int, Subscription], ...]


WAS_PAUSED: Final = "it was paused"
"""The reason given when a subscription is behind because it was paused."""


class RetryingSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription with an open retry: it did not answer in time, or is paused.

    It is sent the records above ``position`` in order, except those in ``(skip_after,
    skip_to]``, which were delivered before (if a dead letter is sent again). Those up
    to ``skip_after`` are sent again, as somebody asked; in a replay ``skip_to`` is the
    same, and nothing is skipped.
    """

    subscription: Subscription
    position: Position
    attempts: int  # scheduled tries at the record after ``position`` that failed
    next_try: datetime  # by the schedule; later than now if news made it due early
    failing_since: datetime
    last_status: int  # 0: no answer
    last_error: str
    skip_after: Position | None = None
    skip_to: Position | None = None
    missed: tuple[Position, Position] | None = (
        None  # records that were trimmed; the next request says so
    )
    lease_id: int = 0  # 0: not leased
    tried_to: Position | None = None  # the last record of the request to be repeated
    is_paused: bool = False  # not tried until it is resumed

    def lacks(self, position: Position) -> bool:
        """Whether the record there is still to be sent, if it is of the topic."""
        after, to = self.skip_after, self.skip_to
        is_skipped = after is not None and to is not None and after < position <= to
        return position > self.position and not is_skipped


class DeliveryLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a subscription is behind: the number of records that it wants and was not
    sent, and when the first of them was found; None if there is none."""

    records: int
    oldest: datetime | None = None


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """Records ``first``..``last`` that a subscription did not get, and why."""

    id: int
    subscription_id: SubscriptionId
    topic: str
    callback: str
    first: Position
    last: Position
    reason: str
    at: datetime


class CallbackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an answer that is kept: its status line, its headers, and how its
    body begins.

    ``is_excerpt``: the body was longer.
    """

    status_line: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    is_excerpt: bool = False


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to build a request to a callback again, exactly as it was.

    ``records`` are those it carried; ``at`` is the time it was signed with. The size
    and checksum (CRC-32) of its body show whether it is still the same.
    """

    host: str
    at: int  # Unix seconds
    records: tuple[Position, ...]
    size: int
    checksum: int
    retries: int = 0
    missed: tuple[Position, Position] | None = None
    credits: int | None = None


class AttemptDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Details of a failed attempt: where it went, what was sent, and what was answered.

    ``answer`` None: there was none, or ``is_withheld``: the network is exempt from the
    address guard, and nothing from inside it is shown.
    """

    stage: RequestStage
    request: SentRequest
    answer: CallbackAnswer | None = None
    is_withheld: bool = False


class AttemptReason(StrEnum):
    """Why a request was made at that moment. Members are stored by their number: add
    new ones at the end."""

    UNKNOWN = "unknown"  # kept by a version that did not note it
    NEW_RECORD = "new_record"  # a record's first request
    RETRY = "retry"  # the schedule's, after a failure
    NEWS = "news"  # ahead of the schedule, because of a new record
    PROBE = "probe"  # all tries are used up: each new record is one
    CATCH_UP = "catch_up"  # it was behind or paused, or the hub restarted
    SENT_AGAIN = "sent_again"  # in a replay or of a dead letter, as somebody asked
    ASKED = "asked"  # a retry, as somebody asked


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a callback. ``status`` 0: no answer, then ``error`` says why.

    ``at``: when it was over. Unless ``is_exact``, a former version kept only when all
    callbacks that were sent the record together had answered, and this is that time.
    ``id`` 0: it has no row of its own, as it succeeded at once. ``details`` are those
    of a failure, kept for the latest failures of each subscription.
    """

    subscription_id: SubscriptionId
    position: Position
    at: datetime
    status: int
    milliseconds: int
    error: str = ""
    reason: AttemptReason = AttemptReason.NEW_RECORD
    id: int = 0
    details: AttemptDetails | None = None
    is_exact: bool = True


class UndeliveredOutcome(StrEnum):
    GIVEN_UP = "given-up"  # a dead letter
    RETRIED = "retried"


class AttemptFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which failures are wanted; what is not given does not matter.

    ``statuses``: the first and the last of a range; 0 is no answer. ``host``: the
    callback's, at the time of the request; ``topic`` in any spelling; ``since`` is
    inclusive, ``until`` exclusive.
    """

    statuses: tuple[int, int] | None = None
    host: str = ""
    topic: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    subscription_id: SubscriptionId | None = None


class UndeliveredFilter(AttemptFilter, frozen=True, kw_only=True):
    """Which retrying subscriptions and dead letters are wanted: those for whose missing
    deliveries a failure is wanted; what is not given does not matter.

    ``outcome``: what became of the deliveries; ``lacking``: they still lack a record up
    to there.
    """

    outcome: UndeliveredOutcome | None = None
    lacking: Position | None = None

    @property
    def names_failures(self) -> bool:
        """Whether more is said of the failures than whose they are: without that, none
        is needed either."""
        return self != UndeliveredFilter(
            subscription_id=self.subscription_id,
            outcome=self.outcome,
            lacking=self.lacking,
        )


class SentChunk(msgspec.Struct, frozen=True, kw_only=True):
    """Callbacks that a record was sent to together, none of which is still waited for.

    ``delivered`` of the ``callbacks`` accepted it at the first try; the others are
    retried separately. The milliseconds are those of the callbacks that accepted it, 0
    if none did.
    """

    id: int
    feed_id: FeedId
    position: Position
    at: datetime
    callbacks: int
    delivered: int
    median_milliseconds: int
    slowest_milliseconds: int


class TimedRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How long a request to a callback took that was over ``at`` that time; one that
    was sent together with others, when all of them were."""

    subscription_id: SubscriptionId
    at: datetime
    milliseconds: int
    is_delivered: bool


class LatestRequests(msgspec.Struct, frozen=True, kw_only=True):
    """Requests to callbacks, the latest first: all since then; None: all that are
    kept."""

    requests: tuple[TimedRequest, ...]
    since: datetime | None


class AttemptRange(msgspec.Struct, frozen=True, kw_only=True):
    """Which attempts of a subscription are wanted; what is not given does not matter.

    ``since`` is inclusive, ``until`` exclusive. ``before``: time and record of the last
    attempt of the previous page. ``position``: the record that was delivered.
    """

    is_delivered: bool | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: tuple[datetime, Position] | None = None
    position: Position | None = None


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """A failed attempt and the subscription it was for. Lists do not read its
    ``details``."""

    attempt: Attempt
    host: str  # "": stored by a version that did not keep it
    topic: str
    callback: str


class ChunkOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The chunk's member ``index`` needs nothing more from this chunk.

    It answered with a 2xx, or a retry, a dead letter or its ending in the same flush
    takes over. ``status`` and ``milliseconds`` are those of the attempt; both 0 if none
    was made. ``at``: when a delivery was over, in Unix milliseconds; 0: nothing was
    delivered.
    """

    chunk_id: int
    lease_id: int
    index: int
    status: int
    milliseconds: int
    at: int = 0


class RetryOpened(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription moves from chunk delivery to a retry. With a lease, its attempt is
    still running.

    ``chunk`` names the chunk it comes from and that chunk's lease: nothing is opened
    unless the lease is still ours, for otherwise another holder delivers the chunk.
    """

    subscription_id: SubscriptionId
    position: Position  # the one before the record that was not delivered
    attempts: int
    next_try: datetime
    failing_since: datetime
    last_status: int = 0
    last_error: str = ""
    lease_id: int = 0
    tried_to: Position | None = None  # see `RetryingSubscription`
    news_from: datetime | None = None  # see `RetryMoved`
    chunk: tuple[int, int] | None = None  # its id and the lease


class RetryMoved(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome for a leased retry; ignored unless the lease is still ours.

    ``position`` is where the retry now stands. ``release`` gives the lease up;
    otherwise it lasts for as long as ``due`` is after the flush, counted by the
    engine's clock. ``finished`` asks to close the retry: done only if no record of its
    feed that the subscription would get lies above ``position``, and then
    ``from_position`` becomes ``position``.

    ``next_try`` is the schedule's. ``due`` is given if the next try is to be made, or
    the lease ends, at another time; None: at ``next_try``. From ``news_from`` on, a new
    record that the subscription would get makes the retry due at once, with
    ``next_try`` unchanged; None: not before ``next_try``.
    """

    subscription_id: SubscriptionId
    lease_id: int
    position: Position
    attempts: int
    next_try: datetime
    last_status: int
    last_error: str = ""
    release: bool = False
    finished: bool = False
    tried_to: Position | None = None  # see `RetryingSubscription`
    news_from: datetime | None = None
    due: datetime | None = None


class NewDeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """Records up to ``last`` are given up: they become a dead letter.

    It extends an adjoining one. The retry, if any, is closed with ``from_position`` =
    ``last``, and the subscription is marked exhausted, unless it ``was_untried``: there
    was nothing that could have been sent to it. ``lease_id`` 0: it comes from a chunk,
    without a retry; then ``chunk`` is as in `RetryOpened`.
    """

    subscription_id: SubscriptionId
    lease_id: int
    first: Position
    last: Position
    reason: str
    at: datetime
    chunk: tuple[int, int] | None = None
    was_untried: bool = False


class DeliveryFlush(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to deliveries since the last flush; applied in one transaction.

    ``number`` is unique among the flushes of its node; 0: this flush is never repeated.
    """

    at: datetime
    number: int = 0
    outcomes: tuple[ChunkOutcome, ...] = ()
    opened: tuple[RetryOpened, ...] = ()
    moved: tuple[RetryMoved, ...] = ()
    given_up: tuple[NewDeadLetter, ...] = ()
    ended: tuple[tuple[SubscriptionId, str], ...] = ()  # by a 410, so need no denial
    recovered: tuple[SubscriptionId, ...] = ()  # no longer exhausted
    advanced: tuple[tuple[SubscriptionId, Position], ...] = ()  # have all up to there
    attempts: tuple[Attempt, ...] = ()  # failures and catch-ups; chunks keep their 2xx
    notified: tuple[tuple[AccountId, int], ...] = ()  # requests since the last flush


class Flushed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a flush. ``unfinished``: retries that asked to close but have newer
    records; they keep their lease. ``lost``: subscriptions whose lease was no longer
    ours."""

    unfinished: frozenset[SubscriptionId] = frozenset()
    lost: frozenset[SubscriptionId] = frozenset()
