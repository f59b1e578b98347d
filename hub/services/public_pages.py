"""What everybody may read: the list of public feeds, and each public feed.

Private feeds, removed ones, those that their publisher keeps out of lists
(``discoverable: false``), and withdrawn entries do not appear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from msgspec.structs import replace

import hub
from hub.runtime.offloading import run_in_thread
from protocols.model import Entry, Feed
from protocols.opml import FeedOutline, render_opml
from protocols.protocol_errors import InvalidValue
from protocols.safe_urls import safe_entry, safe_feed
from protocols.topic_pages import PagePlace, TopicFormat, TopicPage, render_topic_page
from storage.contract import Storage
from storage.errors import NotFound
from storage.packing import unpack, unpack_head
from storage.records import (
    EntryId,
    FeedId,
    ListedEntry,
    PublicFeed,
)

PAGE = 250
"""Feeds read at a time."""
LONGEST_PAGE = 100
DEFAULT_PAGE = 50
"""Entries of one page of a topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicDocument:
    """A document. ``etag`` is without quotes."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPage:
    """A page of a topic, read but not rendered: a client that already has it needs no
    body. ``modified`` None: not known."""

    page: TopicPage
    etag: str
    modified: datetime | None


class PublicService:
    def __init__(self, storage: Storage, public_url: str) -> None:
        self._storage = storage
        self.public_url = public_url
        self.list_size: int | None = None
        """Bytes of the list when it was last made; None if it was not made yet."""

    async def list_feeds(self) -> PublicDocument:
        """All public feeds as OPML, in the order of their ids."""
        listed: list[tuple[FeedOutline, datetime]] = []
        after = FeedId(0)
        while page := await self._storage.public.feeds(after=after, limit=PAGE):
            after = page[-1].id
            listed += await run_in_thread(partial(_outlines, page))
        host = self.public_url.partition("://")[2]
        document = await run_in_thread(partial(_list_of, f"Feeds at {host}", listed))
        self.list_size = len(document.body)
        return document

    async def page(
        self, feed_id: FeedId, format: TopicFormat, *, before: str, limit: int
    ) -> PreparedPage:
        """A page of a feed's entries, newest first. ``limit`` is adjusted to the
        allowed range.

        Raises `NotFound`, also for a feed that is not public, and `InvalidValue`.
        """
        place = _read_place(before)
        limit = min(max(limit, 1), LONGEST_PAGE)
        feed, head = await self._listed_feed(feed_id)
        found = await self._storage.public.entries(
            feed_id, before=place, limit=limit + 1
        )
        shown, is_last = found[:limit], len(found) <= limit
        listed = await run_in_thread(partial(_entries, shown))
        page = TopicPage(
            url=f"{self.public_url}/topics/{feed_id}.{format}",
            hub=f"{self.public_url}/hub",
            source=feed.url,
            feed=safe_feed(replace(head, title=head.title or feed.title)),
            entries=tuple(entry for entry, _ in listed),
            dates=tuple(dated for _, dated in listed),
            before=before,
            limit=limit,
            is_default_limit=limit == DEFAULT_PAGE,
            next=None if is_last else _place_of(shown[-1]),
            undated=feed.created_at,
        )
        stored = await self._storage.feeds.get(feed_id)
        parsed = None if stored is None else stored.polling.last_parse
        states = [(each.entry.id, each.entry.revision) for each in shown]
        etag = _digest(repr((format, page.url, before, limit, states)).encode(), feed)
        return PreparedPage(page=page, etag=etag, modified=parsed)

    async def page_of(self, entry_id: EntryId) -> PreparedPage:
        """The page of an entry's topic that contains this entry only.

        Raises `NotFound`, also for an entry that is not public.
        """
        found = await self._storage.log.entries([entry_id])
        place = await self._storage.entries.place_of(entry_id)
        if not found or place is None or found[0].deleted or found[0].unlisted:
            raise NotFound("entry", entry_id)
        before = str(PagePlace(dated=place.at, entry=entry_id - 1))
        feed_id = found[0].feed_id
        return await self.page(feed_id, TopicFormat.ATOM, before=before, limit=1)

    async def render(self, prepared: PreparedPage, format: TopicFormat) -> bytes:
        return await run_in_thread(partial(render_topic_page, prepared.page, format))

    async def _listed_feed(self, feed_id: FeedId) -> tuple[PublicFeed, Feed]:
        feed = await self._storage.public.feed(feed_id)
        head = unpack_head(feed.head if feed else None)
        if feed is None or head.unlisted:
            raise NotFound("topic", feed_id)
        return feed, head


def _outlines(feeds: Sequence[PublicFeed]) -> list[tuple[FeedOutline, datetime]]:
    """The outlines of feeds that may be listed, with the time when each was added."""
    heads = [(feed, unpack_head(feed.head)) for feed in feeds]
    return [
        (_outline(feed, head), feed.created_at)
        for feed, head in heads
        if not head.unlisted
    ]


def _list_of(
    title: str, listed: Sequence[tuple[FeedOutline, datetime]]
) -> PublicDocument:
    added = max((at for _, at in listed), default=None)
    body = render_opml(title, [outline for outline, _ in listed], added)
    return PublicDocument(body=body, etag=_digest(body))


def _outline(feed: PublicFeed, head: Feed) -> FeedOutline:
    sites = [link.href for link in head.links if link.rel == "alternate"]
    return FeedOutline(
        title=head.title or feed.title,
        description=head.subtitle or feed.description,
        category=feed.category,
        xml_url=feed.url,
        html_url=sites[0] if sites else "",
    )


def _entries(listed: Sequence[ListedEntry]) -> list[tuple[Entry, datetime]]:
    """The entries that may be listed, each with its place in time."""
    unpacked = ((unpack(each.entry.body, Entry), each.dated) for each in listed)
    return [
        (safe_entry(entry), dated) for entry, dated in unpacked if not entry.unlisted
    ]


def _digest(body: bytes, feed: PublicFeed | None = None) -> str:
    """The tag of a document, from its contents and the version of the program."""
    found = hashlib.sha256(hub.__version__.encode())
    if feed is not None:
        found.update(repr((feed.url, feed.title)).encode() + (feed.head or b""))
    found.update(body)
    return found.hexdigest()[:32]


def _read_place(before: str) -> tuple[datetime, EntryId] | None:
    if not before:
        return None
    try:
        place = PagePlace.parse(before)
    except ValueError:
        expected = "the value of before in the link to the next page"
        raise InvalidValue("before", expected, before) from None
    return place.dated, EntryId(place.entry)


def _place_of(listed: ListedEntry) -> str:
    return str(PagePlace(dated=listed.dated, entry=listed.entry.id))
