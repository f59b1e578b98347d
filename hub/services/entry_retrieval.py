"""Stored entries read back: of a topic, or of all topics of a callback, newest first.

Public feeds can be read by everybody; private ones by the accounts that subscribe to
them, and by the operator: `storage.contract.FeedStore.find_readable`. A replay sends
the last entries of a topic to a callback once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Protocol

import structlog

from hub.core.fetched import part_body
from hub.core.status.feed_status import shown_status, track_status
from hub.delivery.notifications import NotificationBody
from hub.publishing.local_topics import LocalTopics
from hub.runtime.offloading import run_in_thread
from hub.services.account_subscriptions import is_null_device
from hub.services.entry_notifications import CollectedEntries, render
from hub.services.feed_registration import FeedService
from hub.services.feed_requests import LONGEST_WAIT
from hub.services.service_errors import NotReadable, TooManyWaiting
from hub.services.token_authentication import Principal
from hub.services.topic_addresses import TrackTopics, read_topic
from protocols.identity import key_of_id, key_of_link
from protocols.live.live_messages import BodyFormat
from protocols.model import Entry, FeedFormat, Status
from protocols.protocol_errors import InvalidValue
from storage.contract import Storage
from storage.errors import StorageError
from storage.packing import unpack, unpack_bytes, unpacked_size
from storage.records import (
    EntryId,
    EntryPlace,
    FeedId,
    FeedState,
    Format,
    ListedSubscription,
    ListingSearch,
    StoredBody,
    StoredEntry,
    StoredFeed,
    Subscription,
    SubscriptionState,
    TrackMatch,
)
from storage.subscription_filter import keeps_document

FETCHED_AT_ONCE = 8
MOST_FEEDS = 199
"""The most feeds of one callback: Superfeedr took "less than 200"."""
SEARCHED_FOR_ID = 200
"""Entries that are searched for an id that is not an entry's key."""
MATCHED_RECORDS = 200
"""How many of its last records are read of each track query."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Reach:
    """Where the entries of a selection are: in feeds, or among those track queries
    found."""

    feeds: list[FeedId]
    matches: Sequence[TrackMatch]

    @property
    def found(self) -> list[EntryId]:
        return list(dict.fromkeys(each.entry_id for each in self.matches))

    @property
    def all_feeds(self) -> list[FeedId]:
        return [*self.feeds, *dict.fromkeys(each.source for each in self.matches)]


class RetrievalService:
    def __init__(
        self,
        storage: Storage,
        feeds: FeedService,
        tracks: TrackTopics,
        local_topics: LocalTopics,
        hub_url: str,
        *,
        tells_unlisted: bool = True,
    ) -> None:
        """``tells_unlisted``: subscribers also get entries that are kept out of
        lists."""
        self._storage = storage
        self._feeds = feeds
        self._tracks = tracks
        self._local_topics = local_topics
        self._hub_url = hub_url
        self._tells_unlisted = tells_unlisted

    async def select(self, principal: Principal, wanted: RetrievalRequest) -> Selection:
        """The topics that a request means and that the principal may read.

        A feed that was never fetched is fetched first, if that does not take too long.
        Raises `InvalidValue` and `NotReadable`.
        """
        if wanted.topic:
            return await self._select_topic(principal, wanted.topic)
        if not wanted.callback and wanted.search is None:
            raise InvalidValue("hub.topic", "hub.topic or hub.callback")
        found = await self._subscriptions(principal, wanted)
        if not found:
            raise NotReadable("hub.callback", "the account has no such subscription")
        if len(found) > MOST_FEEDS:
            raise InvalidValue(
                "hub.callback", f"a callback of at most {MOST_FEEDS} feeds"
            )
        await self._fetch_first([each.feed.id for each in found])
        return Selection(
            name=wanted.callback or found[0].subscription.callback,
            topics=tuple(_selected(each.subscription, each.feed) for each in found),
            is_merged=True,
            has_unlisted=self._tells_unlisted,
        )

    async def collect(self, selection: Selection, page: EntryRange) -> CollectedEntries:
        """The entries of a selection. Raises `InvalidValue` for ids that are not among
        them."""
        reach = await self._reach(selection)
        entries = await self._storage.entries.newest(
            reach.feeds,
            limit=page.count,
            before=await self._place(reach, "before", page.before),
            after=await self._place(reach, "after", page.after),
            also=reach.found,
            listed_only=not selection.has_unlisted,
        )
        named = reach.feeds
        if selection.is_merged:
            named = list(dict.fromkeys(each.feed_id for each in entries))
        return CollectedEntries(
            topic=selection.name,
            hub=self._hub_url,
            entries=entries,
            sources=await self._storage.entries.sources(named),
            is_merged=selection.is_merged,
            line=f"{len(reach.feeds)} feeds",
            topics={each.feed_id: each.url for each in selection.topics},
            status=await self._status(selection, reach),
        )

    async def collect_with_cursor(
        self, selection: Selection, page: EntryRange
    ) -> tuple[CollectedEntries, str]:
        """Like `collect`, and the cursor behind which all other entries arrive live."""
        cursor = str(await self._storage.log.end())
        return await self.collect(selection, page), cursor

    async def _reach(self, selection: Selection) -> _Reach:
        matches: Sequence[TrackMatch] = ()
        if queries := selection.queries:
            matches = await self._storage.tracking.matches(queries, MATCHED_RECORDS)
        return _Reach(selection.feeds, matches)

    async def _status(self, selection: Selection, reach: _Reach) -> Status | None:
        """The status of a selection that is one track query: when it last found an
        entry. None for any other selection."""
        if not selection.is_track:
            return None
        if reach.matches:
            return track_status(reach.matches[0].at)
        (source,) = await self._storage.entries.sources(reach.feeds)
        return shown_status(source.feed, source.statistics)

    async def document(
        self, subscription: Subscription, count: int
    ) -> NotificationBody:
        """The document of a subscription's topic, in the subscription's format.

        Raises `NotReadable` if the feed is gone.
        """
        feed = await self._storage.feeds.get(subscription.feed_id)
        if feed is None:
            raise NotReadable("hub.topic", "the topic has been removed")
        if keeps_document(subscription.format, feed.format):
            document = await self._kept_or_fetched(feed)
            if document is not None:
                return document
        topic = _selected(subscription, feed)
        selection = Selection(
            name=topic.url,
            topics=(topic,),
            is_merged=topic.is_track,
            has_unlisted=self._tells_unlisted,
        )
        is_json = subscription.format is Format.JSON
        format = BodyFormat.JSON if is_json else BodyFormat.ATOM
        return await render(
            await self.collect(selection, EntryRange(count=count)), format
        )

    async def own_document(self, selection: Selection) -> NotificationBody | None:
        """The document of one topic that is not a feed: as it came, or the selected
        part.

        None for every other selection. Nothing is fetched for it.
        """
        if selection.is_merged:
            return None
        (feed_id,) = selection.feeds
        feed = await self._storage.feeds.get(feed_id)
        if feed is None or not keeps_document(Format.BY_TOPIC, feed.format):
            return None
        return await self._kept(feed)

    async def _kept_or_fetched(self, feed: StoredFeed) -> NotificationBody | None:
        """The body that is kept. If no as-is subscription has wanted a resource so far,
        none is kept, and it is fetched once more."""
        kept = await self._kept(feed)
        is_known = feed.format or feed.polling.code != HTTPStatus.OK
        if kept is not None or feed.state is not FeedState.ACTIVE or is_known:
            return kept
        await self._feeds.fetch(feed.id)
        return await _unpacked(await self._storage.log.body(feed.id))

    async def _kept(self, feed: StoredFeed) -> NotificationBody | None:
        kept = await self._storage.log.body(feed.id)
        if kept is not None or feed.format != FeedFormat.PART:
            return await _unpacked(kept)
        states = await self._storage.entries.newest([feed.id], limit=1)
        return _part_of(states[0]) if states else None

    async def _select_topic(self, principal: Principal, topic: str) -> Selection:
        url = read_topic("hub.topic", topic).url
        query = await self._tracks.ensure(url, principal.account.id)
        if query is not None:
            topics = (SelectedTopic(url, query.id, is_track=True),)
            return Selection(name=url, topics=topics, is_merged=True)
        feed = await self._local_topics.find_readable(
            self._storage.feeds, url, principal.viewer
        )
        if feed is None:  # Superfeedr 1.8: "404 not subscribed / unknown".
            raise NotReadable(
                "hub.topic", "the account does not subscribe to this topic"
            )
        is_held = await self._holds(principal, feed)
        feed = await self._feeds.fetched(feed)
        return Selection(
            name=url,
            topics=(SelectedTopic(url, feed.id),),
            is_merged=False,
            has_unlisted=is_held and (self._tells_unlisted or principal.is_admin),
        )

    async def _holds(self, principal: Principal, feed: StoredFeed) -> bool:
        """Whether the account holds the feed. The operator holds all feeds."""
        account = principal.account.id
        return principal.is_admin or await self._storage.subscriptions.holds(
            account, feed.id
        )

    async def _subscriptions(
        self, principal: Principal, wanted: RetrievalRequest
    ) -> Sequence[ListedSubscription]:
        """The subscriptions that a request means; one more than is allowed, so that too
        many are noticed."""
        account, viewer = principal.account.id, principal.viewer
        search = wanted.search or ListingSearch(callback=wanted.callback)
        listing = await self._storage.listings.page(
            account, search, skip=0, limit=MOST_FEEDS + 1, has_total=False
        )
        pairs = {(viewer, each.feed.id) for each in listing.items}
        readable = await self._storage.feeds.readable(pairs)
        return [each for each in listing.items if (viewer, each.feed.id) in readable]

    async def _fetch_first(self, feeds: Sequence[FeedId]) -> None:
        """Fetch the feeds that were never fetched, some at once, in no more time than
        one fetch may take.

        A feed whose fetch fails, or has no turn by then, is answered as it is stored.
        """
        sources = await self._storage.entries.sources(feeds)
        unread = [each.feed for each in sources if each.feed.polling.last_fetch is None]
        turns = iter(unread)
        try:
            async with asyncio.timeout(LONGEST_WAIT), asyncio.TaskGroup() as tasks:
                for _ in unread[:FETCHED_AT_ONCE]:
                    tasks.create_task(self._fetch_each(turns))
        except TimeoutError:
            pass

    async def _fetch_each(self, turns: Iterator[StoredFeed]) -> None:
        """Fetch feeds one by one. ``turns`` is shared with others, so each feed is
        fetched once."""
        for feed in turns:
            try:
                await self._feeds.fetched(feed)
            except StorageError as error:  # for instance, it was removed meanwhile
                log.info("first_fetch_failed", feed=feed.id, error=str(error))

    async def _place(self, reach: _Reach, field: str, id: str) -> EntryPlace | None:
        """The place of the entry that is shown with an id; most ids are keys."""
        if not id:
            return None
        entries = self._storage.entries
        place = await entries.place(reach.all_feeds, [key_of_id(id), key_of_link(id)])
        if place is not None:
            return place
        newest = await entries.newest(
            reach.feeds, limit=SEARCHED_FOR_ID, also=reach.found
        )
        size = sum(unpacked_size(stored.body) for stored in newest)
        shown = await run_in_thread(partial(_shown_with, id, newest), size)
        if shown is not None:
            return await entries.place_of(shown.id)
        raise InvalidValue(field, "the id of a stored entry of these feeds", id)


def _shown_with(id: str, entries: Sequence[StoredEntry]) -> StoredEntry | None:
    return next((each for each in entries if unpack(each.body, Entry).id == id), None)


def _selected(subscription: Subscription, feed: StoredFeed) -> SelectedTopic:
    is_track = feed.state is FeedState.TRACK
    return SelectedTopic(subscription.topic, feed.id, is_track)


async def _unpacked(kept: StoredBody | None) -> NotificationBody | None:
    if kept is None:
        return None
    unpacking = partial(unpack_bytes, kept.body)
    return NotificationBody(
        kept.content_type, await run_in_thread(unpacking, unpacked_size(kept.body))
    )


def _part_of(stored: StoredEntry) -> NotificationBody:
    part = part_body(unpack(stored.body, Entry))
    return NotificationBody(part.content_type, part.body)


DEFAULT_COUNT = 10
MOST_COUNT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRequest:
    """What to read: a topic, or else the topics of a callback or of a search.

    The search is over the account's subscriptions. A topic takes precedence.
    """

    topic: str = ""
    callback: str = ""
    search: ListingSearch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRange:
    """Which entries to read. ``before`` and ``after`` are ids of entries, which are
    left out themselves."""

    count: int = DEFAULT_COUNT
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class SelectedTopic:
    url: str
    feed_id: FeedId
    is_track: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Topics that may be read; ``name`` is what was requested.

    ``has_unlisted``: include entries that are kept out of public listings.
    """

    name: str
    topics: tuple[SelectedTopic, ...]
    is_merged: bool
    has_unlisted: bool = False

    @property
    def is_track(self) -> bool:
        """Whether the selection is exactly one track query."""
        return len(self.topics) == 1 and self.topics[0].is_track

    @property
    def queries(self) -> list[FeedId]:
        """The feeds among the topics that stand for track queries."""
        return [each.feed_id for each in self.topics if each.is_track]

    @property
    def feeds(self) -> list[FeedId]:
        return list(dict.fromkeys(each.feed_id for each in self.topics))


class Redelivering(Protocol):
    """The part of `hub.delivery.redelivery.Redeliveries` that is needed here."""

    async def send(
        self, subscription: Subscription, document: NotificationBody
    ) -> str: ...

    def send_later(
        self, subscription: Subscription, document: NotificationBody
    ) -> bool: ...


class RedeliveryService:
    def __init__(
        self,
        storage: Storage,
        retrieval: RetrievalService,
        redeliveries: Redelivering,
        public_url: str,
    ) -> None:
        self._public_url = public_url
        self._storage = storage
        self._retrieval = retrieval
        self._redeliveries = redeliveries

    async def replay(
        self,
        principal: Principal,
        topic: str,
        callback: str,
        count: int,
        *,
        waits: bool,
    ) -> None:
        """Send the last entries to a callback. If somebody ``waits``, return when the
        callback has accepted them, otherwise at once.

        Raises `NotReadable` without such a subscription, `InvalidValue` if the callback
        does not accept it, and `TooManyWaiting`.
        """
        url = read_topic("hub.topic", topic).url
        account = principal.account.id
        found = await self._storage.subscriptions.find(account, url, callback)
        if found is None or found.state is not SubscriptionState.ACTIVE:
            raise NotReadable("hub.topic", "the account has no such subscription")
        if is_null_device(callback, self._public_url):
            return
        document = await self._retrieval.document(found, count)
        if not waits:
            if not self._redeliveries.send_later(found, document):
                raise TooManyWaiting("too many replays are waiting; try again later")
            return
        reason = await self._redeliveries.send(found, document)
        if reason:
            expected = f"a callback that accepts the notification, but {reason}"
            raise InvalidValue("hub.callback", expected)
