"""What everybody may see: public feeds, their entries, and pages by URL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import (
    EntryId,
    EntryVisibility,
    FeedId,
    FeedNews,
    ListedEntry,
    ListedPage,
    PageChange,
    PageId,
    PageNews,
    PageSection,
    PagesState,
    PublicFeed,
    PublicFeedPage,
    PublishedPage,
)


class PublicStore(Protocol):
    """Feeds that are neither private nor removed, and what they hold.

    Whether an entry or a whole feed is unlisted stands in its packed body.
    """

    async def feeds(self, *, after: FeedId, limit: int) -> list[PublicFeed]:
        """Public feeds, by id."""
        ...

    async def count(self) -> int:
        """How many may be listed."""
        ...

    async def topics(
        self, *, text: str = "", before: FeedId | None, limit: int
    ) -> PublicFeedPage:
        """Those that may be listed, the latest added first.

        ``text``: a part of the URL or title, of three characters or more, in any case.
        Some hundred feeds are looked at for it, so that a page may be short, and even
        empty, and not the last one.
        """
        ...

    async def feed(self, feed_id: FeedId) -> PublicFeed | None: ...

    async def entries(
        self, feed_id: FeedId, *, before: tuple[datetime, EntryId] | None, limit: int
    ) -> list[ListedEntry]:
        """Entries of one feed, newest first, those withdrawn left out.

        ``before``: only those that follow this place of the list; it need not be that
        of an entry any more.
        """
        ...


class PageStore(Protocol):
    """Pages: entries that everybody may see, by their URL, as they are published.

    Changes of pages are numbered over all of them. What becomes of entries and feeds
    is noted in the transaction that changes them, for one who reads what they say and
    decides on them later; nothing is lost in between. That something was withdrawn
    counts in that very transaction: see `sections`.
    """

    async def feed_news(self, limit: int) -> list[FeedNews]:
        """Feeds that are to be decided on, by id."""
        ...

    async def set_origin(self, news: FeedNews, origin: str) -> None:
        """Note what of the feed its pages depend on, in a text that is only compared.

        If that or anything else about it has changed, all its entries become news.
        """
        ...

    async def note_former(self, ending: str) -> None:
        """Have all feeds decided on again whose text, as it was noted, ends otherwise.

        The end of the text is what is the same for all feeds.
        """
        ...

    async def news(self, limit: int) -> list[PageNews]:
        """What is still to be decided on, by entry."""
        ...

    async def update(self, entries: Sequence[EntryVisibility], now: datetime) -> None:
        """Take it into the pages. An entry that has changed again stays news."""
        ...

    async def position(self) -> int:
        """The number of the last change; 0 before the first."""
        ...

    async def sections(self) -> list[PageSection]:
        """All that ever had a page, by name; the first is "", which has all pages.

        ``withdrawals`` grows when a feed that a section has shown is removed, made
        private, kept out of lists or moved to another section, and when an entry of it
        is deleted, kept out of lists or, as it is decided, not that page any more, or
        not the section's because a feed of another section has more right to the page.
        An edit is none, nor is what is only too old to be kept.
        """
        ...

    async def pages(
        self, section: str, *, after: PageId, limit: int
    ) -> list[PublishedPage]:
        """By id; ``section`` "": of all of them.

        A section has entries of its own feeds alone, and only of pages to which no feed
        of another section has more right (`EntryVisibility.owner`).
        """
        ...

    async def changed(
        self, section: str, *, after: int, limit: int
    ) -> list[PublishedPage]:
        """Pages that are there, by their last change."""
        ...


class PageListStore(Protocol):
    """All pages that are shown, newest first, and what has last become of each.

    Nothing here costs more when there are more pages, but for what it returns.
    """

    async def state(self) -> PagesState: ...

    async def page(self, *, skip: int, limit: int) -> list[ListedPage]:
        """By date, the newest first.

        What was hidden a moment ago is left out, so there may be fewer than ``limit``.
        """
        ...

    async def find(self, url: str) -> ListedPage | None: ...

    async def of_entries(self, ids: Sequence[EntryId]) -> list[ListedPage]:
        """The pages that show these entries; in no order."""
        ...

    async def last_before(self, moment: datetime) -> int:
        """The number of the last change before it; 0 if there was none."""
        ...

    async def changes(
        self, *, after: int, through: int, limit: int
    ) -> list[PageChange]:
        """By number: pages whose last change is above ``after``, up to ``through``.

        Numbers and times grow together.
        """
        ...
