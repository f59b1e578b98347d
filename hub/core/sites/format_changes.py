"""A source that becomes a site, or ceases to be one, at the same URL.

Subscribers are not sent again in one format what they were sent in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime

from hub.core.news.seen_set import (
    DELETED,
    PRESENT,
    SeenSet,
    Sighting,
    day_of,
    link_of,
    sight,
)
from protocols.identity import fingerprint, key_of_link
from protocols.model import Entry, ParsedFeed
from storage.records import StoredSitePage


def news_since_feed(seen: bytes, since: float) -> Callable[[Entry], bool]:
    """A test for news in a site's first reading: pages dated after its time as a feed.

    ``since`` is when the former feed was last read, in seconds since 1970 (0: there was
    none); pages that this feed has shown are not new.
    """
    if not since or not seen:
        return lambda entry: False
    known = SeenSet.unpack(seen)
    links = {each.link for each in known.values() if each.link}
    last_read = datetime.fromtimestamp(since, UTC)

    def is_news(entry: Entry) -> bool:
        date = entry.published or entry.updated
        if date is None or date <= last_read:
            return False
        sighting = sight(entry, 0)
        return sighting.key not in known and sighting.link not in links

    return is_news


def page_keys(document: ParsedFeed) -> tuple[str, ...]:
    """The keys under which a feed's entries would be known as pages of a site."""
    links = (
        link.href
        for entry in document.entries
        for link in entry.links
        if link.rel == "alternate"
    )
    keys = (*(entry.key for entry in document.entries), *map(key_of_link, links))
    return tuple(dict.fromkeys(filter(None, keys)))


def seen_as_pages(
    seen: bytes, pages: Collection[StoredSitePage], at: datetime
) -> bytes:
    """The seen-set of a feed that was a site of these pages, among others.

    The content of the pages is not compared with that of the feed's entries.
    """
    if not pages:
        return seen
    known = SeenSet.unpack(seen) if seen else SeenSet()
    for page in pages:
        sighting = Sighting(
            key=fingerprint(page.key),
            link=link_of(page.key),
            title=0,
            content=0,
            day=day_of(at),
            flags=DELETED if page.is_deleted else PRESENT,
        )
        known.setdefault(sighting.key, sighting)
    return known.pack()
