"""What everybody may see: feeds that are not private, and their entries."""

from __future__ import annotations

from datetime import datetime

import msgspec

from storage.records.identities import EntryId, FeedId, PageId
from storage.records.log import StoredEntry


class PublicFeed(msgspec.Struct, frozen=True, kw_only=True):
    """A feed that is neither private nor removed, with the fields readers need."""

    id: FeedId
    url: str
    title: str
    description: str  # given when it was added
    category: str
    created_at: datetime
    head: bytes | None  # packed protocols.model.Feed; None before the first document


class PublicFeedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of feeds. ``next``: the id before which the rest begins; None if there is
    no more."""

    feeds: tuple[PublicFeed, ...]
    next: FeedId | None


class ListedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a list. ``dated``: its place in the list, which is the entry's own
    date, or when it was first stored."""

    entry: StoredEntry
    dated: datetime


class FeedNews(msgspec.Struct, frozen=True, kw_only=True):
    """A feed that was shown, hidden or moved to another category, or has a new head.

    ``is_moved``: more than its head is new. ``origin``: the text stored the last time,
    None if never.
    """

    feed_id: FeedId
    is_moved: bool
    origin: str | None
    urls: tuple[str, ...]  # its own, and where it was moved to for good
    head: bytes | None  # packed


class PageNews(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that has changed since it was decided whether it is a page.

    ``entry`` None: it is no longer stored.
    """

    entry_id: EntryId
    entry: StoredEntry | None
    dated: datetime | None = None
    is_public: bool = False  # its feed is not private, unlisted or removed
    category: str = ""  # of its feed
    urls: tuple[str, ...] = ()  # of its feed: its own, and where it was moved to
    head: bytes | None = None  # of its feed, packed
    inherits_language: bool | None = None  # as decided for this revision

    @property
    def revision(self) -> int:
        return 0 if self.entry is None else self.entry.revision


class EntryVisibility(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided on an entry: it is a page of that ``url``, or none if "".

    ``modified``: when its feed says it changed, but never in the future. ``rank``: of
    several entries with one URL, those of the lowest rank are shown. ``owner``: a
    section shows the entry only if no entry of any section with that URL has a lower
    one; it grows with ``rank``. ``is_dropped``: it was not withdrawn, only no longer
    kept.
    """

    entry_id: EntryId
    revision: int
    feed_id: FeedId | None = None  # if it is known
    url: str = ""
    section: str = ""
    rank: int = 0
    owner: int = 0
    language: str = ""  # in which it is published
    inherits_language: bool = False  # whether it is the feed's, not the entry's own
    dated: datetime | None = None
    modified: datetime | None = None
    is_dropped: bool = False


class PublishedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page as shown by all sections together, or by one of them.

    Of the entries with its URL that have the lowest rank, it shows the newest.
    ``modified`` has moved forward with every change since the URL was first published.
    ``is_stale``: the entry has changed since, and a decision on it is due.
    """

    id: PageId
    url: str
    language: str  # "" until that is decided
    modified: datetime
    change: int
    entry: StoredEntry
    head: bytes | None
    is_stale: bool


class PageSection(msgspec.Struct, frozen=True, kw_only=True):
    """A section that has or had pages.

    ``withdrawals`` counts how often text that it may have shown was withdrawn.
    """

    name: str
    withdrawals: int


class ListedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page in the list of all pages; ``shown_at``: when it appeared, or last
    reappeared."""

    page: PublishedPage
    shown_at: datetime


class PageChange(msgspec.Struct, frozen=True, kw_only=True):
    """The last change of a page; ``page`` None: it is gone."""

    change: int
    url: str
    changed_at: datetime
    page: ListedPage | None


class PagesState(msgspec.Struct, frozen=True, kw_only=True):
    """How many pages are shown, and the number and time of the last change of all.

    Before the first change: 0, and the beginning of 1970.
    """

    count: int
    change: int
    changed_at: datetime
