"""Notifications as Atom, ``<status>`` first, with Superfeedr's namespaces.

Valid Atom 1.0 but for one thing: ids, like schemes of categories, are passed on as they
came, though RFC 4287 wants IRIs; they "MUST NOT change" (4.2.6) either. A date that
Atom requires and an entry does not have is the document's; entries without an author
get the feed, by its title.
"""

from __future__ import annotations

from typing import Final

from protocols.model import Author, Entry, Notification
from protocols.superfeedr.atom_entries import (
    ACTIVITY,
    ATOM,
    put_deletion,
    put_entry,
    put_head,
)
from protocols.superfeedr.atom_status import SUPERFEEDR, put_status
from protocols.superfeedr.atom_values import language_attribute, put_people
from protocols.superfeedr.dates import document_date
from protocols.superfeedr.ids import feed_id
from protocols.superfeedr.status import has_generated_ids
from protocols.superfeedr.xml import XmlWriter

ATOM_TYPE: Final = "application/atom+xml"

_FEED: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    f'<feed xmlns="{ATOM}" xmlns:as="{ACTIVITY}"%b%b>'
).encode()
_DIGEST: Final = f' xmlns:sf="{SUPERFEEDR}" sf:digest="true"'.encode()


def render_atom(notification: Notification, entries: bytes | None = None) -> bytes:
    """The whole document. ``entries`` are those of `render_entries`, if at hand:

    they are the same for every topic and subscriber, whom only the head names.
    """
    writer = XmlWriter()
    _put_beginning(writer, notification)
    if entries is not None:
        return b"%b%b</feed>" % (writer.finish(), entries)
    _put_entries(writer, notification)
    writer.put(b"</feed>")
    return writer.finish()


def render_entries(notification: Notification) -> bytes:
    """Entries, then deletions as RFC 6721 tombstones, without the feed around them."""
    writer = XmlWriter()
    _put_entries(writer, notification)
    return writer.finish()


def _put_entries(writer: XmlWriter, notification: Notification) -> None:
    undated = document_date(notification)
    updated = notification.updated_keys
    for entry in notification.entries or ():
        put_entry(writer, entry, undated=undated, is_updated=entry.key in updated)
    for deletion in notification.deletions:
        put_deletion(writer, deletion, undated=undated)


def _put_beginning(writer: XmlWriter, notification: Notification) -> None:
    """All but the entries and the end."""
    feed, topic = notification.feed, notification.topic
    digest = _DIGEST if notification.is_digest else b""
    writer.put(_FEED % (digest, language_attribute(feed.language)))
    put_status(
        writer,
        notification.status,
        topic=topic,
        has_generated_ids=has_generated_ids(notification),
        is_digest=notification.is_digest,
    )
    id, updated = feed_id(feed, topic) or topic, document_date(notification)
    put_head(writer, feed, id=id, updated=updated)
    if not feed.authors and not all(map(_has_author, notification.entries or ())):
        put_people(writer, b"author", [Author(name=feed.title or topic)])


def _has_author(entry: Entry) -> bool:
    """Its own, or its source's (RFC 4287 4.1.2)."""
    return bool(entry.authors or (entry.source and entry.source.authors))
