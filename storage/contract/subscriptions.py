"""Subscribers, and their permissions.

Subscriptions, their digests and lists; verification of intent; tokens; and track
queries, which are topics without a feed of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from storage.records import (
    ALL_SHARDS,
    EVERY_TOKEN,
    NOBODY,
    Account,
    AccountId,
    AccountSummary,
    FeedId,
    Listing,
    ListingSearch,
    NewSubscription,
    NewToken,
    NewVerification,
    Shards,
    StoredFeed,
    StoredToken,
    SubscriberGroup,
    Subscription,
    SubscriptionId,
    TokenFilter,
    TokenId,
    TrackMatch,
    TrackQuery,
    Verification,
    VerificationState,
    VerificationTry,
)


class SubscriptionStore(Protocol):
    """Who is told. The key is (account, topic, callback), whatever the spelling.

    A subscriber is given back the topic and called at the callback as it spelled them
    last (see `protocols.urls.normal_url`).
    """

    async def add(self, new: NewSubscription, now: datetime) -> Subscription:
        """Store as active, receiving records committed from now on.

        A known key takes the new secret, format, updates, batch and lease and keeps
        its place in the log; an ended one starts anew. The secret that another one
        replaces stays as the former one until ``new.former_until``, if there is one.

        Who is new to a feed that fails gets the record that told of it, if the log
        still has it: by a retry, due now.
        """
        ...

    async def edit(
        self, subscription_id: SubscriptionId, new: NewSubscription, now: datetime
    ) -> Subscription | None:
        """Like `add`, of an active one; its lease stays. None: it has ended, or its
        feed is gone."""
        ...

    async def get(self, subscription_id: SubscriptionId) -> Subscription | None: ...

    async def find(
        self, account: AccountId, topic: str, callback: str
    ) -> Subscription | None: ...

    async def holds(self, account: AccountId, feed_id: FeedId) -> bool:
        """Whether the account has an active subscription to the feed."""
        ...

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
        """End it: no delivery is started afterwards; its retry goes with it.

        ``tell``: it becomes ENDING until `told`. Raises `NotFound`.
        """
        ...

    async def end_all(
        self,
        feed_id: FeedId,
        reason: str,
        now: datetime,
        limit: int,
        whose: SubscriberGroup = SubscriberGroup.ALL,
    ) -> int:
        """End up to ``limit`` subscriptions of a feed, each to be told."""
        ...

    async def expire(self, now: datetime, limit: int) -> int:
        """End subscriptions whose lease is over, each to be told."""
        ...

    async def pause(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        """Have nothing sent to it until `resume`.

        What comes for it is owed by its retry, which is not claimed; its lease goes on.
        False, and nothing changes, unless it is active. One that is paused already has
        been so since then.
        """
        ...

    async def resume(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        """Send it what it is owed, beginning now, and what comes.

        False unless it is active. Of one that is not paused nothing changes.
        """
        ...

    async def ending(
        self, limit: int, shards: Shards = ALL_SHARDS
    ) -> list[Subscription]:
        """Subscriptions whose subscriber is still to be told; ``shards`` of
        callbacks."""
        ...

    async def mark_denied(self, ids: Sequence[SubscriptionId]) -> None: ...

    async def purge_ended(self, before: datetime, limit: int) -> int:
        """Delete subscriptions that ended before then and have nobody to tell.

        Their attempts and dead letters go with them. How many there were.
        """
        ...

    async def forget_secrets(self, now: datetime, limit: int) -> int:
        """Delete former secrets whose time is over; how many."""
        ...

    async def count(self, feed_id: FeedId) -> int:
        """Active subscriptions of a feed."""
        ...

    async def counts(self, feeds: Sequence[FeedId]) -> dict[FeedId, int]:
        """The number of subscriptions of each of these feeds that has any."""
        ...


class DigestStore(Protocol):
    """Which subscriptions get a digest, and when the next."""

    async def set(self, subscription_id: SubscriptionId, due: datetime | None) -> None:
        """None: no digests any more. One that has ended gets none."""
        ...

    async def due(
        self, now: datetime, limit: int, shards: Shards = ALL_SHARDS
    ) -> list[Subscription]:
        """Active ones that are due and not paused; who has waited longest is first.
        ``shards`` of callbacks."""
        ...


class ListingStore(Protocol):
    """Active subscriptions of one account. The anonymous account has no list."""

    async def page(
        self,
        account: AccountId,
        search: ListingSearch,
        *,
        skip: int,
        limit: int,
        has_total: bool = True,
    ) -> Listing:
        """Oldest first; ``has_total`` False: the total is not wanted, and 0.

        The cost does not depend on how many subscriptions other accounts have, nor,
        where an index leads to what is searched for, on how many the account has. It
        does not depend on ``skip`` either, without a search or with one by format,
        callback or host.
        """
        ...


class VerificationStore(Protocol):
    """Requests to the open hub, until their callbacks confirm them and some time after.

    A request's key is (account, topic, callback), whatever the spelling.
    """

    async def add(
        self,
        new: NewVerification,
        now: datetime,
        *,
        most: int,
        most_of_host: int,
        most_of_asker: int | None = None,
    ) -> bool:
        """Store as pending, due now. False, and nothing stored: too many are pending.

        ``most`` of all may be, ``most_of_host`` of its callback's host and
        ``most_of_asker`` of who asks; None: that is not counted. A pending one of the
        same key and mode is replaced and makes room for it. So is one of the other mode
        that waits to be tried again: its callback was silent.
        """
        ...

    async def due(
        self,
        now: datetime,
        *,
        per_host: int,
        limit: int,
        without: Collection[int] = (),
        without_hosts: Collection[str] = (),
        shards: Shards = ALL_SHARDS,
    ) -> list[Verification]:
        """Pending ones that are due, oldest first, so many of each callback host.

        ``without``: ids of those that are in hand already. ``without_hosts``: callback
        hosts that have had their turn. ``shards`` of callbacks.

        Of one key only the oldest pending one, so that an unsubscription that follows
        a subscription is not asked about before it.
        """
        ...

    async def next_due(self, shards: Shards = ALL_SHARDS) -> datetime | None: ...

    async def retry(
        self, verification_id: int, last: VerificationTry, due: datetime
    ) -> None:
        """Count a try that led nowhere. One that is done stays done."""
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
        """Its callback confirmed: subscribe as `SubscriptionStore.add`, and be done.

        It counts even if it was replaced meanwhile: it was confirmed. Raises `NotFound`
        if the feed is gone or removed; then nothing is changed.
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


class TokenStore(Protocol):
    """What opens the API for which account."""

    async def add(self, new: NewToken, now: datetime) -> StoredToken | None:
        """Store a token; None if there is one with that SHA-256 already, revoked or
        not."""
        ...

    async def account(self, name: str) -> Account | None:
        """The account of that name, if some token was made for it."""
        ...

    async def names(self, accounts: Sequence[AccountId]) -> dict[AccountId, str]:
        """The names of those accounts that exist."""
        ...

    async def find(self, digest: bytes) -> StoredToken | None:
        """The token with that SHA-256, unless it was revoked."""
        ...

    async def page(
        self, *, after: TokenId, limit: int, wanted: TokenFilter = EVERY_TOKEN
    ) -> list[StoredToken]:
        """Tokens by id, revoked ones included."""
        ...

    async def accounts(
        self, *, prefix: str = "", after: str = "", limit: int
    ) -> list[AccountSummary]:
        """Accounts by name, those whose name begins so; ``after``: a name."""
        ...

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        """Which of them open nothing any more; unknown ids are among them."""
        ...

    async def touch(self, token_id: TokenId, now: datetime) -> None:
        """It was used."""
        ...

    async def revoke(self, token_id: TokenId, now: datetime) -> StoredToken:
        """Revoke it; one revoked before stays so. Raises `NotFound`."""
        ...


class TrackStore(Protocol):
    """Each query is a feed in the state ``TRACK``, private and never due.

    Subscriptions, and all that reads records, take it for a feed.
    """

    async def add(
        self, name: str, query: str, now: datetime, owner: AccountId = NOBODY
    ) -> StoredFeed:
        """The feed of an account's query, made or brought back if need be.

        It finds what its owner may read; a query of `NOBODY`, what is public. That the
        query is wanted now is noted once an hour, so that reading what a query finds
        writes nothing. ``name`` is what all spellings of the query have in common. The
        first spelling is kept.
        """
        ...

    async def find(self, name: str) -> StoredFeed | None:
        """The feed that stands for a query, of the first of its owners; also one that
        was removed."""
        ...

    async def version(self) -> int:
        """How often queries came: see `storage.records.Matched`."""
        ...

    async def page(self, *, after: FeedId, limit: int) -> list[TrackQuery]:
        """Queries that are not removed, by id."""
        ...

    async def sample(self, limit: int, most_bytes: int) -> list[bytes]:
        """Packed bodies among the entries stored last, of feeds that are public now.

        At most ``limit`` are looked at, and none larger than ``most_bytes`` is taken.
        """
        ...

    async def matches(self, feeds: Sequence[FeedId], records: int) -> list[TrackMatch]:
        """What queries found, the last first: of each query its last ``records``.

        As far back as the log, and of feeds that the query's owner may read now.
        """
        ...

    async def retire(
        self,
        unwanted_since: datetime,
        listened: Sequence[FeedId],
        now: datetime,
        limit: int,
    ) -> int:
        """Remove queries that nobody has wanted since then; how many.

        Wanted are those with subscriptions, until these ended, and those just asked
        for or ``listened`` to now. A removed one returns, or is purged, as feeds are.
        """
        ...
