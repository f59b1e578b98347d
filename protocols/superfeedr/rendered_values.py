"""Values that Atom and JSON share: ids, dates, and the figures of the status."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from protocols.model import Author, Entry, Feed, IdSource, Notification, first_href

_OTHERS = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=1_024)
def slug(text: str) -> str:
    """Lower case, with each run of characters other than a-z and 0-9 as one hyphen."""
    return _OTHERS.sub("-", text.lower())


def feed_id(feed: Feed, topic: str) -> str:
    """The feed's own id; else the topic, if anything is known of the feed, or "".

    Superfeedr made an id from the title and the hour of ``updated``, so it changed
    every hour; ours is stable, and it is an IRI.
    """
    return feed.id or (topic if feed.title or feed.links else "")


def source_id(source: Feed) -> str:
    """The source's id, else the URL of its document or site; "" if none is known."""
    return (
        source.id
        or first_href(source.links, "self")
        or first_href(source.links, "alternate")
    )


def source_topic(source: Feed) -> str:
    """The URL by which a source can be subscribed to; "" if that is not known."""
    return first_href(source.links, "superfeedr") or first_href(source.links, "self")


def author_id(author: Author) -> str:
    return author.id or (slug(author.name) if author.name else "")


UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


def updated_of(entry: Entry) -> datetime | None:
    """When the entry was last changed, or else published; None if neither is known."""
    return entry.updated or entry.published


def document_date(notification: Notification) -> datetime:
    """The document's date, which Atom requires even if the feed has none."""
    if notification.feed.updated:
        return notification.feed.updated
    dates = [at for each in notification.entries or () if (at := updated_of(each))]
    status = notification.status
    return max(dates, default=None) or status.last_parse or status.last_fetch or UNKNOWN


def has_generated_ids(notification: Notification) -> bool:
    """Whether any id is generated, now or, by the feed's status, before."""
    return notification.status.generated_ids or any(
        entry.id_source is not IdSource.FEED for entry in notification.entries or ()
    )
