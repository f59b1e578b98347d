"""Whether an entry is a public page, under which URL, and which feed owns the page.

`PageUpdater` decides again on entries and feeds that have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from functools import lru_cache

from msgspec.structs import replace

from hub.runtime.clock import Clock
from protocols.domains import registrable_domain, site_of
from protocols.languages import language_tag
from protocols.model import Entry, Feed, first_href
from protocols.scp.collection import section_name
from protocols.scp.write.page import page_url
from storage.contract import PageStore
from storage.packing import unpack, unpack_head
from storage.records import (
    EntryId,
    EntryVisibility,
    FeedId,
    FeedNews,
    PageNews,
    PublishedPage,
)

_OF_FEED = 48
"""Low bits of a rank, which hold the feed's id."""


class SiteMatch(IntEnum):
    """How near a feed is to the host of a page that it links to; the smallest wins.

    The host that a document comes from cannot be faked. The site that a document names
    can be. It counts only if no feed comes from the page's own host or domain.
    """

    HOST = -5  # it comes from exactly that host and port
    OTHER_PORT = -4
    DOMAIN = -3  # from another host of the same owner
    CLAIMED_HOST = -2  # it only claims that this is its site
    CLAIMED_DOMAIN = -1
    ELSEWHERE = 0


def visibility_of(
    news: PageNews, public_url: str, now: datetime, language: str = "en"
) -> EntryVisibility:
    """Whether and where an entry is shown; without a URL of its own, at one of this
    hub.

    ``language``: of pages whose entry and feed name none.
    """
    if news.entry is None:
        return EntryVisibility(entry_id=news.entry_id, revision=0, is_dropped=True)
    none = EntryVisibility(entry_id=news.entry_id, revision=news.revision)
    head = read_head(news.head)
    if not news.is_public or news.entry.deleted or head.unlisted:
        return none
    entry = unpack(news.entry.body, Entry)
    if entry.unlisted:
        return none
    stated = entry.updated or entry.published or now
    linked = page_url(entry)
    own = f"{public_url}{own_path(news.entry_id)}"
    inherits = news.inherits_language
    if inherits is None:
        inherits = entry.language in ("", head.language)
    named = (head.language or entry.language) if inherits else entry.language
    near = site_match(linked, news.urls, head) if linked else SiteMatch.HOST
    return EntryVisibility(
        entry_id=news.entry_id,
        revision=news.revision,
        feed_id=news.entry.feed_id,
        url=linked or own,
        section=section_name(news.category),
        rank=rank_of(near, news.entry.feed_id),
        owner=owner_of(near),
        language=language_tag(named) or language,
        inherits_language=inherits,
        dated=news.dated,
        modified=min(stated, now),
    )


def own_path(entry_id: EntryId) -> str:
    """The path at which the hub itself shows an entry
    (`hub.web.publishing.topic_routes`).

    It has no fragment: readers that drop fragments would take all such pages for one.
    """
    return f"/topics/entries/{entry_id}"


def site_match(url: str, feed_urls: Iterable[str], head: Feed) -> SiteMatch:
    """How near a feed is to a page. ``feed_urls``: all URLs that its documents are
    requested at."""
    host, port = site_of(url)
    places = [site_of(each) for each in feed_urls]
    domain = registrable_domain(host)
    if (host, port) in places:
        return SiteMatch.HOST
    if any(host == other for other, _ in places):
        return SiteMatch.OTHER_PORT
    if any(domain == registrable_domain(other) for other, _ in places):
        return SiteMatch.DOMAIN
    claimed, _ = site_of(claimed_site_of(head))
    if claimed == host:
        return SiteMatch.CLAIMED_HOST
    if registrable_domain(claimed) == domain:
        return SiteMatch.CLAIMED_DOMAIN
    return SiteMatch.ELSEWHERE


def rank_of(near: SiteMatch, feed_id: FeedId) -> int:
    """A feed's rank for a page, by how near it is; the smallest rank comes first.

    Of several feeds that only claim a site, the one added first wins, so that a later
    one cannot take over its pages by the same claim. Otherwise the latest entry wins.
    """
    is_claimed = near in (SiteMatch.CLAIMED_HOST, SiteMatch.CLAIMED_DOMAIN)
    return near << _OF_FEED | (feed_id if is_claimed else 0)


def owner_of(near: SiteMatch) -> int:
    """A number by which a feed of another section keeps a page out of this section: the
    page belongs to the smallest owner.

    Ports do not count, since one site is requested by http and by https. All feeds that
    only claim a site are one owner together, which comes before those that do not even
    claim it.
    """
    if near <= SiteMatch.OTHER_PORT:
        return 0
    if near == SiteMatch.DOMAIN:
        return 1
    return 2 if near < SiteMatch.ELSEWHERE else 3


def claimed_site_of(head: Feed) -> str:
    """The site that a feed says it belongs to; "" if it names none."""
    return first_href(head.links, "alternate")


def origin_of(news: FeedNews, language: str = "en") -> str:
    """Everything about a feed that its pages depend on, as a text for comparison.

    It ends in `origin_ending`.
    """
    head = read_head(news.head)
    places = [site_of(each) for each in (*news.urls, claimed_site_of(head))]
    return f"{head.unlisted} {head.language} {places}{origin_ending(language)}"


def origin_ending(language: str) -> str:
    """The part that is the same for all feeds: the language of pages that name none."""
    return f" in {language}"


def in_language(entry: Entry, page: PublishedPage) -> Entry:
    """The entry in the language that was decided on for its page."""
    return replace(entry, language=page.language) if page.language else entry


@lru_cache(maxsize=1_024)
def read_head(packed: bytes | None) -> Feed:
    """The head of a feed. A small cache is enough: the entries of a feed come
    together."""
    return unpack_head(packed)


BATCH = 200
"""Entries decided on in one transaction, so that no other write waits for long."""


class PageUpdater:
    """Decides on entries and feeds that have changed; to be used by one task at a
    time."""

    def __init__(
        self, pages: PageStore, clock: Clock, public_url: str, language: str = "en"
    ) -> None:
        """``language``: of pages whose entry and feed name none."""
        self._language = language
        self._has_begun = False
        self._pages = pages
        self._clock = clock
        self._public_url = public_url

    async def catch_up(self) -> int:
        """Decide on all changed entries; returns how many. Raises `StorageError`."""
        if not self._has_begun:
            await self._pages.note_former(origin_ending(self._language))
            self._has_begun = True
        while feeds := await self._pages.feed_news(BATCH):
            for feed in feeds:
                await self._pages.set_origin(feed, origin_of(feed, self._language))
            if len(feeds) < BATCH:
                break
        decided = 0
        while news := await self._pages.news(BATCH):
            visibilities = await asyncio.to_thread(self._visibilities, news)
            await self._pages.update(visibilities, self._clock.now())
            decided += len(news)
            if len(news) < BATCH:
                break
        return decided

    def _visibilities(self, news: Sequence[PageNews]) -> list[EntryVisibility]:
        now = self._clock.now()
        return [
            visibility_of(each, self._public_url, now, self._language) for each in news
        ]
