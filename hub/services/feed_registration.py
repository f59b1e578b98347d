"""Feeds: discover, add, edit, look at, fetch now, pause, resume, remove."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from hub.core.fetched import Fetched
from hub.core.schedule.poll_period import Plan
from hub.ingest.fetcher import origin
from hub.publishing.local_topics import LocalTopics
from hub.runtime.clock import Clock
from hub.services.feed_requests import (
    LONGEST_WAIT,
    AddedFeed,
    AddFeed,
    EditedFeed,
    EditFeed,
    ImportedFeed,
    ImportOutcome,
    RefreshedFeed,
    consequences,
)
from hub.services.service_errors import Conflict, ServiceError, SeveralFeeds
from hub.services.topic_addresses import (
    AddressCheck,
    TrackTopics,
    check_path,
    read_topic,
)
from hub.sites.feed_finder import LookupKind, LookupResult
from protocols.model import FeedFormat
from protocols.protocol_errors import InvalidValue
from protocols.text import collapse
from protocols.websub.callbacks import read_callback
from storage.contract import FeedStore, Storage
from storage.errors import NotFound
from storage.records import (
    FEED_REMOVED,
    Credentials,
    FeedChange,
    FeedId,
    FeedState,
    NewFeed,
    PollReason,
    StoredFeed,
    SubscriberGroup,
)

ADDED_AT_ONCE = 64
"""Feeds looked up at the same time when many are added together; they share a
commit."""
MOST_FETCHES_UNDER_WAY = 3
"""Fetches under way that are waited for, one after another, while a feed's URL
changes."""
SITE_FORMATS = frozenset((FeedFormat.OPENFEEDER, FeedFormat.SCP))
END_PAGE = 500
"""Subscriptions ended per transaction when their feed is removed."""


class FeedPoller(Protocol):
    """The part of `hub.ingest.poller.Poller` that the use cases need."""

    async def fetch_now(
        self,
        feed_id: FeedId,
        reason: PollReason = PollReason.ASKED_FOR,
        *,
        only_first: bool = False,
    ) -> StoredFeed:
        """Fetch a feed, or join its fetch under way; returns the feed as it is
        afterwards. ``only_first``: not if it has been fetched before."""
        ...

    def explain(self, feed: StoredFeed, *, is_pushed: bool = False) -> Plan:
        """The period as it was planned after the last fetch, term by term."""
        ...

    @property
    def under_way(self) -> Set[FeedId]:
        """The feeds that are being visited."""
        ...

    def wake(self) -> None:
        """Look for due feeds at once: some became due sooner than the poller knows."""
        ...


class SourceFinder(Protocol):
    """The part of `hub.sites.feed_finder.FeedFinder` that the use cases need."""

    async def look(
        self,
        url: str,
        credentials: Credentials | None = None,
        kind: LookupKind = LookupKind.ANY,
    ) -> LookupResult: ...


class ResponseProvider(Protocol):
    """The part of `hub.ingest.prefetched_responses.PrefetchedResponses` that is needed
    here."""

    def provide(
        self, url: str, fetched: Fetched | None
    ) -> AbstractContextManager[None]: ...


class FeedService:
    def __init__(
        self,
        storage: Storage,
        poller: FeedPoller,
        addresses: AddressCheck,
        clock: Clock,
        tracks: TrackTopics,
        local_topics: LocalTopics | None = None,
        finder: SourceFinder | None = None,
        prefetched: ResponseProvider | None = None,
    ) -> None:
        """Without ``finder`` nothing is discovered; without ``prefetched`` a document
        that was looked at is fetched once more."""
        self._finder = finder
        self._prefetched = prefetched
        self._local_topics = local_topics or LocalTopics()
        self._storage = storage
        self._poller = poller
        self._addresses = addresses
        self._clock = clock
        self._tracks = tracks

    async def add(self, request: AddFeed, *, field: str = "url") -> AddedFeed:
        """Register a feed and wait a little for its first fetch.

        However the fetch ends, the feed stays registered, with the outcome as its
        status. Raises `InvalidValue` and `AddressRefused`, which name the ``field``;
        and `SeveralFeeds` if ``discover`` finds several feeds, none of which is clearly
        meant.
        """
        topic = read_topic(field, request.url)
        if self._tracks.names_query(topic.url):
            raise InvalidValue(field, "a feed, not a track query; subscribe to that")
        check_path(field, topic.url)
        request.check()
        if self._local_topics.owns(topic.url):
            return AddedFeed(feed=await self._own_feed(field, topic.url), is_new=False)
        callback = await self._checked_publisher(request.subscription_callback)
        request = replace(request, subscription_callback=callback)
        await self._addresses.check_topic(field, topic.url)
        credentials = request.credentials or topic.credentials
        if not request.discover or await self.find(topic.url) is not None:
            return await self._add(topic.url, credentials, request)
        return await self._add_found(field, topic.url, credentials, request)

    async def add_all(
        self,
        requests: Sequence[AddFeed],
        *,
        is_dry: bool = False,
        keeps_known: bool = False,
    ) -> list[ImportedFeed]:
        """Register many feeds, some at once; returns the outcome of each, in their
        order.

        A feed that cannot be added does not stop the others. ``is_dry``: only say what
        would happen. ``keeps_known``: a known feed is no conflict, unless it is public
        and is requested as private. Raises `StorageError`.
        """
        turns = asyncio.Semaphore(ADDED_AT_ONCE)

        async def add(request: AddFeed) -> ImportedFeed:
            async with turns:
                return await self._import(request, is_dry, keeps_known)

        return await asyncio.gather(*map(add, requests))

    async def _import(
        self, request: AddFeed, is_dry: bool, keeps_known: bool
    ) -> ImportedFeed:
        url = request.url
        known = await self.find(url)
        is_settled = known is not None and (known.private or not request.private)
        if is_settled and (keeps_known or is_dry):
            return ImportedFeed(url=url, outcome=ImportOutcome.KNOWN, feed=known)
        try:
            if is_dry and known is None:
                topic = read_topic("url", url)
                await self._addresses.check_topic("url", topic.url)
                return ImportedFeed(url=url, outcome=ImportOutcome.ADDABLE)
            added = await self.add(request)
        except SeveralFeeds as several:
            return ImportedFeed(
                url=url, outcome=ImportOutcome.UNDECIDED, feeds=several.feeds
            )
        except (InvalidValue, ServiceError) as error:
            return ImportedFeed(
                url=url, outcome=ImportOutcome.REFUSED, reason=str(error)
            )
        outcome = ImportOutcome.ADDED if added.is_new else ImportOutcome.KNOWN
        return ImportedFeed(url=url, outcome=outcome, feed=added.feed)

    async def _checked_publisher(self, url: str | None) -> str | None:
        """The callback that is asked about subscriptions, once its address was
        checked."""
        if not url:
            return url
        field = "subscription_callback"
        callback = read_callback(url, field)
        await self._addresses.check_callback(field, callback)
        return callback

    async def _add_found(
        self, field: str, url: str, credentials: Credentials | None, request: AddFeed
    ) -> AddedFeed:
        result = await self._look_at(url, credentials, request.kind)
        check_kind(field, request.kind, result)
        if result.feed is None and result.choice.feeds:
            return await self._add_chosen(field, url, credentials, request, result)
        if credentials is not None:  # their document answers no other feed
            return await self._add(url, credentials, request)
        with self._answered_by(url, result):
            return await self._add(url, None, request)

    async def _add_chosen(
        self,
        field: str,
        url: str,
        credentials: Credentials | None,
        request: AddFeed,
        result: LookupResult,
    ) -> AddedFeed:
        if result.choice.best is None:
            raise SeveralFeeds(url, result.choice.feeds)
        best = replace(request, url=result.choice.best.href, discover=False)
        given = credentials if origin(best.url) == origin(url) else None
        with self._best_answered_by(result, given):
            return await self.add(replace(best, credentials=given), field=field)

    async def discover(
        self, url: str, *, kind: LookupKind = LookupKind.ANY
    ) -> LookupResult:
        """What is at a URL, or named there. No feed is registered.

        Raises `InvalidValue` and `AddressRefused`.
        """
        topic = read_topic("url", url)
        await self._addresses.check_topic("url", topic.url)
        return await self._look_at(topic.url, topic.credentials, kind)

    async def _look_at(
        self, url: str, credentials: Credentials | None, kind: LookupKind
    ) -> LookupResult:
        if self._finder is None:
            return LookupResult()
        return await self._finder.look(url, credentials, kind)

    def _answered_by(
        self, url: str, result: LookupResult
    ) -> AbstractContextManager[None]:
        """While entered, the first fetch of the URL is answered with the document
        found."""
        if self._prefetched is None:
            return nullcontext()
        return self._prefetched.provide(url, result.fetched)

    def _best_answered_by(
        self, result: LookupResult, credentials: Credentials | None
    ) -> AbstractContextManager[None]:
        """The same for the best of what was found. Not with credentials: a document
        that they open must not answer the fetch of another feed."""
        best = result.choice.best
        if self._prefetched is None or best is None or credentials is not None:
            return nullcontext()
        return self._prefetched.provide(best.href, result.at_best)

    async def _add(
        self, url: str, credentials: Credentials | None, request: AddFeed
    ) -> AddedFeed:
        before = await self._storage.feeds.find(url)
        feed, is_new = await self._storage.feeds.add(
            NewFeed(
                url=url,
                private=request.private or credentials is not None,
                as_anybody=request.as_anybody,
                category=request.category,
                title=collapse(request.title),
                description=collapse(request.description),
                credentials=credentials,
            ),
            self._clock.now(),
        )
        if is_new or (before is not None and before.state is FeedState.REMOVED):
            await self._set_publisher(
                feed.id, request.publish_secret or None, request.subscription_callback
            )
        elif request.is_exact:
            await self._refuse_others(feed, credentials, request)
        self._poller.wake()
        if feed.polling.last_fetch is None:
            feed = await self._first_fetch(feed, request.wait)
        return AddedFeed(feed=feed, is_new=is_new)

    async def _set_publisher(
        self, feed_id: FeedId, secret: str | None, callback: str | None
    ) -> None:
        """Store the secret that a publisher signs with, and the callback that is asked
        about subscriptions. None: unchanged."""
        if callback is not None:
            await self._storage.feeds.set_subscription_callback(feed_id, callback)
        if secret is not None:
            await self._storage.feeds.set_publish_secret(feed_id, secret)

    async def _refuse_others(
        self, feed: StoredFeed, credentials: Credentials | None, request: AddFeed
    ) -> None:
        """Refuse a request for a known feed that differs from it: adding never changes
        a feed.

        Raises `Conflict`: an answer that the feed exists would be taken to mean that it
        is as requested.
        """
        feeds = self._storage.feeds
        targets = await feeds.targets([feed.id]) if credentials is not None else []
        secret, callback = request.publish_secret, request.subscription_callback
        others = {
            "private": request.private and not feed.private,
            "category": request.category not in ("", feed.category),
            "credentials": any(each.credentials != credentials for each in targets),
            "publish_secret": secret not in ("", await feeds.publish_secret(feed.id)),
            "subscription_callback": callback
            not in (None, await feeds.subscription_callback(feed.id)),
        }
        if named := [name for name, is_other in others.items() if is_other]:
            raise Conflict(
                f"feed {feed.id} exists, and adding does not change its"
                f" {', '.join(named)}: use `fanfare feeds edit {feed.id}`, or"
                f" PATCH /api/feeds/{feed.id}"
            )

    async def edit(self, feed_id: FeedId, request: EditFeed) -> EditedFeed:
        """Change a feed, and say what follows from that.

        With other credentials it is fetched again at once. Raises `NotFound`,
        `Conflict`, `InvalidValue` and `AddressRefused`.
        """
        request.check()
        before = await existing_feed(self._storage.feeds, feed_id)
        _check_pollable(before)
        if request.url is not None:
            request = await self._checked_move(before, request, request.url)
            if request.url == before.url:  # it stays as it is
                request = replace(request, url=None)
        change = request.change_of(before)
        callback = await self._checked_publisher(request.subscription_callback)
        # An interruption here has changed nothing yet, and the request is made again.
        # The change itself ends subscriptions made meanwhile, in a short transaction.
        ended = 0
        if change.shuts_out is not None:
            ended = await self._end_all(feed_id, change.shuts_out)
        feed, last = await self._store_edit(feed_id, change)
        await self._set_publisher(feed_id, request.publish_secret, callback)
        follows = consequences(before, feed, ended + last)
        if request.own_period is not None:
            feed = await self._follow_period(feed)
        is_other = request.credentials is not None or request.url is not None
        if is_other and feed.state is FeedState.ACTIVE:
            feed = await self._wait_for_fetch(feed, LONGEST_WAIT)
        return EditedFeed(feed=feed, follows=follows, ended=ended + last)

    async def _checked_move(
        self, feed: StoredFeed, request: EditFeed, url: str
    ) -> EditFeed:
        """The request with its URL as it is stored, and with the credentials from the
        URL.

        Credentials are for one origin. Raises `InvalidValue`, `AddressRefused` and
        `Conflict`.
        """
        topic = read_topic("url", url)
        if self._tracks.names_query(topic.url):
            raise InvalidValue("url", "a feed, not a track query; subscribe to that")
        check_path("url", topic.url)
        if self._local_topics.owns(topic.url):
            raise InvalidValue("url", "a URL outside this hub")
        if feed.format in SITE_FORMATS:
            raise InvalidValue(
                "url", "no URL, because the feed is a site; add the new site instead"
            )
        await self._addresses.check_topic("url", topic.url)
        request = replace(
            request, url=topic.url, credentials=request.credentials or topic.credentials
        )
        is_elsewhere = origin(topic.url) != origin(feed.url)
        if feed.has_credentials and is_elsewhere and request.credentials is None:
            expected = "a URL of the same origin, or new credentials with it"
            raise InvalidValue("url", expected)
        known = await self._storage.feeds.find(topic.url)
        is_free = known is None or known.state is FeedState.REMOVED
        if known is not None and known.id != feed.id and not is_free:
            raise Conflict(f"feed {known.id} has this URL already")
        return request

    async def _store_edit(
        self, feed_id: FeedId, change: FeedChange
    ) -> tuple[StoredFeed, int]:
        """Store an edit; returns the feed, and how many subscriptions ended. A fetch
        under way uses the former URL, and what it stores is taken back."""
        ended = 0
        for _ in range(MOST_FETCHES_UNDER_WAY):
            feed, last = await self._storage.feeds.edit(
                feed_id, change, FEED_REMOVED, self._clock.now()
            )
            ended += last
            if change.url is None or feed_id not in self._poller.under_way:
                break
            await self._wait_for_fetch(feed, LONGEST_WAIT)
        return feed, ended

    async def _follow_period(self, feed: StoredFeed) -> StoredFeed:
        """Plan a feed again if its period was changed after it was planned."""
        if feed.polling.last_fetch is None or feed.state is not FeedState.ACTIVE:
            return feed
        planned = self._poller.explain(feed).next_fetch
        due = max(planned, self._clock.now())
        feed = await self._storage.feeds.set_state(
            feed.id, feed.state, self._clock.now(), next_fetch=due
        )
        self._poller.wake()
        return feed

    async def _end_all(self, feed_id: FeedId, whose: SubscriberGroup) -> int:
        ended, now = 0, self._clock.now()
        while True:
            page = await self._storage.subscriptions.end_all(
                feed_id, FEED_REMOVED, now, END_PAGE, whose
            )
            ended += page
            if page < END_PAGE:
                return ended

    async def find(self, url: str) -> StoredFeed | None:
        """The feed behind a topic URL in any spelling; None if unknown or removed."""
        try:
            topic = read_topic("url", url)
            if self._tracks.names_query(topic.url):
                return await self._tracks.find(topic.url)
        except InvalidValue:
            return None
        feed = await self._local_topics.find(self._storage.feeds, topic.url)
        return None if feed is None or feed.state is FeedState.REMOVED else feed

    async def find_open(self, url: str) -> StoredFeed | None:
        """Like `find`, among the feeds without credentials."""
        if self._local_topics.owns(url):
            return await self._local_topics.find_public(self._storage.feeds, url)
        feed = await self._storage.feeds.find_open(url)
        return None if feed is None or feed.state is FeedState.REMOVED else feed

    async def _own_feed(self, field: str, url: str) -> StoredFeed:
        """The feed that a page of this hub shows; the page itself is never polled.
        Raises `InvalidValue`."""
        feed = await self._local_topics.find_public(self._storage.feeds, url)
        if feed is None:
            raise InvalidValue(field, "a URL outside this hub, or one of its topics")
        return feed

    async def fetch(
        self, feed_id: FeedId, reason: PollReason = PollReason.ASKED_FOR
    ) -> RefreshedFeed:
        """Fetch a feed now; returns it as it is afterwards, or after the longest wait.
        ``reason``: of the poll.

        Raises `NotFound`, and `Conflict` for a feed that was removed or is a track
        query.
        """
        feed = await existing_feed(self._storage.feeds, feed_id)
        _check_pollable(feed)
        fresh = await self._wait_for_fetch(feed, LONGEST_WAIT, reason)
        is_fetched = fresh.polling.last_fetch != feed.polling.last_fetch
        return RefreshedFeed(feed=fresh, is_fetched=is_fetched)

    async def fetched(self, feed: StoredFeed) -> StoredFeed:
        """The feed after its first fetch, for which it waits up to `LONGEST_WAIT`
        seconds.

        Otherwise a feed that was just added would be read without entries.
        """
        if feed.polling.last_fetch is not None:
            return feed
        return await self._first_fetch(feed, LONGEST_WAIT)

    async def pause(self, feed_id: FeedId) -> StoredFeed:
        return await self._change(feed_id, FeedState.PAUSED)

    async def resume(self, feed_id: FeedId) -> StoredFeed:
        """Poll a feed again when it is due, even one that was given up."""
        feed = await self._change(feed_id, FeedState.ACTIVE)
        self._poller.wake()
        return feed

    async def remove(self, feed_id: FeedId) -> int:
        """Remove a feed and end its subscriptions; returns how many were ended.

        If this is interrupted, housekeeping finishes it.
        """
        now = self._clock.now()
        await self._storage.feeds.set_state(feed_id, FeedState.REMOVED, now)
        return await self._end_all(feed_id, SubscriberGroup.ALL)

    async def _change(self, feed_id: FeedId, state: FeedState) -> StoredFeed:
        feed = await existing_feed(self._storage.feeds, feed_id)
        _check_pollable(feed)
        return await self._storage.feeds.set_state(feed_id, state, self._clock.now())

    async def _first_fetch(self, feed: StoredFeed, wait: float) -> StoredFeed:
        if wait <= 0 or feed.state is not FeedState.ACTIVE:
            return feed
        seconds = min(wait, LONGEST_WAIT)
        return await self._wait_for_fetch(feed, seconds, only_first=True)

    async def _wait_for_fetch(
        self,
        feed: StoredFeed,
        seconds: float,
        reason: PollReason = PollReason.ASKED_FOR,
        *,
        only_first: bool = False,
    ) -> StoredFeed:
        try:
            async with asyncio.timeout(seconds):
                return await self._poller.fetch_now(
                    feed.id, reason, only_first=only_first
                )
        except TimeoutError:
            return await self._storage.feeds.get(feed.id) or feed


async def existing_feed(feeds: FeedStore, feed_id: FeedId) -> StoredFeed:
    """The feed, even if it was removed. Raises `NotFound`."""
    feed = await feeds.get(feed_id)
    if feed is None:
        raise NotFound("feed", feed_id)
    return feed


def _check_pollable(feed: StoredFeed) -> None:
    if feed.state is FeedState.REMOVED:
        raise Conflict(f"feed {feed.id} was removed; add it again first")
    if feed.state is FeedState.TRACK:
        raise Conflict(f"feed {feed.id} is a track query, which is never fetched")
    if feed.state is FeedState.EVENTS:
        raise Conflict(f"feed {feed.id} stands for events, which are never fetched")


def check_kind(field: str, kind: LookupKind, result: LookupResult) -> None:
    """Raise `InvalidValue`, which names the ``field``, if another kind of source was
    found than the required one."""
    site = result.site.format if result.site else None
    found = result.feed.format if result.feed else site
    if not kind.takes_feeds and (found is None or not kind.takes(found)):
        raise InvalidValue(field, f"the address of a site that offers {kind}")
