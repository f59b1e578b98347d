"""Subscribers, and their permissions.

Subscriptions, their digests and lists; verification of intent; tokens; and track
queries, which are topics without a feed of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from storage.records import (
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
    """Who is notified. The key is (account, topic, callback), in any spelling.

    Topic and callback are kept as the subscriber spelled them last, and used that way
    towards it (see `protocols.urls.normal_url`).
    """

    async def add(self, new: NewSubscription, now: datetime) -> Subscription:
        """Store as active, receiving records committed from now on.

        A known key takes the new secret, format, updates, batch and lease and keeps its
        place in the log; an ended subscription starts anew. A secret that is replaced
        stays valid as the former one until ``new.former_until``, if that is set. A new
        subscription to a failing feed gets the record that announced the failure, if
        the log still has it, by a retry due now.
        """
        ...

    async def edit(
        self, subscription_id: SubscriptionId, new: NewSubscription, now: datetime
    ) -> Subscription | None:
        """Like `add`, for an active subscription; its lease stays. None if it has
        ended, or its feed is gone."""
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
        """End the subscription: no delivery is started afterwards, and its retry is
        deleted.

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
        """End up to ``limit`` subscriptions of a feed; each subscriber is to be
        told."""
        ...

    async def expire(self, now: datetime, limit: int) -> int:
        """End subscriptions whose lease is over; each subscriber is to be told."""
        ...

    async def pause(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        """Send the subscription nothing until `resume`.

        New records become due to its retry, which is not claimed meanwhile; its lease
        goes on. Returns False, and changes nothing, unless the subscription is active.
        If it is paused already, the time of its pause stays.
        """
        ...

    async def resume(self, subscription_id: SubscriptionId, now: datetime) -> bool:
        """Send the subscription what it is owed, beginning now, and what follows.

        Returns False unless it is active. Does nothing if it is not paused.
        """
        ...

    async def ending(self, now: datetime, limit: int) -> list[Subscription]:
        """Subscriptions whose subscriber this node is still to tell of the end, without
        those that are claimed."""
        ...

    async def mark_denied(
        self, ids: Sequence[SubscriptionId], *, lease_id: int
    ) -> frozenset[SubscriptionId]:
        """Store that subscribers need not be told any more; returns of which
        subscriptions: of those that are held under this lease."""
        ...

    async def purge_ended(self, before: datetime, limit: int) -> int:
        """Delete subscriptions that ended before then and whose subscriber need not be
        told.

        Their attempts and dead letters are deleted with them. Returns how many there
        were.
        """
        ...

    async def forget_secrets(self, now: datetime, limit: int) -> int:
        """Delete former secrets whose time is over; returns how many."""
        ...

    async def count(self, feed_id: FeedId) -> int:
        """How many active subscriptions a feed has."""
        ...

    async def counts(self, feeds: Sequence[FeedId]) -> dict[FeedId, int]:
        """The number of active subscriptions of each of these feeds that has any."""
        ...


class DigestStore(Protocol):
    """Which subscriptions get a digest, and when the next one is due."""

    async def set(self, subscription_id: SubscriptionId, due: datetime | None) -> None:
        """Set when the next digest is due; None: no more digests. Does nothing for a
        subscription that has ended."""
        ...

    async def due(self, now: datetime, limit: int) -> list[Subscription]:
        """Active subscriptions whose digest is due, that are not paused, and whose
        digest is not claimed; the one that has waited longest is first. Of the node's
        callbacks."""
        ...

    async def settle(
        self, subscription_id: SubscriptionId, due: datetime, *, lease_id: int
    ) -> bool:
        """A digest was sent, or failed: the next one is due then. False, and nothing
        stored, if it is not held under this lease."""
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
        """A page, oldest first; ``total`` is not counted, and 0, unless ``has_total``.

        The cost does not depend on how many subscriptions other accounts have, nor, if
        an index leads to what is searched for, on how many this account has. It does
        not depend on ``skip`` either, without a search or with one by format, callback
        or host.
        """
        ...


class VerificationStore(Protocol):
    """Requests to the open hub, kept until their callbacks confirm them and for some
    time after.

    A request's key is (account, topic, callback), in any spelling.

    What comes of a try names the lease under which the request is held (`ClaimStore`).
    False is returned, and nothing is stored, if it is not.
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
        """Store as pending, due now. False, and nothing stored, if too many are
        pending.

        At most ``most`` may be pending in all, ``most_of_host`` for the callback's host
        and ``most_of_asker`` for the sender of the request; None: that is not counted.
        A pending request of the same key and mode is replaced and makes room for the
        new one. So does one of the other mode that waits to be tried again because its
        callback did not answer.
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
    ) -> list[Verification]:
        """Pending requests of the node's callbacks that are due, oldest first, at most
        ``per_host`` of each callback host. What is claimed is left out.

        ``without``: ids of requests already in hand. ``without_hosts``: callback hosts
        that have had their turn.

        Of each key only the oldest pending request is returned, so that an
        unsubscription that follows a subscription is not asked about before it.
        """
        ...

    async def next_due(self) -> datetime | None: ...

    async def retry(
        self,
        verification_id: int,
        last: VerificationTry,
        due: datetime,
        *,
        lease_id: int,
    ) -> bool:
        """Count a try that failed. A request that is done stays done."""
        ...

    async def finish(
        self,
        verification_id: int,
        state: VerificationState,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        """Mark the request as done. `find` still returns it until ``kept_until``; its
        secret is deleted."""
        ...

    async def subscribe(
        self,
        verification_id: int,
        new: NewSubscription,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        """The callback confirmed: subscribe like `SubscriptionStore.add`, and mark as
        done.

        The confirmation counts even if the request was replaced meanwhile. Raises
        `NotFound`, with nothing changed, if the feed is gone or removed; the claim is
        still held then.
        """
        ...

    async def unsubscribe(
        self,
        verification_id: int,
        subscription_id: SubscriptionId,
        last: VerificationTry,
        *,
        kept_until: datetime,
        lease_id: int,
    ) -> bool:
        """The callback confirmed: end the subscription without denial, mark as done."""
        ...

    async def find(self, token: str) -> Verification | None: ...

    async def trim(self, now: datetime, limit: int) -> int:
        """Delete finished requests that need not be kept any more; returns how many."""
        ...


class TokenStore(Protocol):
    """API tokens, and the account that each belongs to."""

    async def add(self, new: NewToken, now: datetime) -> StoredToken | None:
        """Store a token; None if one with that SHA-256 exists, revoked or not."""
        ...

    async def account(self, name: str) -> Account | None:
        """The account of that name; None if no token was ever made for it."""
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
        """Accounts whose names begin with ``prefix``, by name; ``after``: a name."""
        ...

    async def ended(self, ids: Sequence[TokenId]) -> frozenset[TokenId]:
        """Which of these tokens are no longer valid; unknown ids are among them."""
        ...

    async def touch(self, token_id: TokenId, now: datetime) -> None:
        """Store that the token was used."""
        ...

    async def revoke(self, token_id: TokenId, now: datetime) -> StoredToken:
        """Revoke the token; one already revoked stays so. Raises `NotFound`."""
        ...


class TrackStore(Protocol):
    """Each query is a feed in the state ``TRACK``, private and never due.

    Subscriptions, and all that reads records, take it for a feed.
    """

    async def add(
        self, name: str, query: str, now: datetime, owner: AccountId = NOBODY
    ) -> StoredFeed:
        """The feed of an account's query, created or restored if needed.

        It finds what its owner may read; a query of `NOBODY` finds what is public. That
        the query is wanted now is stored at most once an hour, so that reading its
        results mostly writes nothing. ``name`` is what all spellings of the query have
        in common. The first spelling is kept.
        """
        ...

    async def find(self, name: str) -> StoredFeed | None:
        """The feed of a query's first owner, removed or not."""
        ...

    async def version(self) -> int:
        """How often queries were added: see `storage.records.Matched`."""
        ...

    async def page(self, *, after: FeedId, limit: int) -> list[TrackQuery]:
        """Queries that are not removed, by id."""
        ...

    async def sample(self, limit: int, most_bytes: int) -> list[bytes]:
        """Packed bodies among the entries stored last, from feeds that are public now.

        At most ``limit`` entries are looked at; those above ``most_bytes`` are left
        out.
        """
        ...

    async def matches(self, feeds: Sequence[FeedId], records: int) -> list[TrackMatch]:
        """What queries found, the latest first: the last ``records`` records of each
        query.

        As far back as the log goes, and from feeds that the query's owner may read now.
        """
        ...

    async def retire(
        self,
        unwanted_since: datetime,
        listened: Sequence[FeedId],
        now: datetime,
        limit: int,
    ) -> int:
        """Remove queries that nobody has wanted since then; returns how many.

        A query is wanted while it has subscriptions, and when it was just asked for or
        is ``listened`` to now. A removed query is restored, or purged, like a feed.
        """
        ...
