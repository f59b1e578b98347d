"""Feeds: what is polled, what maintenance finds out, who pushes, and large sites."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from storage.records import (
    ALL_SHARDS,
    AccountId,
    DueFeed,
    FeedChange,
    FeedId,
    FeedPush,
    FeedState,
    FeedStatistics,
    FeedStatisticsWrite,
    FetchTarget,
    HiddenFeeds,
    NewFeed,
    NewPushCallback,
    PlaceByPace,
    Poll,
    Posting,
    PushCallback,
    PushCount,
    PushHub,
    Shards,
    SiteTally,
    StoredFeed,
    StoredSitePage,
)


class FeedStore(Protocol):
    """Feeds and the topics that name them."""

    async def add(self, feed: NewFeed, now: datetime) -> tuple[StoredFeed, bool]:
        """Register a feed, due at once. True: it is new.

        A known URL gives the known feed. So does another spelling of it (see
        `protocols.urls.resource_url`), unless the two differ in their credentials: then
        there are two feeds. Nothing of the known feed changes: that is `edit`. A feed
        that was given up becomes active again, with all its state (validators,
        seen-set) and its next fetch unchanged: a re-add is no reason to fetch early. So
        does a removed one, but it is as private as it is added now, and has the
        category and credentials that are given, or else those it had.
        """
        ...

    async def edit(
        self, feed_id: FeedId, change: FeedChange, reason: str, now: datetime
    ) -> tuple[StoredFeed, int]:
        """Change a feed, and end the subscriptions of those it shuts out.

        Both are one transaction. At another URL it is due, and polled again if it was
        given up; the former URL leads to it as well, unless another feed has it. Each
        of these subscribers is to be told ``reason``; how many have ended. Credentials
        make the feed private. Raises `NotFound`, also for one that was removed.
        """
        ...

    async def get(self, feed_id: FeedId) -> StoredFeed | None: ...

    async def several(self, ids: Collection[FeedId]) -> dict[FeedId, StoredFeed]:
        """Those of them that there are."""
        ...

    async def find(self, topic: str) -> StoredFeed | None:
        """The feed behind a topic URL in any spelling, removed ones included.

        If there are several: one of this very spelling, and of those the one with
        credentials; else one that is not removed and has no credentials. A feed that a
        subscription to the topic was made for is found, too.
        """
        ...

    async def parts(self, page: str, limit: int) -> list[StoredFeed]:
        """Feeds whose URLs select a part of the page, in any spelling, by id.

        Without those that were removed.
        """
        ...

    async def find_open(self, topic: str) -> StoredFeed | None:
        """Like `find`, as far as it has no credentials: what anybody gets."""
        ...

    async def find_readable(
        self, topic: str, viewer: AccountId | None
    ) -> StoredFeed | None:
        """Like `find`, as far as the viewer may read it.

        None: the operator, who reads all; `storage.records.NOBODY`: who reads what is
        public. A private feed opens to accounts that subscribe to it, one with
        credentials to nobody but the operator, one that was removed to nobody at all.
        """
        ...

    async def readable(
        self, asked: Collection[tuple[AccountId | None, FeedId]]
    ) -> frozenset[tuple[AccountId | None, FeedId]]:
        """Of pairs of a viewer and a feed those that the viewer may read, by the rule
        of `find_readable`."""
        ...

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> list[StoredFeed]:
        """Feeds by id; removed ones only if asked for by ``state``."""
        ...

    async def due(
        self,
        now: datetime,
        *,
        after: PlaceByPace,
        limit: int,
        shards: Shards = ALL_SHARDS,
    ) -> list[DueFeed]:
        """Active feeds with ``next_fetch`` <= now, the latest first, by their period.

        ``shards``: of those that the node owns, by the host they are fetched from. To
        own them is the claim, here and wherever shards are asked for: nobody else is
        given the same, and what a former owner still writes is refused
        (`MembershipStore`).

        That is by (-`storage.records.lateness`, next_fetch, id), and so for one pace by
        (next_fetch, id): of each pace those that follow the place in ``after``.
        """
        ...

    async def next_due(self, shards: Shards = ALL_SHARDS) -> datetime | None:
        """The earliest ``next_fetch`` of an active feed."""
        ...

    def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> Awaitable[None]:
        """Move ``next_fetch`` of many feeds (a host that is paced or throttled)."""
        ...

    async def hold_hosts(
        self, holds: Sequence[tuple[str, datetime]], now: datetime
    ) -> None:
        """Keep that hosts want no request before then. A later time is never replaced
        by an earlier one; those that are over by now are forgotten."""
        ...

    async def held_hosts(self, now: datetime) -> list[tuple[str, datetime]]:
        """Hosts that want no request yet, and until when, by name."""
        ...

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        """Spread the next fetches of feeds that are overdue; how many.

        Only feeds that were fetched before are moved, each within its own period and
        within ``longest``, evenly, and no fewer than ``per_second`` of them a second.
        """
        ...

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        """What fetches start from, in one read; unknown and removed ids left out."""
        ...

    async def polls(self, feed_id: FeedId) -> list[Poll]:
        """The last `storage.records.KEPT_POLLS` of a feed, the latest first; written by
        `LogStore.commit`."""
        ...

    async def postings(self, limit: int) -> list[Posting]:
        """Of up to ``limit`` feeds that have habits, spread evenly over all.

        Without feeds that were removed, or never posted.
        """
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
        """Set the URL at which the feed's publisher is asked about each new
        subscription; "" for none."""
        ...

    async def subscription_callback(self, feed_id: FeedId) -> str:
        """ "" if there is none."""
        ...

    async def purge_removed(self, before: datetime, limit: int) -> int:
        """Delete feeds removed before that time, ``limit`` at most, with all that is
        theirs, in short transactions; how many."""
        ...


class FeedStatisticsStore(Protocol):
    """A feed is due ten minutes after it was added, then when its statistics say."""

    async def due(
        self, now: datetime, limit: int, shards: Shards = ALL_SHARDS
    ) -> list[FeedId]:
        """Feeds that are not removed, the longest due first."""
        ...

    async def save(self, feed_statistics: Sequence[FeedStatisticsWrite]) -> None:
        """Store statistics; those of feeds that were purged meanwhile are left out."""
        ...

    async def get(self, feed_id: FeedId) -> FeedStatistics | None:
        """A feed's statistics; None before the first maintenance."""
        ...

    async def linking(self, site: str, feed_id: FeedId, most: int) -> int:
        """Other feeds with links to pages of a site, at most so many."""
        ...

    async def related(self, feed_id: FeedId, limit: int) -> list[FeedId]:
        """Other public feeds of the same site, by id."""
        ...

    async def of_site(self, site: str, limit: int) -> list[FeedId]:
        """Public feeds whose own page is ``site``, by id; none for "".

        See `hub.core.status.feed_stats.site_of`.
        """
        ...


class PushStore(Protocol):
    """Feeds that may be pushed, and callbacks that hubs of others know.

    What feeds offer, and how they are pushed, is written by `LogStore.commit`.
    """

    async def get(self, feed_id: FeedId) -> FeedPush | None: ...

    async def of(self, ids: Sequence[FeedId]) -> list[FeedPush]:
        """The pushes of those feeds that have any."""
        ...

    async def due(
        self,
        now: datetime,
        *,
        limit: int,
        without: Collection[FeedId] = (),
        shards: Shards = ALL_SHARDS,
    ) -> list[FeedPush]:
        """Pushes for which something may have to be done now, the longest due first;
        ``shards`` of feeds."""
        ...

    async def postpone(self, feed_id: FeedId, due: datetime | None) -> None:
        """Have a push not be due before then, unless something happens to it."""
        ...

    async def switch(self, *, is_on: bool) -> None:
        """Called at the start, with whether other hubs are to push at all.

        On: active feeds that were waiting for something to happen are due. Off: those
        that a hub may push are due, to end that.
        """
        ...

    async def ask(self, new: NewPushCallback) -> None:
        """A hub is about to be told this callback; counted."""
        ...

    async def fail(
        self,
        callback: PushCallback,
        what: PushCount,
        *,
        error: str,
        retry_at: datetime,
    ) -> None:
        """A request led to nothing: its callback goes, and the next one waits."""
        ...

    async def confirm(self, callback: PushCallback, until: datetime) -> None:
        """The hub has confirmed it: active until then, and what failed is forgotten."""
        ...

    async def leave(self, callback: PushCallback, until: datetime) -> None:
        """It is not wanted any more; until then the hub may ask whether that is so."""
        ...

    async def drop(self, callback: PushCallback) -> None:
        """Its time is over, or its end was confirmed."""
        ...

    async def forget(self, feed_id: FeedId) -> None:
        """The feed is not pushed any more, unless it offers something again."""
        ...

    async def find(self, token: str) -> PushCallback | None:
        """The push of the callback whose path ends in that token."""
        ...

    async def hint(self, callback: PushCallback, at: datetime) -> None:
        """The hub says that there is news, or what; counted as delivered. The latest
        hint that no fetch has heeded yet stays."""
        ...

    async def hinted(self, *, after: FeedId, limit: int) -> list[FeedId]:
        """Feeds with hints that no fetch has heeded yet, by id."""
        ...

    async def count(self, hub: str, what: PushCount) -> None: ...

    async def hubs(self, limit: int) -> list[PushHub]:
        """The hubs with the most confirmed subscriptions; before them "", with the sums
        over all hubs."""
        ...


class SiteStore(Protocol):
    """What is known of a site's pages. Written by `LogStore.commit`, with entries."""

    async def state(self, feed_id: FeedId) -> bytes:
        """The `SiteWrite.state` that was written last; b"" before the first step."""
        ...

    async def known(self, feed_id: FeedId, keys: Sequence[str]) -> list[StoredSitePage]:
        """Pages with these keys, in any order; unknown ones are left out."""
        ...

    async def unlisted(
        self, feed_id: FeedId, walk: int, *, after: str, limit: int
    ) -> list[StoredSitePage]:
        """Pages that are not deleted and were last listed before a walk.

        In a fixed order; ``after`` is the key of the last one of the page before, or
        "".
        """
        ...

    async def tally(self, feed_id: FeedId, walk: int) -> SiteTally:
        """Counts of a site's pages, without those that are deleted."""
        ...
