"""Feeds: what is polled, what maintenance finds out, hubs that push, and large
sites."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from storage.records import (
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
    SiteTally,
    StoredFeed,
    StoredSitePage,
)


class FeedStore(Protocol):
    """Feeds and the topics that name them."""

    async def add(self, feed: NewFeed, now: datetime) -> tuple[StoredFeed, bool]:
        """Register a feed, due at once. True: it is new.

        A known URL returns the known feed. So does another spelling of it (see
        `protocols.urls.resource_url`), unless the two differ in their credentials: then
        they are two feeds. The known feed is not changed: `edit` does that. A feed that
        was given up becomes active again, with all its state (validators, seen-set) and
        its next fetch unchanged: adding it again is no reason to fetch early. A removed
        feed also becomes active again, but is private only if it is added as private,
        and takes the given category and credentials, or else keeps those it had.
        """
        ...

    async def edit(
        self, feed_id: FeedId, change: FeedChange, reason: str, now: datetime
    ) -> tuple[StoredFeed, int]:
        """Change a feed, and end the subscriptions of accounts that may no longer read
        it.

        Both are one transaction. With another URL the feed is due, and polled again if
        it was given up; the former URL still leads to it, unless another feed has that
        URL. Each subscriber whose subscription ends is to be told ``reason``; their
        number is returned. Credentials make the feed private. Raises `NotFound`, also
        for a removed feed.
        """
        ...

    async def get(self, feed_id: FeedId) -> StoredFeed | None: ...

    async def several(self, ids: Collection[FeedId]) -> dict[FeedId, StoredFeed]:
        """The feeds with these ids; unknown ids are left out."""
        ...

    async def find(self, topic: str) -> StoredFeed | None:
        """The feed behind a topic URL in any spelling, removed ones included.

        If there are several: one of exactly this spelling, and of those the one with
        credentials; else one that is not removed and has no credentials. A feed that
        was created for a subscription to the topic is found, too.
        """
        ...

    async def parts(self, page: str, limit: int) -> list[StoredFeed]:
        """Feeds whose URLs select a part of the page, in any spelling, by id.

        Removed feeds are left out.
        """
        ...

    async def find_open(self, topic: str) -> StoredFeed | None:
        """Like `find`, but only a feed without credentials: what anybody may get."""
        ...

    async def find_readable(
        self, topic: str, viewer: AccountId | None
    ) -> StoredFeed | None:
        """Like `find`, but only a feed that the viewer may read.

        A viewer of None is the operator, who reads everything; `storage.records.NOBODY`
        is anyone, who reads what is public. A private feed is readable by accounts that
        subscribe to it, one with credentials only by the operator, and a removed one by
        nobody at all.
        """
        ...

    async def readable(
        self, asked: Collection[tuple[AccountId | None, FeedId]]
    ) -> frozenset[tuple[AccountId | None, FeedId]]:
        """The given pairs of a viewer and a feed for which the viewer may read the
        feed, by the rule of `find_readable`."""
        ...

    async def page(
        self, *, after: FeedId, limit: int, state: FeedState | None = None
    ) -> list[StoredFeed]:
        """Feeds by id; removed ones only if ``state`` asks for them."""
        ...

    async def due(
        self,
        now: datetime,
        *,
        after: PlaceByPace,
        limit: int,
    ) -> list[DueFeed]:
        """Active feeds with ``next_fetch`` <= now, the latest first, relative to their
        period.

        Of the feeds whose shards this node owns (`MembershipStore`), by the host that
        they are fetched from.

        The order is (-`storage.records.lateness`, next_fetch, id), which within one
        pace is (next_fetch, id): of each pace, the feeds that follow its place in
        ``after`` are returned.
        """
        ...

    async def next_due(self) -> datetime | None:
        """The earliest ``next_fetch`` of an active feed."""
        ...

    def defer(self, moves: Sequence[tuple[FeedId, datetime]]) -> Awaitable[None]:
        """Move ``next_fetch`` of many feeds (because a host is paced or throttled)."""
        ...

    async def hold_hosts(
        self, holds: Sequence[tuple[str, datetime]], now: datetime
    ) -> None:
        """Store that hosts want no request before these times. A later time is never
        replaced by an earlier one; times that are past by ``now`` are deleted."""
        ...

    async def held_hosts(self, now: datetime) -> list[tuple[str, datetime]]:
        """Hosts that want no request yet, and until when, by name."""
        ...

    async def spread(
        self, now: datetime, *, longest: timedelta, per_second: float
    ) -> int:
        """Spread the next fetches of overdue feeds over time; returns how many were
        moved.

        Only feeds that were fetched before are moved, each within its own period and
        within ``longest``, evenly, with at least ``per_second`` of them a second.
        """
        ...

    async def targets(self, ids: Sequence[FeedId]) -> list[FetchTarget]:
        """What fetches start from, in one read; unknown and removed ids are left
        out."""
        ...

    async def polls(self, feed_id: FeedId) -> list[Poll]:
        """The polls of a feed that are kept (`storage.records.kept_polls`), the latest
        first; `LogStore.commit` writes them."""
        ...

    async def last_failures(self, ids: Sequence[FeedId]) -> Mapping[FeedId, Poll]:
        """Of each of these feeds the last poll that failed, of those that are kept."""
        ...

    async def postings(self, limit: int) -> list[Posting]:
        """The posting habits of up to ``limit`` feeds, spread evenly over all feeds.

        Feeds that were removed, or never posted, are left out.
        """
        ...

    async def hidden(self, ids: Sequence[FeedId]) -> HiddenFeeds:
        """Which of these feeds are not visible to everybody; unknown ids count as
        removed."""
        ...

    async def set_state(
        self,
        feed_id: FeedId,
        state: FeedState,
        now: datetime,
        *,
        next_fetch: datetime | None = None,
    ) -> StoredFeed:
        """Pause, resume, stop or remove a feed or a track query. Raises `NotFound`.

        Removing ends no subscription by itself: see `SubscriptionStore.end_all`.
        """
        ...

    async def set_publish_secret(self, feed_id: FeedId, secret: str) -> None:
        """Set the secret the feed's publisher signs with; "" for none. It is kept
        encrypted."""
        ...

    async def publish_secret(self, feed_id: FeedId) -> str:
        """The secret the feed's publisher signs with; "" if there is none."""
        ...

    async def set_subscription_callback(self, feed_id: FeedId, url: str) -> None:
        """Set the URL at which the feed's publisher is asked about each new
        subscription; "" for none."""
        ...

    async def subscription_callback(self, feed_id: FeedId) -> str:
        """The URL that is asked about each new subscription; "" if there is none."""
        ...

    async def purge_removed(self, before: datetime, limit: int) -> int:
        """Delete feeds removed before that time, ``limit`` at most, and everything that
        belongs to them, in short transactions; returns how many."""
        ...


class FeedStatisticsStore(Protocol):
    """Statistics of feeds. The first are due ten minutes after the feed was added, the
    next when the statistics say."""

    async def due(self, now: datetime, limit: int) -> list[FeedId]:
        """The node's feeds that are not removed and whose statistics are due and not
        claimed, the longest due first."""
        ...

    async def save(
        self, feed_statistics: Sequence[FeedStatisticsWrite], *, lease_id: int
    ) -> frozenset[FeedId]:
        """Store statistics, and return of which feeds: of those that are held under
        this lease. Feeds that were purged meanwhile are skipped."""
        ...

    async def get(self, feed_id: FeedId) -> FeedStatistics | None:
        """A feed's statistics; None before the first maintenance."""
        ...

    async def linking(self, site: str, feed_id: FeedId, most: int) -> int:
        """How many other feeds link to pages of a site, at most ``most``."""
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
    """Feeds that may be pushed, and the callbacks given to other hubs.

    What feeds offer, and how they are pushed, is written by `LogStore.commit`.

    Steps of the subscriber name the lease under which it holds the push
    (`ClaimStore`). They return whether that is so; if not, nothing has changed. What a
    hub itself says, to whichever node, is stored without a claim: ``lease_id`` is None.
    A claim lasts until it is released.
    """

    async def get(self, feed_id: FeedId) -> FeedPush | None: ...

    async def of(self, ids: Sequence[FeedId]) -> list[FeedPush]:
        """The pushes of these feeds; feeds without one are left out."""
        ...

    async def due(
        self,
        now: datetime,
        *,
        limit: int,
        without: Collection[FeedId] = (),
    ) -> list[FeedPush]:
        """Pushes of the node's feeds for which something may have to be done now, the
        longest due first; without those that are claimed."""
        ...

    async def postpone(
        self, feed_id: FeedId, due: datetime | None, *, lease_id: int
    ) -> bool:
        """Make a push due no earlier than ``due``, or never if None, unless something
        happens to it."""
        ...

    async def named_hubs(self) -> list[str]:
        """All hubs that feeds name, each once."""
        ...

    async def switch(self, *, is_on: bool, unused: Collection[str] = ()) -> None:
        """Called at the start, with whether other hubs are to push at all, and those of
        `named_hubs` that are not to.

        Active feeds whose push was waiting for something to happen are due. Of hubs
        that are not to push, only those are due that the hub may push, so that this can
        be ended.
        """
        ...

    async def ask(self, new: NewPushCallback, *, lease_id: int) -> bool:
        """Store the callback before a hub is told of it, and count the request."""
        ...

    async def fail(
        self,
        callback: PushCallback,
        what: PushCount,
        *,
        error: str,
        retry_at: datetime,
        lease_id: int | None = None,
    ) -> bool:
        """A request failed: its callback is dropped, and the next one waits until
        ``retry_at``."""
        ...

    async def confirm(
        self, callback: PushCallback, until: datetime, *, lease_id: int | None = None
    ) -> bool:
        """The hub has confirmed the callback: it is active until then, and earlier
        failures are cleared."""
        ...

    async def leave(
        self, callback: PushCallback, until: datetime, *, lease_id: int
    ) -> bool:
        """The callback is no longer wanted; until then the hub may ask whether that is
        true."""
        ...

    async def drop(
        self, callback: PushCallback, *, lease_id: int | None = None
    ) -> bool:
        """Delete the callback: its time is over, or the hub has confirmed its end."""
        ...

    async def forget(self, feed_id: FeedId, *, lease_id: int) -> bool:
        """Delete the feed's push; it gets one again only if the feed offers a hub
        again."""
        ...

    async def find(self, token: str) -> PushCallback | None:
        """The push whose callback has a path that ends in this token."""
        ...

    async def hint(self, callback: PushCallback, at: datetime) -> None:
        """The hub says that there is news, or sends it; counted as delivered. The
        latest hint that no fetch has taken up yet is kept."""
        ...

    async def hinted(self, *, after: FeedId, limit: int) -> list[FeedId]:
        """Feeds with hints that no fetch has taken up yet, by id."""
        ...

    async def count(self, hub: str, what: PushCount) -> None: ...

    async def hubs(self, limit: int) -> list[PushHub]:
        """The hubs with the most confirmed subscriptions; the first is "", with the
        sums over all hubs."""
        ...


class SiteStore(Protocol):
    """What is known of a site's pages. `LogStore.commit` writes it together with
    entries."""

    async def state(self, feed_id: FeedId) -> bytes:
        """The `SiteWrite.state` that was written last; b"" before the first step."""
        ...

    async def known(self, feed_id: FeedId, keys: Sequence[str]) -> list[StoredSitePage]:
        """Pages with these keys, in any order; unknown ones are left out."""
        ...

    async def unlisted(
        self, feed_id: FeedId, walk: int, *, after: str, limit: int
    ) -> list[StoredSitePage]:
        """Pages that are not deleted and were last listed before the walk of this
        number.

        In a fixed order; ``after`` is the key of the last page already returned, or "".
        """
        ...

    async def tally(self, feed_id: FeedId, walk: int) -> SiteTally:
        """Counts of a site's pages; deleted pages are not counted."""
        ...
