"""What readers look at: the newest public entries, search, all topics, and one topic.

Private feeds, removed ones, those that their publisher keeps out of lists, and
withdrawn entries do not appear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import hub
from hub.publishing.page_visibility import claimed_site_of, own_path, read_head
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from hub.services.entry_search import SearchService
from hub.services.public_pages import PublicService
from hub.services.token_authentication import Principal
from protocols.model import Entry, Feed
from protocols.scp.write.page import page_url, shorten
from protocols.text import text_of_html
from protocols.topic_pages import TopicFormat
from protocols.urls import host_name
from storage.contract import Storage
from storage.packing import unpack
from storage.records import (
    NOBODY,
    Account,
    EntrySource,
    FeedId,
    ListedPage,
    PublicFeed,
    StoredEntry,
)

FRESH_SECONDS = 5.0
"""Seconds between two queries for the newest entries, however many visitors there
are."""
SHOWN_ENTRIES: Final = 50
SHOWN_TOPICS: Final = 50
LEAST_PART: Final = 3
"""The fewest characters to search for in the URL or title of a topic."""
TITLE_LENGTH: Final = 200
UNTITLED: Final = "(untitled)"
_LONGEST_READ: Final = 2_000
"""Characters read of a text that stands in for a title."""
READER: Final = Principal(
    account=Account(id=NOBODY, name="readers"), scopes=frozenset()
)
"""All who search without a token count as one account, and share its turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEntry:
    """An entry. ``url``: its page, or where this hub shows it; "": nowhere. ``at``
    None: its feed gives no date. ``source`` is the title of its ``topic``; ``id`` is
    the one that receivers of notifications get."""

    id: str
    title: str
    url: str
    at: datetime | None
    topic: FeedId
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestEntries:
    """The newest entries. ``topic``: a public topic for examples, if possible one that
    has some of the entries; "" if there is none."""

    entries: tuple[ShownEntry, ...] = ()
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntries:
    """A page of entries found by a search. ``line`` says how many, and how far was
    looked; ``next``: where the next page begins, None at the end."""

    entries: tuple[ShownEntry, ...]
    line: str
    next: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTopic:
    id: FeedId
    url: str
    title: str
    description: str
    category: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicList:
    """A page of topics. ``next``: where the next page begins; None: this is the
    last."""

    topics: tuple[ShownTopic, ...]
    next: FeedId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A page of a topic. ``etag`` covers what it shows, except ``cursor``: the end of
    the log before the page was read, from which newer entries arrive live."""

    topic: ShownTopic
    home: str
    entries: tuple[ShownEntry, ...]
    next: str | None
    cursor: str
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """The URLs at which readers without a token may subscribe."""

    url: str
    is_hub_open: bool = True
    is_stream_open: bool = True
    has_collections: bool = True

    @property
    def socket(self) -> str:
        scheme, _, rest = self.url.partition("://")
        return f"{'wss' if scheme == 'https' else 'ws'}://{rest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutPage:
    """What publishers are told about the program that fetches their feeds."""

    url: str
    user_agent: str = hub.PRODUCT
    contact: str = ""
    heeds_robots: bool = False


class ReaderService:
    def __init__(
        self,
        storage: Storage,
        public: PublicService,
        search: SearchService,
        clock: Clock,
        endpoints: Endpoints,
        about: AboutPage,
    ) -> None:
        self.endpoints = endpoints
        self.about = about
        self._storage = storage
        self._public = public
        self._search = search
        self._clock = clock
        self._read_at = float("-inf")
        self._newest = NewestEntries()

    async def newest(self) -> NewestEntries:
        """The newest entries by date, at most some seconds old. Raises
        `StorageError`."""
        now = self._clock.monotonic()
        if now - self._read_at >= FRESH_SECONDS:
            listed = await self._storage.page_list.page(skip=0, limit=SHOWN_ENTRIES)
            entries = await run_in_thread(partial(_of_pages, listed))
            sources = {each.topic for each in entries}
            added = (await self.topics()).topics
            best = sorted(added, key=lambda each: each.id not in sources)
            topic = best[0].url if best else ""
            self._newest = NewestEntries(entries=entries, topic=topic)
            self._read_at = now
        return self._newest

    async def search(self, query: str, below: int | None = None) -> FoundEntries:
        """A page of the entries that match. Raises the same errors as
        `SearchService.find`."""
        found = await self._search.find(READER, query, SHOWN_ENTRIES, below)
        sources = {each.feed.id: each for each in found.sources}
        shown = await run_in_thread(partial(_of_search, found.entries, sources))
        return FoundEntries(entries=shown, line=found.line, next=found.next)

    async def topics(self, text: str = "", before: FeedId | None = None) -> TopicList:
        """Topics with this text in their URL or title, the latest added first. A page
        may be short, or even empty, without being the last one."""
        page = await self._storage.public.topics(
            text=text, before=before, limit=SHOWN_TOPICS
        )
        heads = [(feed, read_head(feed.head)) for feed in page.feeds]
        topics = tuple(_topic(*each) for each in heads if not each[1].unlisted)
        return TopicList(topics=topics, next=page.next)

    async def topic(self, feed_id: FeedId, before: str) -> TopicView:
        """A page of a topic. Raises `NotFound`, also for a feed that is not public, and
        `InvalidValue`."""
        cursor = await self._storage.log.end()
        prepared = await self._public.page(
            feed_id, TopicFormat.ATOM, before=before, limit=SHOWN_ENTRIES
        )
        feed = await self._storage.public.feed(feed_id)
        page = prepared.page
        dated = zip(page.entries, page.dates, strict=True)
        topic = ShownTopic(
            id=feed_id,
            url=page.source,
            title=_name(page.feed, page.source),
            description=shorten(text_of_html(page.feed.subtitle), TITLE_LENGTH),
            category=feed.category if feed else "",
        )
        return TopicView(
            topic=topic,
            home=claimed_site_of(page.feed),
            entries=tuple(
                _entry(entry, at, topic=feed_id, source=topic.title)
                for entry, at in dated
            ),
            next=page.next,
            cursor=str(cursor),
            etag=prepared.etag,
        )


def _topic(feed: PublicFeed, head: Feed) -> ShownTopic:
    return ShownTopic(
        id=feed.id,
        url=feed.url,
        title=_name(head, feed.title or feed.url),
        description=shorten(
            text_of_html(head.subtitle or feed.description), TITLE_LENGTH
        ),
        category=feed.category,
    )


def _of_pages(listed: Sequence[ListedPage]) -> tuple[ShownEntry, ...]:
    return tuple(
        _entry(
            unpack(each.page.entry.body, Entry),
            each.shown_at,
            topic=each.page.entry.feed_id,
            source=_name(read_head(each.page.head), each.page.url),
            url=each.page.url,
        )
        for each in listed
    )


def _of_search(
    entries: Sequence[StoredEntry], sources: dict[FeedId, EntrySource]
) -> tuple[ShownEntry, ...]:
    return tuple(
        _entry(
            unpack(each.body, Entry),
            None,
            topic=each.feed_id,
            source=_name(read_head(source.head), source.feed.title or source.feed.url),
            url=own_path(each.id),
        )
        for each in entries
        # An index may be behind the feed's present settings.
        if (source := sources.get(each.feed_id))
        and not each.unlisted
        and not read_head(source.head).unlisted
    )


def _entry(
    entry: Entry, at: datetime | None, *, topic: FeedId, source: str, url: str = ""
) -> ShownEntry:
    """``at``: used if the entry has no date; ``url``: used if it has no page of its
    own."""
    return ShownEntry(
        id=entry.id,
        title=_title(entry),
        url=page_url(entry) or url,
        at=entry.published or entry.updated or at,
        topic=topic,
        source=source,
    )


def _title(entry: Entry) -> str:
    for each in (entry.summary, entry.content):
        if entry.title:
            break
        if each is not None:
            text = text_of_html(each.value[:_LONGEST_READ])
            if title := shorten(text, TITLE_LENGTH):
                return title
    return shorten(entry.title, TITLE_LENGTH) or UNTITLED


def _name(head: Feed, otherwise: str) -> str:
    """A feed's title, or else the host of the given URL."""
    title = shorten(head.title, TITLE_LENGTH)
    return title or host_name(otherwise) or otherwise
