"""Values that Atom and JSON share: ids, dates, and the figures of the status."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from protocols.model import Author, Entry, Feed, IdSource, Notification

_OTHERS = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=1_024)
def slug(text: str) -> str:
    """Lower case, every run of other characters than a-z and 0-9 one hyphen."""
    return _OTHERS.sub("-", text.lower())


def feed_id(feed: Feed, topic: str) -> str:
    """The feed's own id; else the topic, as long as anything is known of the feed.

    Superfeedr made one of the title and the hour of ``updated``, which was another one
    with every hour; ours stays, and it is an IRI.
    """
    return feed.id or (topic if feed.title or feed.links else "")


def source_id(source: Feed) -> str:
    """Its own id, else where its document or its site is; "" if that is not known."""
    return source.id or _link(source, "self") or _link(source, "alternate")


def source_topic(source: Feed) -> str:
    """The URL by which a source can be subscribed to; "" if that is not known."""
    return _link(source, "superfeedr") or _link(source, "self")


def author_id(author: Author) -> str:
    return author.id or (slug(author.name) if author.name else "")


def _link(feed: Feed, rel: str) -> str:
    return next((link.href for link in feed.links if link.rel == rel), "")


UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


def updated_of(entry: Entry) -> datetime | None:
    """An entry that never changed was last changed when it was published."""
    return entry.updated or entry.published


def document_date(notification: Notification) -> datetime:
    """The date of the whole, for where Atom requires one and the feed has none."""
    if notification.feed.updated:
        return notification.feed.updated
    dates = [at for each in notification.entries or () if (at := updated_of(each))]
    status = notification.status
    return max(dates, default=None) or status.last_parse or status.last_fetch or UNKNOWN


def has_generated_ids(notification: Notification) -> bool:
    """Whether any id shown was made up, now or, by the feed's status, before."""
    return notification.status.generated_ids or any(
        entry.id_source is not IdSource.FEED for entry in notification.entries or ()
    )
