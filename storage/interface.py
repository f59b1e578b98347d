"""What every engine offers. No SQL and no driver type crosses these protocols.

Every writing method is one transaction: it returns when it is durable, or raises
`WriteFailed` and has changed nothing. Cancelling a waiting caller never cancels its
transaction. Time is an argument: an engine reads no clock. Lists are short pages in
key order. Any method may raise `StorageClosed`; writing ones `StorageBusy`,
`WriteFailed` and `StorageFull`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from storage.records import (
    AccountId,
    Attempt,
    Backlog,
    ClaimedChunk,
    Cursor,
    DatabaseStatus,
    DeadRange,
    DeliveryFlush,
    DueFeed,
    EntryId,
    FeedId,
    FeedState,
    FeedTrail,
    FetchCommit,
    FetchTarget,
    Flushed,
    HiddenFeeds,
    NewFeed,
    NewSubscription,
    NewToken,
    NewVerification,
    Position,
    Record,
    Retention,
    StoredBody,
    StoredEntry,
    StoredFeed,
    Straggler,
    Subscription,
    SubscriptionId,
    Token,
    TokenId,
    Verification,
    VerificationState,
    VerificationTry,
)


class FeedStore(Protocol):
    """Feeds and the topics that name them."""

    async def add(self, feed: NewFeed, now: datetime) -> tuple[StoredFeed, bool]:
        """Register a feed, due at once. True: it is new.

        A known URL gives the known feed. Another spelling of it does (see
        `protocols.urls.resource_url`), too, but if they differ in their credentials
        there are two feeds. Of the known feed, section and credentials are replaced if
        given, a private feed that is added without ``private`` becomes public unless
        it has credentials, which make it private, and a removed one returns, as
        private as it is added now. That one, and one that was given up, returns with
        all its state (validators, seen-set) and its next fetch unchanged (a re-add is
        no reason to fetch early).
        """
        ...

    async def get(self, feed_id: FeedId) -> StoredFeed | None: ...

    async def find(self, topic: str) -> StoredFeed | None:
        """The feed behind a topic URL in any spelling, removed ones included.

        Of several that of this very spelling; else one that is not removed, and has
        no credentials. Also the one that a subscription to the topic was made for.
        """
        ...

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> list[StoredFeed]:
        """Feeds by id; removed ones only if asked for by ``state``."""
        ...

    async def due(
        self, now: datetime, *, after: tuple[datetime, FeedId] | None, limit: int
    ) -> list[DueFeed]:
        """Active feeds with ``next_fetch`` <= now, ordered by (next_fetch, id)."""
        ...

    async def next_due(self) -> datetime | None:
        """The earliest ``next_fetch`` of an active feed."""
        ...

    def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> Awaitable[None]:
        """Move ``next_fetch`` of many feeds (a host that is paced or throttled)."""
        ...

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        """What fetches start from, in one read; unknown and removed ids left out."""
        ...

    async def hidden(self, ids: Sequence[FeedId]) -> HiddenFeeds:
        """Which of them not everybody may see; unknown ids count as removed."""
        ...

    async def set_state(
        self,
        feed_id: FeedId,
        state: FeedState,
        now: datetime,
        *,
        next_fetch: datetime | None = None,
    ) -> StoredFeed:
        """Pause, resume, stop or remove. Raises `NotFound`.

        Removing ends no subscription by itself: see `SubscriptionStore.end_all`.
        """
        ...

    async def purge_removed(self, before: datetime, limit: int) -> int:
        """Delete feeds removed before that time, with all that is theirs."""
        ...


class LogStore(Protocol):
    """The log: one transaction in, many readers out."""

    async def commit(self, fetch: FetchCommit) -> tuple[Position, ...] | None:
        """Apply what a fetch found; the positions of its records.

        None, and nothing applied, if the feed was removed meanwhile. Raises
        `DocumentWanted`, with nothing applied, if there is news without a body and an
        as-is subscription to send it to.
        """
        ...

    async def head(self) -> Cursor: ...

    async def wait(self, after: Position, seconds: float) -> Position:
        """Return the head when it is above ``after``, or after so many seconds."""
        ...

    async def records(
        self, *, after: Position, limit: int, feed_id: FeedId | None = None
    ) -> list[Record]: ...

    async def trail(self, feed_id: FeedId, through: Position) -> FeedTrail:
        """What a feed has left in the log, up to and with a position."""
        ...

    async def entries(self, ids: Sequence[EntryId]) -> list[StoredEntry]:
        """Current state, in the order asked for; unknown ids are left out."""
        ...

    async def latest_entries(self, feed_id: FeedId, limit: int) -> list[StoredEntry]:
        """Newest first, deleted ones left out."""
        ...

    async def feed_head(self, feed_id: FeedId) -> bytes | None:
        """Packed `protocols.model.Feed` of the last document."""
        ...

    async def body(self, feed_id: FeedId) -> StoredBody | None:
        """The latest document, kept only while a subscription is as-is."""
        ...

    async def trim(self, retention: Retention, now: datetime, limit: int) -> int:
        """Drop old records and entry states nothing refers to; how many records."""
        ...


class SubscriptionStore(Protocol):
    """Who is told. The key is (account, topic, callback), whatever the spelling.

    A subscriber is given back the topic and called at the callback as it spelled them
    last (see `protocols.urls.normal_url`).
    """

    async def add(self, new: NewSubscription, now: datetime) -> Subscription:
        """Store as active, receiving records committed from now on.

        A known key takes the new secret, format, updates, batch and lease and keeps
        its place in the log; an ended one starts anew.
        """
        ...

    async def get(self, subscription_id: SubscriptionId) -> Subscription | None: ...

    async def find(
        self, account: AccountId, topic: str, callback: str
    ) -> Subscription | None: ...

    async def page(
        self,
        *,
        after: SubscriptionId,
        limit: int,
        account: AccountId | None = None,
        topic: str | None = None,
        callback: str | None = None,
    ) -> list[Subscription]:
        """Subscriptions that are not ended, by id."""
        ...

    async def end(
        self, subscription_id: SubscriptionId, reason: str, now: datetime, *, tell: bool
    ) -> Subscription:
        """End it: no delivery is started afterwards; its straggler goes with it.

        ``tell``: it becomes ENDING until `told`. Raises `NotFound`.
        """
        ...

    async def end_all(
        self, feed_id: FeedId, reason: str, now: datetime, limit: int
    ) -> int:
        """End up to ``limit`` subscriptions of a feed, each to be told."""
        ...

    async def expire(self, now: datetime, limit: int) -> int:
        """End subscriptions whose lease is over, each to be told."""
        ...

    def watch_endings(
        self, tell: Callable[[Sequence[SubscriptionId], Position], None]
    ) -> AbstractContextManager[None]:
        """While entered, call ``tell`` with subscriptions that have ended, and where
        the log ended then.

        On the event loop, as soon as it is durable, and before whoever ended them goes
        on. One that had ended before may be named again.
        """
        ...

    async def ending(self, limit: int) -> list[Subscription]:
        """Subscriptions whose subscriber is still to be told."""
        ...

    async def told(self, ids: Sequence[SubscriptionId]) -> None: ...

    async def purge_ended(self, before: datetime, limit: int) -> int:
        """Delete subscriptions that ended before then and have nobody to tell.

        Their attempts and dead ranges go with them. How many there were.
        """
        ...

    async def count(self, feed_id: FeedId) -> int:
        """Active subscriptions of a feed."""
        ...


class VerificationStore(Protocol):
    """Requests to the open hub, until their callbacks confirm them and some time after.

    A request's key is (account, topic, callback), whatever the spelling.
    """

    async def add(
        self, new: NewVerification, now: datetime, *, most: int, most_of_host: int
    ) -> bool:
        """Store as pending, due now. False, and nothing stored: too many are pending.

        A pending one of the same key and mode is replaced and makes room for it.
        """
        ...

    async def due(
        self,
        now: datetime,
        *,
        per_host: int,
        limit: int,
        without: Collection[int] = (),
    ) -> list[Verification]:
        """Pending ones that are due, oldest first, so many of each callback host.

        ``without``: ids of those that are in hand already.

        Of one key only the oldest pending one, so that an unsubscription that follows
        a subscription is not asked about before it.
        """
        ...

    async def next_due(self) -> datetime | None: ...

    async def retry(
        self, verification_id: int, last: VerificationTry, due: datetime
    ) -> None:
        """Count a try that led nowhere; a done one stays done."""
        ...

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        """Done, for `find` until that time; its secret is forgotten."""
        ...

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        """Its callback confirmed: what `SubscriptionStore.add` does, and it is done.

        That it was replaced meanwhile makes no difference: it was confirmed. Raises
        `NotFound` if the feed is gone or removed; then nothing is changed.
        """
        ...

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
    ) -> None:
        """Its callback confirmed: the subscription ends, untold, and it is done."""
        ...

    async def find(self, token: str) -> Verification | None: ...

    async def trim(self, now: datetime, limit: int) -> int:
        """Delete done ones that need not be kept any more; how many."""
        ...


class DeliveryStore(Protocol):
    """The dispatcher's side. A lease is a random id with a time it ends at."""

    async def claim_chunks(
        self, *, lease_id: int, until: datetime, now: datetime, limit: int
    ) -> list[ClaimedChunk]:
        """Lease up to ``limit`` chunks, oldest record first.

        Unfinished chunks whose lease is over come first; then fan-out rows are split
        on, 500 subscriptions at a time in id order. Members are active
        subscriptions of the record's feed with ``from_position`` below the record
        that want its kind (see `wants`) and have no open straggler. Records of one
        feed go strictly one after the other: a later record is not split while an
        earlier one has fan-out or chunks left. A fan-out without members is dropped.
        """
        ...

    async def renew(
        self, chunk_ids: Sequence[int], *, lease_id: int, until: datetime
    ) -> None: ...

    async def flush(self, flush: DeliveryFlush) -> Flushed: ...

    async def claim_stragglers(
        self, *, lease_id: int, until: datetime, now: datetime, limit: int
    ) -> list[Straggler]:
        """Lease stragglers that are due (``next_try`` <= now and nobody's lease)."""
        ...

    async def next_straggler(self) -> datetime | None:
        """When the next unleased straggler, or the end of a lease, is due."""
        ...

    async def void_leases(self) -> None:
        """At start, under the file lock: nobody else can be at work."""
        ...

    async def stragglers(
        self, *, after: SubscriptionId, limit: int
    ) -> list[Straggler]: ...

    async def straggler(self, subscription_id: SubscriptionId) -> Straggler | None: ...

    async def dead(
        self, *, after: int, limit: int, subscription_id: SubscriptionId | None = None
    ) -> list[DeadRange]: ...

    async def retry_straggler(
        self, subscription_id: SubscriptionId, now: datetime
    ) -> None:
        """Make it due now. Raises `NotFound`."""
        ...

    async def retry_dead(self, dead_id: int, now: datetime) -> None:
        """Turn a dead range into a straggler that replays it, due now.

        Raises `NotFound`, or `StorageBusy` while the subscription is in an
        unfinished chunk or has a straggler that stands elsewhere.
        """
        ...

    async def attempts(
        self, subscription_id: SubscriptionId, limit: int
    ) -> list[Attempt]:
        """The last attempts, newest first, successful ones included."""
        ...

    async def trim_attempts(self, before: datetime, limit: int) -> int: ...


class TokenStore(Protocol):
    """What opens the API for which account."""

    async def add(self, new: NewToken, now: datetime) -> Token: ...

    async def find(self, digest: bytes) -> Token | None:
        """The token with that SHA-256, unless it was revoked."""
        ...

    async def page(self, *, after: TokenId, limit: int) -> list[Token]:
        """Tokens by id, revoked ones included."""
        ...

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        """Which of them open nothing any more; unknown ids are among them."""
        ...

    async def touch(self, token_id: TokenId, now: datetime) -> None:
        """It was used."""
        ...

    async def revoke(self, token_id: TokenId, now: datetime) -> Token:
        """It opens nothing any more; one revoked before stays so. Raises `NotFound`."""
        ...


class Storage(Protocol):
    """An opened database. One process owns a SQLite file at a time."""

    @property
    def feeds(self) -> FeedStore: ...
    @property
    def log(self) -> LogStore: ...
    @property
    def subscriptions(self) -> SubscriptionStore: ...
    @property
    def verifications(self) -> VerificationStore: ...
    @property
    def deliveries(self) -> DeliveryStore: ...
    @property
    def tokens(self) -> TokenStore: ...

    async def status(self) -> DatabaseStatus: ...

    async def backlog(self) -> Backlog: ...

    def trouble(self) -> str:
        """Why writes currently fail ("" when they do not); for readiness."""
        ...

    async def check(self) -> None:
        """A tiny durable write; raises what a real one would."""
        ...

    async def backup(self, destination: Path) -> None:
        """A consistent copy that starts a new epoch when it is first opened."""
        ...

    async def close(self) -> None: ...
