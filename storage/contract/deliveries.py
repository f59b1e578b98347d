"""Delivering records to callbacks: what the dispatcher reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from storage.records import (
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
    RetryingSubscription,
    SentChunk,
    SubscriptionId,
    UndeliveredFilter,
)


class DeliveryStore(Protocol):
    """The dispatcher's side.

    A lease is a random id with the time it ends at, by the engine's clock only. Its
    holder counts from the moment before it asked for the lease, or for its renewal.
    Each outcome names the lease under which it was obtained; it changes nothing if that
    lease is not held. What a node held when it died is free when its successor joins
    (`MembershipStore`).
    """

    async def claim_chunks(self, terms: ClaimTerms) -> list[ClaimedChunk]:
        """Lease chunks; those of one feed in order of their records.

        Unfinished chunks whose lease is over come first. Then fan-out rows are split
        further, 500 subscriptions at a time in id order: first the oldest row of the
        feeds without a chunk under way, then, of the feeds with fewer than four, the
        row of the feed whose last chunk was made first. Members are active
        subscriptions of the record's feed with ``from_position`` below the record that
        want its kind (see `wants`) and have no open retry. Records of one feed go
        strictly one after the other: a later record is not split while an earlier one
        has fan-out or chunks left. A fan-out without members is dropped.

        The first time that a record is split, up to 1,000 unleased retries that want it
        and whose ``news_from`` has come are made due, in the order of that time.
        """
        ...

    def claim_with_commits(
        self,
        ask: Callable[[], ClaimTerms | None],
        give: Callable[[list[ClaimedChunk] | None], None],
    ) -> AbstractContextManager[None]:
        """Within the block, a commit with records also claims chunks in its own
        transaction, where possible, so that the chunks exist as soon as the records do.

        ``ask`` is called when a commit is handed in, and returns what may be claimed,
        None for nothing. If it returned terms, ``give`` is called once the commit is
        durable, with new chunks only, often none; or with None if the commit failed.
        Both are called on the event loop and must not wait. There is one claimer at a
        time.
        """
        ...

    async def renew(
        self, chunk_ids: Sequence[int], *, lease_id: int, seconds: float, now: datetime
    ) -> None:
        """Extend the lease, by so many seconds from now, on those of the chunks it
        still holds."""
        ...

    async def flush(self, flush: DeliveryFlush) -> Flushed:
        """Apply the flush. If its number is that of the last flush, it was stored
        already, and the answer is the one given then."""
        ...

    async def notified(self) -> dict[AccountId, int]:
        """How many requests each account was sent; accounts that were never sent any
        are left out."""
        ...

    async def claim_retrying(self, terms: ClaimTerms) -> list[RetryingSubscription]:
        """Lease the retries that are due (``next_try`` <= now, not leased) and not
        paused, and those whose lease is over; on any node."""
        ...

    async def next_retry(self) -> datetime | None:
        """When the next unleased retry is due, or the next lease ends."""
        ...

    async def retrying(
        self,
        *,
        after: SubscriptionId,
        limit: int,
        wanted: UndeliveredFilter | None = None,
    ) -> list[RetryingSubscription]:
        """Retrying subscriptions, by id; with a filter: those that it finds."""
        ...

    async def retrying_subscription(
        self, subscription_id: SubscriptionId
    ) -> RetryingSubscription | None: ...

    async def lag(self, subscription_id: SubscriptionId, most: int) -> DeliveryLag:
        """How far the subscription is behind the log; at most ``most`` records are
        counted. A subscription that is not active is owed nothing."""
        ...

    async def dead_letters(
        self, *, after: int, limit: int, wanted: UndeliveredFilter | None = None
    ) -> list[DeadLetter]:
        """Dead letters, by id; with a filter as in `retrying`."""
        ...

    async def dead_letters_of(
        self, ids: Sequence[SubscriptionId], positions: Sequence[Position]
    ) -> list[DeadLetter]:
        """The dead letters of these subscriptions that cover any of the records, by
        id."""
        ...

    async def count_undelivered(self, wanted: UndeliveredFilter, most: int) -> int:
        """How many retrying subscriptions and dead letters match; counting stops at
        ``most``."""
        ...

    async def retry_now(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        """Make the retry due now, ahead of its schedule, which stays as it is; False
        if it is being tried already. Raises `NotFound`, `SubscriptionPaused`."""
        ...

    async def discard_retry(
        self, subscription_id: SubscriptionId, now: datetime
    ) -> None:
        """Close the retry: what it has not delivered is no longer sent, and fan-out
        serves the subscription again. Raises `NotFound`."""
        ...

    async def retry_dead_letter(self, dead_id: int, now: datetime) -> None:
        """Turn a dead letter into a retry, due now.

        Raises `NotFound`, `SubscriptionPaused`, or `StorageBusy` while the subscription
        is in an unfinished chunk or has a retry at another position.
        """
        ...

    async def replay(
        self, subscription_id: SubscriptionId, after: Position, now: datetime
    ) -> None:
        """Send the subscription once more, from now on, all records above ``after``
        that it wants and the log still has. This is done by a retry that leaves none of
        them out, and says which it was sent before (``skip_after``). If it is well, it
        stays so until one of these requests fails.

        Raises `NotFound` unless the subscription is active, `SubscriptionPaused`, or
        `StorageBusy` while it is in an unfinished chunk or its retry is leased.
        """
        ...

    async def discard_dead_letter(self, dead_id: int) -> None:
        """Delete the dead letter. Raises `NotFound`."""
        ...

    async def attempts(
        self,
        subscription_id: SubscriptionId,
        limit: int,
        wanted: AttemptRange | None = None,
    ) -> list[Attempt]:
        """The last attempts, newest first, successful ones included.

        Each subscription keeps its last 2,000 failures and catch-ups, in addition to
        all deliveries that succeeded at once, and the details of its last 5 failures.
        """
        ...

    async def attempts_kept_from(
        self, subscription_id: SubscriptionId
    ) -> datetime | None:
        """From when on all its failures and catch-ups are kept; None if none have made
        room for later ones. If there may have been earlier ones, of which nothing is
        left, it is the time of the oldest that is kept of any subscription."""
        ...

    async def first_successes(
        self, records: Sequence[tuple[FeedId, Position]]
    ) -> dict[Position, datetime | None]:
        """For each record that was sent to any callback, when the first one accepted
        it: the earliest `Attempt.at` of its chunks' members. None if no callback has
        accepted it, or only upon a retry."""
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

        ``before``: time and id of the last failure of the previous page.
        """
        ...

    async def count_failed_attempts(self, wanted: AttemptFilter, most: int) -> int:
        """How many failures match; counting stops at ``most``."""
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
        """Finished chunks, the latest first, for as long as attempts are kept; those of
        one feed in the order of its records.

        ``before``: the id of the last chunk of the previous page.
        """
        ...

    async def latest_requests(
        self, until: datetime, *, chunks: int, attempts: int
    ) -> LatestRequests:
        """The latest requests that were over before then: those that were delivered at
        once, of so many finished chunks, and so many failures and catch-ups."""
        ...

    async def trim_attempts(self, before: datetime, limit: int, *, kept: int) -> int:
        """Delete attempts from before then, at most ``limit`` failures and catch-ups,
        and as many chunks; and the oldest failures and catch-ups of all subscriptions
        until ``kept`` are left. Returns how many."""
        ...
