"""The common model: feeds, entries and status, whatever format they came from.

Frozen values only. Times are aware UTC datetimes, URLs absolute strings. A field that a
document does not have is ``None``, ``""`` or an empty tuple; nothing is made up here.
Fields follow the Superfeedr schema; everything else is in ``extensions``, a JSON-like
mapping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct, field

Extensions = Mapping[str, Any]
"""JSON-like: str, int, float, bool, None, lists and mappings with string keys."""


class FeedFormat(StrEnum):
    RSS = "rss"
    RDF = "rdf"
    ATOM = "atom"
    JSON_FEED = "jsonfeed"
    CREATOR = "creator"  # a creator's feed.json
    OPENFEEDER = "openfeeder"  # a site that is read by many requests
    SCP = "scp"  # a site as well
    PART = "part"  # no feed, but the part of a resource that a fragment selects

    @property
    def media_type(self) -> str:
        """The media type of such a document."""
        return _MEDIA_TYPES.get(self.value, f"application/{self.value}+xml")

    @property
    def is_site(self) -> bool:
        """Whether its document only says where the entries are (`hub.core.sites`)."""
        return self in (FeedFormat.OPENFEEDER, FeedFormat.SCP)

    @property
    def lists_all(self) -> bool:
        """Whether a document lists all entries there are, so that missing ones are
        deleted.
        """
        return self is FeedFormat.CREATOR


SITE_FORMATS = frozenset(each.value for each in FeedFormat if each.is_site)
"""The values with which such feeds are stored."""
_MEDIA_TYPES = {
    "jsonfeed": "application/feed+json",
    "creator": "application/json",
    "part": "text/html",
    "openfeeder": "application/json",
    "scp": "application/xml",
}


class IdSource(StrEnum):
    """Where an entry's id came from; all but ``FEED`` are generated ids."""

    FEED = "feed"
    LINK = "link"
    ENCLOSURE = "enclosure"
    CONTENT = "content"


class Text(Struct, frozen=True, kw_only=True, gc=False):
    """Text with its Atom type: ``text``, ``html``, ``xhtml`` or a media type."""

    value: str
    type: str = "html"


class Link(Struct, frozen=True, kw_only=True, gc=False):
    href: str
    rel: str = "alternate"
    type: str = "text/html"
    title: str = ""
    length: int | None = None  # bytes, as declared


class Author(Struct, frozen=True, kw_only=True, gc=False):
    name: str = ""
    uri: str = ""
    email: str = ""
    id: str = ""
    title: str = ""
    links: tuple[Link, ...] = ()
    object_types: tuple[str, ...] = ()


def first_href(links: Iterable[Link], relation: str) -> str:
    """Where the first link of a relation leads; "" if there is none."""
    for link in links:
        if link.rel == relation:
            return link.href
    return ""


class Category(Struct, frozen=True, kw_only=True, gc=False):
    term: str
    scheme: str = ""
    label: str = ""


class Geo(Struct, frozen=True, kw_only=True, gc=False):
    latitude: float
    longitude: float


class ActivityObject(Struct, frozen=True, kw_only=True, gc=False):
    """An ``as:object`` of the ActivityStreams namespace."""

    id: str = ""
    title: str = ""
    published: datetime | None = None
    updated: datetime | None = None
    content: Text | None = None
    authors: tuple[Author, ...] = ()
    categories: tuple[Category, ...] = ()
    links: tuple[Link, ...] = ()
    object_types: tuple[str, ...] = ()


class Feed(Struct, frozen=True, kw_only=True, gc=False):
    """The head of a feed document, or an entry's ``source``."""

    id: str = ""
    title: str = ""
    subtitle: str = ""
    published: datetime | None = None
    updated: datetime | None = None
    links: tuple[Link, ...] = ()
    authors: tuple[Author, ...] = ()
    contributors: tuple[Author, ...] = ()
    categories: tuple[Category, ...] = ()
    language: str = ""
    rights: str = ""
    generator: str = ""
    icon: str = ""
    logo: str = ""
    unlisted: bool = False  # all entries are to be kept out of public lists
    extensions: Extensions = field(default_factory=dict)
    status: Status | None = None  # of a source, if the hub knows it


class Entry(Struct, frozen=True, gc=False):  # positional: a fifth of the time
    """One item of one feed in its current state.

    ``key`` is its identity within the feed (see `protocols.identity`); ``id`` is what
    readers see, taken from the feed unless ``id_source`` says otherwise.
    """

    key: str
    id: str
    id_source: IdSource = IdSource.FEED
    title: str = ""
    summary: Text | None = None
    content: Text | None = None
    published: datetime | None = None
    updated: datetime | None = None
    links: tuple[Link, ...] = ()
    authors: tuple[Author, ...] = ()
    contributors: tuple[Author, ...] = ()
    categories: tuple[Category, ...] = ()
    geo: Geo | None = None
    verbs: tuple[str, ...] = ()
    object_types: tuple[str, ...] = ()
    objects: tuple[ActivityObject, ...] = ()
    language: str = ""
    rights: str = ""
    source: Feed | None = None
    unlisted: bool = False  # to be kept out of public lists
    extensions: Extensions = field(default_factory=dict)


class Deletion(Struct, frozen=True, kw_only=True, gc=False):
    """A publisher's statement that an entry is gone (RFC 6721 ``at:deleted-entry``)."""

    key: str
    id: str
    at: datetime | None = None


class Hints(Struct, frozen=True, kw_only=True, gc=False):
    """What a document says about how often to request it."""

    ttl_minutes: int | None = None
    update_period: str = ""  # sy:updatePeriod, as written
    update_frequency: int | None = None
    skip_hours: tuple[int, ...] = ()  # 0..23, GMT
    skip_days: tuple[int, ...] = ()  # 0 Monday .. 6 Sunday, GMT


class Outline(Struct, frozen=True, kw_only=True, gc=False):
    """All entries of a document in its order, identified by their bytes.

    ``slices`` are hashes of each entry's bytes, ``setting`` a hash of everything else
    that the entries' content depends on. ``keys`` has, for an entry that was known and
    therefore not read again, the fingerprint of its key, and 0 for one that was read.
    ``region`` is a hash of all slices together, 0 if something else is between them.
    """

    setting: int
    slices: tuple[int, ...]
    keys: tuple[int, ...]
    region: int = 0


class SharedKey(NamedTuple):
    """An entry whose id, link or enclosure is also that of others in its document.

    ``shared`` is the key it would have by that alone, which it had as long as no other
    entry had the same.
    """

    key: str  # the entry's
    shared: str
    source: IdSource  # what ``shared`` was made from


class ParsedFeed(Struct, frozen=True, kw_only=True, gc=False):
    """A whole document that has been read. Entries keep the document's order.

    If known entries were skipped (see `protocols.feeds.ParseContext`), the outline has
    them, and ``entries`` are the others.
    """

    format: FeedFormat
    feed: Feed
    entries: tuple[Entry, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    hints: Hints = field(default_factory=Hints)
    path: str = "strict"  # how it was read: strict, a repair's name, feedparser
    problems: tuple[str, ...] = ()  # what was dropped or repaired, for people
    dropped: int = 0  # entries that were left out: duplicates, too many, or invalid
    is_complete: bool = False  # it lists all entries; missing ones are deleted
    spared: tuple[str, ...] = ()  # keys of entries left out that still exist
    outline: Outline | None = None
    shared_keys: tuple[SharedKey, ...] = ()  # an entry may have several

    @property
    def is_partial(self) -> bool:
        """Whether known entries were skipped."""
        return self.outline is not None and any(self.outline.keys)

    @property
    def entry_count(self) -> int:
        """The number of entries in the document, known ones included."""
        return len(self.outline.keys if self.outline else self.entries)


class Status(Struct, frozen=True, kw_only=True, gc=False):
    """The Superfeedr status block, without the topic URL (filled in at rendering)."""

    code: int | None = None  # 0: the host could not be reached
    http: str = ""
    next_fetch: datetime | None = None
    period: int | None = None  # seconds
    last_fetch: datetime | None = None
    last_parse: datetime | None = None
    last_maintenance_at: datetime | None = None
    entries_count_since_last_maintenance: int | None = None
    velocity: float | None = None
    popularity: float | None = None
    porn_rank: float | None = None
    bozo_rank: float | None = None
    generated_ids: bool = False
    title: str = ""


class Notification(Struct, frozen=True, kw_only=True, gc=False):
    """What one subscriber is sent at once, before it is rendered.

    ``entries`` is ``None`` for a status-only notification (error, recovered): the JSON
    rendering then has no ``items`` key at all. ``updated_keys`` names the entries whose
    state is newer than the record that is being sent.
    """

    topic: str
    hub: str
    status: Status
    feed: Feed
    entries: tuple[Entry, ...] | None = None
    deletions: tuple[Deletion, ...] = ()
    updated_keys: frozenset[str] = frozenset()
    is_digest: bool = False  # the news of a day, whatever was sent of it before
    is_test: bool = False  # no news: somebody tests a callback
