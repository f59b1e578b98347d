"""Stored entries read back: of a topic, or of all topics of a callback, newest first.

Public feeds are there for everybody; private ones for the accounts that subscribe to
them, and for the operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hub.delivery.notifications import Document
from hub.services.collected import Collected, render
from hub.services.errors import NotReadable
from hub.services.feeds import FeedService
from hub.services.tokens import Principal
from hub.services.topics import read_topic
from protocols.errors import InvalidValue
from protocols.identity import key_of_id, key_of_link
from protocols.live.messages import BodyFormat
from protocols.model import Entry
from storage.interface import Storage
from storage.packing import unpack
from storage.records import (
    AccountId,
    EntryPlace,
    FeedId,
    ListingSearch,
    StoredFeed,
    Subscription,
)

DEFAULT_COUNT = 10
MOST_COUNT = 50
MOST_FEEDS = 199
"""Superfeedr took "less than 200" for one callback."""
SEARCHED_FOR_ID = 200
"""Entries that are looked through for an id that is not their key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A topic; else the topics of a callback, or of a search over the account's

    subscriptions. A topic that is given goes before all else.
    """

    topic: str = ""
    callback: str = ""
    search: ListingSearch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``before`` and ``after`` are ids of entries; those themselves are left out."""

    count: int = DEFAULT_COUNT
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class SelectedTopic:
    url: str
    feed_id: FeedId


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Topics that may be read; ``name`` is what they were asked for by."""

    name: str
    topics: tuple[SelectedTopic, ...]
    is_merged: bool

    @property
    def feeds(self) -> list[FeedId]:
        return list(dict.fromkeys(each.feed_id for each in self.topics))


class RetrievalService:
    def __init__(
        self,
        storage: Storage,
        feeds: FeedService,
        hub_url: str,
    ) -> None:
        self._storage = storage
        self._feeds = feeds
        self._hub_url = hub_url

    async def select(self, principal: Principal, wanted: Wanted) -> Selection:
        """A feed that was never fetched is fetched before, if that takes not too long.

        Raises `InvalidValue` and `NotReadable`.
        """
        if wanted.topic:
            return await self._select_topic(principal, wanted.topic)
        if not wanted.callback and wanted.search is None:
            raise InvalidValue("hub.topic", "this or hub.callback; both are missing")
        found = await self._subscriptions(principal.account.id, wanted)
        if not found:
            raise NotReadable("hub.callback", "this account has no such subscription")
        if len(found) > MOST_FEEDS:
            raise InvalidValue("hub.callback", f"one of at most {MOST_FEEDS} feeds")
        await self._fetch_first([each.feed_id for each in found])
        return Selection(
            name=wanted.callback or found[0].callback,
            topics=tuple(SelectedTopic(each.topic, each.feed_id) for each in found),
            is_merged=True,
        )

    async def collect(self, selection: Selection, page: Page) -> Collected:
        """Raises `InvalidValue` for ids that are none of the selection's entries."""
        feeds = selection.feeds
        entries = await self._storage.entries.newest(
            feeds,
            limit=page.count,
            before=await self._place(feeds, "before", page.before),
            after=await self._place(feeds, "after", page.after),
        )
        named = [each.feed_id for each in entries] if selection.is_merged else feeds
        return Collected(
            topic=selection.name,
            entries=entries,
            sources=await self._storage.entries.sources(list(dict.fromkeys(named))),
            is_merged=selection.is_merged,
            line=f"{len(feeds)} feeds",
            topics={each.feed_id: each.url for each in selection.topics},
        )

    async def cursor(self) -> str:
        """Where the log ends: what is stored later comes after it."""
        return str(await self._storage.log.head())

    async def render(self, collected: Collected, format: BodyFormat) -> Document:
        return await render(collected, format, self._hub_url)

    async def _select_topic(self, principal: Principal, topic: str) -> Selection:
        url = read_topic("hub.topic", topic).url
        feed = await self._feeds.find(url)
        if feed is None or not await self._may_read(principal, feed):
            raise NotReadable("hub.topic", "this account subscribes to no such topic")
        await self._feeds.fetched(feed)
        return Selection(
            name=url, topics=(SelectedTopic(url, feed.id),), is_merged=False
        )

    async def _may_read(self, principal: Principal, feed: StoredFeed) -> bool:
        if not feed.private or principal.is_admin:
            return True
        return await self._storage.subscriptions.holds(principal.account.id, feed.id)

    async def _subscriptions(
        self, account: AccountId, wanted: Wanted
    ) -> Sequence[Subscription]:
        """One more than may be, so that too many are noticed."""
        search = wanted.search or ListingSearch(callback=wanted.callback)
        listing = await self._storage.listings.page(
            account, search, skip=0, limit=MOST_FEEDS + 1
        )
        return [each.subscription for each in listing.items]

    async def _fetch_first(self, feeds: Sequence[FeedId]) -> None:
        sources = await self._storage.entries.sources(feeds)
        async with asyncio.TaskGroup() as tasks:
            for each in sources:
                tasks.create_task(self._feeds.fetched(each.feed))

    async def _place(
        self, feeds: Sequence[FeedId], field: str, id: str
    ) -> EntryPlace | None:
        """Where the entry stands that is shown with an id: mostly that is its key."""
        if not id:
            return None
        entries = self._storage.entries
        place = await entries.place(feeds, [key_of_id(id), key_of_link(id)])
        if place is not None:
            return place
        for stored in await entries.newest(feeds, limit=SEARCHED_FOR_ID):
            if unpack(stored.body, Entry).id == id:
                return await entries.place_of(stored.id)
        raise InvalidValue(field, "the id of a stored entry of these feeds", id)
