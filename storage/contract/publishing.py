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
    """Feeds that are neither private nor removed, and their entries.

    Whether an entry or a whole feed is unlisted is part of its packed body.
    """

    async def feeds(self, *, after: FeedId, limit: int) -> list[PublicFeed]:
        """Public feeds, by id."""
        ...

    async def count(self) -> int:
        """How many public feeds may be listed."""
        ...

    async def topics(
        self, *, text: str = "", before: FeedId | None, limit: int
    ) -> PublicFeedPage:
        """Feeds that may be listed, the latest added first.

        ``text``: a part of the URL or title, of three characters or more, in any case.
        A page looks at some hundred feeds for it, so it may be short or even empty
        without being the last.
        """
        ...

    async def feed(self, feed_id: FeedId) -> PublicFeed | None: ...

    async def entries(
        self, feed_id: FeedId, *, before: tuple[datetime, EntryId] | None, limit: int
    ) -> list[ListedEntry]:
        """Entries of one feed, newest first; withdrawn ones are left out.

        ``before``: only entries that follow this place of the list; no entry need stand
        there any more.
        """
        ...


class PageStore(Protocol):
    """Pages: entries that everybody may see, by their URL, as they are published.

    Changes of pages are numbered over all pages. What happens to entries and feeds is
    noted in the transaction that changes them; a reader later reads the notes and
    decides on the pages, so nothing is lost in between. Withdrawals are counted in the
    changing transaction itself: see `sections`.
    """

    async def feed_news(self, limit: int) -> list[FeedNews]:
        """Feeds whose pages are to be decided, by id."""
        ...

    async def set_origin(self, news: FeedNews, origin: str) -> None:
        """Store what the feed's pages depend on, as a text that is only compared.

        If that text or anything else about the feed has changed, all its entries become
        news.
        """
        ...

    async def note_former(self, ending: str) -> None:
        """Make all feeds news again whose stored origin text ends otherwise than in
        ``ending``.

        The end of the text is the part that is the same for all feeds.
        """
        ...

    async def news(self, limit: int) -> list[PageNews]:
        """Entries whose pages are still to be decided, by entry."""
        ...

    async def update(self, entries: Sequence[EntryVisibility], now: datetime) -> None:
        """Apply these decisions to the pages. An entry that has changed again stays
        news."""
        ...

    async def position(self) -> int:
        """The number of the last change; 0 before the first."""
        ...

    async def sections(self) -> list[PageSection]:
        """All sections that ever had a page, by name; the first is "", which has all
        pages.

        ``withdrawals`` grows when a feed that a section has shown is removed, made
        private, kept out of lists or moved to another section. It also grows when one
        of its entries is deleted, kept out of lists, decided to be no longer that page,
        or lost to another section because a feed there has more right to the page. An
        edit is no withdrawal, nor is an entry that is merely too old to be kept.
        """
        ...

    async def pages(
        self, section: str, *, after: PageId, limit: int
    ) -> list[PublishedPage]:
        """Pages by id; ``section`` "": all pages.

        A section has entries of its own feeds only, and only pages to which no feed of
        another section has more right (`EntryVisibility.owner`).
        """
        ...

    async def changed(
        self, section: str, *, after: int, limit: int
    ) -> list[PublishedPage]:
        """Pages of the section that exist, by their last change."""
        ...


class PageListStore(Protocol):
    """All pages that are shown, newest first, and the last change of each.

    The cost of a call depends on what it returns, not on how many pages there are.
    """

    async def state(self) -> PagesState: ...

    async def page(self, *, skip: int, limit: int) -> list[ListedPage]:
        """Pages by date, the newest first.

        A page hidden a moment ago is left out, so there may be fewer than ``limit``.
        """
        ...

    async def find(self, url: str) -> ListedPage | None: ...

    async def of_entries(self, ids: Sequence[EntryId]) -> list[ListedPage]:
        """The pages that show these entries, in no particular order."""
        ...

    async def last_before(self, moment: datetime) -> int:
        """The number of the last change before that moment; 0 if there was none."""
        ...

    async def changes(
        self, *, after: int, through: int, limit: int
    ) -> list[PageChange]:
        """Pages by the number of their last change, above ``after`` and up to
        ``through``.

        Numbers and times grow together.
        """
        ...
