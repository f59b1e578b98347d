"""Feeds and the topics that name them."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from storage.records import (
    AccountId,
    DueFeed,
    FeedChange,
    FeedId,
    FeedState,
    FetchTarget,
    HiddenFeeds,
    NewFeed,
    PlaceByPace,
    Posting,
    StoredFeed,
)


class FeedStore(Protocol):
    """Feeds and the topics that name them."""

    async def add(self, feed: NewFeed, now: datetime) -> tuple[StoredFeed, bool]:
        """Register a feed, due at once. True: it is new.

        A known URL gives the known feed. Another spelling of it does (see
        `protocols.urls.resource_url`), too, but if they differ in their credentials
        there are two feeds. Nothing of the known feed changes: that is `edit`. One that
        was given up is active again, with all its state (validators, seen-set) and its
        next fetch unchanged (a re-add is no reason to fetch early). So is one that was
        removed, but as private as it is added now, and with the section and credentials
        that are given, or those it had.
        """
        ...

    async def edit(
        self, feed_id: FeedId, change: FeedChange, reason: str, now: datetime
    ) -> tuple[StoredFeed, int]:
        """Change a feed, and end for that ``reason`` the subscriptions of whom it shuts
        out, in one transaction: each is to be told. How many have ended.

        Credentials make it private. Raises `NotFound`, also for one that was removed.
        """
        ...

    async def get(self, feed_id: FeedId) -> StoredFeed | None: ...

    async def find(self, topic: str) -> StoredFeed | None:
        """The feed behind a topic URL in any spelling, removed ones included.

        Of several that of this very spelling, and of those the one with credentials;
        else one that is not removed, and has no credentials. Also the one that a
        subscription to the topic was made for.
        """
        ...

    async def parts(self, page: str, limit: int) -> list[StoredFeed]:
        """Those whose URLs select a part of the page, in any spelling, by id, at most
        ``limit``; not those that were removed."""
        ...

    async def find_open(self, topic: str) -> StoredFeed | None:
        """As `find`, as far as it has no credentials: what anybody gets."""
        ...

    async def find_readable(
        self, topic: str, viewer: AccountId | None
    ) -> StoredFeed | None:
        """As `find`, as far as the viewer may read it.

        None: the operator, who reads all; `storage.records.NOBODY`: who reads what is
        public. A private feed opens to accounts that subscribe to it, one with
        credentials to nobody but the operator, one that was removed to nobody at all.
        """
        ...

    async def readable(
        self, asked: Collection[tuple[AccountId | None, FeedId]]
    ) -> frozenset[tuple[AccountId | None, FeedId]]:
        """Those pairs of a viewer and a feed that it may read, as `find_readable`."""
        ...

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> list[StoredFeed]:
        """Feeds by id; removed ones only if asked for by ``state``."""
        ...

    async def due(
        self, now: datetime, *, after: PlaceByPace, limit: int
    ) -> list[DueFeed]:
        """Active feeds with ``next_fetch`` <= now, the latest first, by their period.

        That is by (-`storage.records.lateness`, next_fetch, id), and so for one pace by
        (next_fetch, id): of each pace those that follow the place in ``after``.
        """
        ...

    async def next_due(self) -> datetime | None:
        """The earliest ``next_fetch`` of an active feed."""
        ...

    def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> Awaitable[None]:
        """Move ``next_fetch`` of many feeds (a host that is paced or throttled)."""
        ...

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        """Move ``next_fetch`` of feeds that are overdue, and were fetched before, to
        times to come, evenly; how many.

        Each within its own period and within ``longest``, and all together so that no
        fewer than ``per_second`` are due in a second.
        """
        ...

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        """What fetches start from, in one read; unknown and removed ids left out."""
        ...

    async def postings(self, limit: int) -> list[Posting]:
        """Those of up to so many feeds that have habits, spread evenly over all;
        without feeds that were removed, or never posted."""
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
        """Pause, resume, stop or remove, a track query too. Raises `NotFound`.

        Removing ends no subscription by itself: see `SubscriptionStore.end_all`.
        """
        ...

    async def set_publish_secret(self, feed_id: FeedId, secret: str) -> None:
        """What its publisher signs with; "" for nothing. Kept encrypted."""
        ...

    async def publish_secret(self, feed_id: FeedId) -> str:
        """ "" if there is none."""
        ...

    async def set_subscription_callback(self, feed_id: FeedId, url: str) -> None:
        """Where its publisher is asked about each new subscription; "" for nowhere."""
        ...

    async def subscription_callback(self, feed_id: FeedId) -> str:
        """ "" if there is none."""
        ...

    async def purge_removed(self, before: datetime, limit: int) -> int:
        """Delete feeds removed before that time, with all that is theirs."""
        ...
