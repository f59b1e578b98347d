"""Delivering records to callbacks: what the dispatcher reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from storage.records import (
    ALL_SHARDS,
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
    Position,
    RetryingSubscription,
    SentChunk,
    Shards,
    SubscriptionId,
)


class DeliveryStore(Protocol):
    """The dispatcher's side.

    A lease is a random id with a time it ends at, by the engine's clock and no other.
    Its holder goes by the moment before it asked for it, or for its renewal. Each
    outcome names the lease it was come by under; without that it changes nothing. What
    a node held when it died is free when its successor joins (`MembershipStore`).
    """

    async def claim_chunks(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        """Lease chunks; those of one feed in order of their records.

        Unfinished chunks whose lease is over come first; then fan-out rows are split
        on, 500 subscriptions at a time in id order: the oldest of the feeds without a
        chunk under way, else, of those with fewer than four, that of the feed whose
        last chunk was made first. Members are active subscriptions of the record's
        feed with ``from_position`` below the record that want its kind (see `wants`)
        and have no open retry. Records of one feed go strictly one after the
        other: a later record is not split while an earlier one has fan-out or chunks
        left. A fan-out without members is dropped.

        The first time that a record is split, up to 1,000 unleased retries that want it
        and whose ``news_from`` has come are made due, in the order of that time.
        """
        ...

    def claim_with_commits(
        self,
        ask: Callable[[], ClaimTerms | None],
        give: Callable[[list[ClaimedChunk] | None], None],
    ) -> AbstractContextManager[None]:
        """Within the block each commit with records claims chunks too, if that can be
        in its own transaction: so they are there as soon as the records are.

        ``ask`` is called when a commit is handed in, and says what may be claimed, None
        for nothing. Where it asked for something, ``give`` is called when that is
        durable, with new chunks only, often none; or with None, if it failed. Both are
        called on the event loop and must not wait. One claimer at a time.
        """
        ...

    async def renew(
        self, chunk_ids: Sequence[int], *, lease_id: int, seconds: float, now: datetime
    ) -> None:
        """Have the lease last for so long from now on, on those it still holds."""
        ...

    async def flush(self, flush: DeliveryFlush) -> Flushed:
        """Apply it. One whose number is that of the last one was stored already, and is
        answered as it was then."""
        ...

    async def notified(self) -> dict[AccountId, int]:
        """How many requests each account was sent, those never sent any left out."""
        ...

    async def claim_retrying(self, terms: ClaimTerms) -> list[RetryingSubscription]:
        """Lease those that are due (``next_try`` <= now and nobody's lease) and not
        paused; of the callbacks whose shards the terms name."""
        ...

    async def next_retry(self, shards: Shards = ALL_SHARDS) -> datetime | None:
        """When the next unleased retry is due, or the next lease ends."""
        ...

    async def retrying(
        self, *, after: SubscriptionId, limit: int, wanted: AttemptFilter | None = None
    ) -> list[RetryingSubscription]:
        """Retrying subscriptions, by their id. With a filter: those of which it finds a
        failed request that says what they lack."""
        ...

    async def retrying_subscription(
        self, subscription_id: SubscriptionId
    ) -> RetryingSubscription | None: ...

    async def lag(self, subscription_id: SubscriptionId, most: int) -> DeliveryLag:
        """How far it is behind, by what the log has; no more than ``most`` is counted.
        One that is not active is owed nothing."""
        ...

    async def dead_letters(
        self, *, after: int, limit: int, wanted: AttemptFilter | None = None
    ) -> list[DeadLetter]:
        """Dead letters, by id; with a filter as in `retrying`."""
        ...

    async def count_undelivered(self, wanted: AttemptFilter, most: int) -> int:
        """How many of both there are; it counts no further than ``most``."""
        ...

    async def retry_now(self, subscription_id: SubscriptionId, now: datetime) -> None:
        """Make it due now. Raises `NotFound`, `SubscriptionPaused`."""
        ...

    async def discard_retry(
        self, subscription_id: SubscriptionId, now: datetime
    ) -> None:
        """Close the retry: what it has not delivered is not sent any more, and fan-out
        serves the subscription again. Raises `NotFound`."""
        ...

    async def retry_dead_letter(self, dead_id: int, now: datetime) -> None:
        """Turn a dead letter into a retry of it, due now.

        Raises `NotFound`, `SubscriptionPaused`, or `StorageBusy` while the subscription
        is in an unfinished chunk or has a retry that stands elsewhere.
        """
        ...

    async def replay(
        self, subscription_id: SubscriptionId, after: Position, now: datetime
    ) -> None:
        """Have it sent all records above ``after`` that it wants and the log still has,
        once more, from now on: as a retry, of which none is left out.

        Raises `NotFound` unless it is active, `SubscriptionPaused`, or `StorageBusy`
        while it is in an unfinished chunk or its retry is leased.
        """
        ...

    async def discard_dead_letter(self, dead_id: int) -> None:
        """Forget it. Raises `NotFound`."""
        ...

    async def attempts(
        self,
        subscription_id: SubscriptionId,
        limit: int,
        wanted: AttemptRange | None = None,
    ) -> list[Attempt]:
        """The last attempts, newest first, successful ones included.

        Of each subscription the last 20 failures and catch-ups are kept, beside all
        that went straight through, and the details of its last 5 failures.
        """
        ...

    async def first_successes(
        self, records: Sequence[tuple[FeedId, Position]]
    ) -> dict[Position, datetime | None]:
        """For each record that was sent to anybody, when the first chunk of it with a
        2xx was settled; None: no callback has taken it, or only when it was retried."""
        ...

    async def failed_attempt(self, attempt_id: int) -> FailedAttempt | None: ...

    async def failed_attempts(
        self,
        wanted: AttemptFilter,
        *,
        limit: int,
        before: tuple[datetime, int] | None = None,
    ) -> list[FailedAttempt]:
        """Failures of all subscriptions, newest first, without their details.

        ``before``: time and id of the last one of the page before.
        """
        ...

    async def count_failed_attempts(self, wanted: AttemptFilter, most: int) -> int:
        """How many there are; it counts no further than ``most``."""
        ...

    async def sent_chunks(
        self,
        *,
        limit: int,
        before: int | None = None,
        feed_id: FeedId | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[SentChunk]:
        """Chunks that are done, the latest first, as long as attempts are kept; those
        of one feed by its records.

        ``before``: the id of the last one of the page before.
        """
        ...

    async def trim_attempts(self, before: datetime, limit: int) -> int: ...
