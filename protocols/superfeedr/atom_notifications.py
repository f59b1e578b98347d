"""Notifications as Atom, ``<status>`` first, with Superfeedr's namespaces.

Valid Atom 1.0 with one exception: ids, like category schemes, are passed on unchanged,
although RFC 4287 requires IRIs, because ids "MUST NOT change" (4.2.6). A date that Atom
requires and an entry lacks is the document's; an entry without an author gets the feed,
by its title. Elements come in Superfeedr's order, and each entry declares its
namespaces.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from protocols.model import (
    ActivityObject,
    Author,
    Deletion,
    Entry,
    Feed,
    Geo,
    Notification,
    Status,
)
from protocols.superfeedr.atom_values import (
    date_element,
    extensions_of,
    has_alternate,
    iri,
    language_attribute,
    one_alternate_a_type,
    put_categories,
    put_content,
    put_each,
    put_extensions,
    put_links,
    put_people,
    put_text_construct,
    timestamp,
)
from protocols.superfeedr.rendered_values import (
    document_date,
    feed_id,
    has_generated_ids,
    source_id,
    source_topic,
    updated_of,
)
from protocols.xml_syntax import XmlWriter

ATOM: Final = "http://www.w3.org/2005/Atom"
ACTIVITY: Final = "http://activitystrea.ms/spec/1.0/"
DUBLIN_CORE_TERMS: Final = "http://purl.org/dc/terms/"
GEORSS: Final = "http://www.georss.org/georss"
TOMBSTONES: Final = "http://purl.org/atompub/tombstones/1.0"
SUPERFEEDR: Final = "http://superfeedr.com/xmpp-pubsub-ext"

_ENTRY: Final = (
    f'<entry xmlns="{ATOM}" xmlns:georss="{GEORSS}" xmlns:as="{ACTIVITY}"'
    f' xmlns:sf="{SUPERFEEDR}"%b><id>'
).encode()
_ISSUED: Final = (
    f'<dcterms:issued xmlns:dcterms="{DUBLIN_CORE_TERMS}">%b</dcterms:issued>'
).encode()


def put_entry(
    writer: XmlWriter, entry: Entry, *, undated: datetime, is_updated: bool = False
) -> None:
    """Write an entry. ``undated`` is its ``updated`` if it has no dates, as Atom
    requires one.
    """
    published = date_element(b"published", entry.published)
    updated = timestamp(updated_of(entry) or undated)
    writer.parts += (
        _ENTRY % language_attribute(entry.language),
        entry.id,
        b"</id>%b<updated>%b</updated><title>" % (published, updated),
        entry.title,
        b"</title>",
        "",
    )
    put_text_construct(writer, b"summary", entry.summary)
    if entry.content is None and not has_alternate(entry.links):
        # RFC 4287 4.1.2: an entry without an alternate link "MUST" have content. This
        # is empty and without a type, as a feed's own content never is, so it adds
        # nothing.
        writer.put(b"<content></content>")
    if put_content(writer, entry.content) and entry.summary is None:
        writer.put(b'<summary type="text"></summary>')
    if entry.geo is not None:
        _put_point(writer, entry.geo)
    put_links(writer, one_alternate_a_type(entry.links))
    put_categories(writer, entry.categories)
    put_people(writer, b"author", entry.authors)
    put_people(writer, b"contributor", entry.contributors)
    writer.put_element(b"rights", entry.rights)
    put_each(writer, b"as:verb", entry.verbs)
    put_each(writer, b"as:object-type", entry.object_types)
    for each in entry.objects:
        _put_object(writer, each)
    if entry.source is not None:
        _put_source(writer, entry.source)
    put_extensions(writer, extensions_of(entry, is_updated=is_updated))
    writer.put(b"</entry>")


def put_deletion(writer: XmlWriter, deletion: Deletion, *, undated: datetime) -> None:
    """Write a tombstone. RFC 6721 requires both ``ref`` and ``when``."""
    writer.parts += (
        b'<at:deleted-entry xmlns:at="%b" ref="' % TOMBSTONES.encode(),
        deletion.id,
        b'" when="%b"/>' % timestamp(deletion.at or undated),
        "",
    )


def put_head(
    writer: XmlWriter, feed: Feed, *, id: str, updated: datetime | None
) -> None:
    """Write the head of a feed or of a source, links first, as Superfeedr sent it."""
    put_links(writer, one_alternate_a_type(feed.links))
    writer.parts += (b"<title>", feed.title, b"</title>", "")
    if updated:
        writer.put(date_element(b"updated", updated))
    writer.put_element(b"id", id)
    writer.put_element(b"subtitle", feed.subtitle)
    if feed.published:
        # Atom has no such date for a feed; Dublin Core has an element for it.
        writer.put(_ISSUED % timestamp(feed.published))
    put_categories(writer, feed.categories)
    put_people(writer, b"author", feed.authors)
    put_people(writer, b"contributor", feed.contributors)
    writer.put_element(b"rights", feed.rights)
    writer.put_element(b"generator", feed.generator)
    writer.put_element(b"icon", iri(feed.icon))
    writer.put_element(b"logo", iri(feed.logo))
    put_extensions(writer, feed.extensions)


def _put_point(writer: XmlWriter, geo: Geo) -> None:
    place = f"{_decimal(geo.latitude)} {_decimal(geo.longitude)}".encode()
    writer.put(b"<georss:point>%b</georss:point>" % place)


def _decimal(degrees: float) -> str:
    """A number without an exponent, which few readers of places expect."""
    text = repr(degrees)
    return f"{degrees:.12f}" if "e" in text else text


def _put_object(writer: XmlWriter, activity_object: ActivityObject) -> None:
    writer.put(b"<as:object>")
    put_each(writer, b"as:object-type", activity_object.object_types)
    writer.put_element(b"id", activity_object.id)
    writer.put_element(b"title", activity_object.title)
    writer.put(
        date_element(b"published", activity_object.published)
        + date_element(b"updated", activity_object.updated)
    )
    put_content(writer, activity_object.content)
    put_people(writer, b"author", activity_object.authors)
    put_categories(writer, activity_object.categories)
    put_links(writer, activity_object.links)
    writer.put(b"</as:object>")


def _put_source(writer: XmlWriter, source: Feed) -> None:
    """Write a source. What it lacks is left out: nothing is required of a source."""
    writer.put(b"<source%b>" % language_attribute(source.language))
    if source.status is not None:
        put_status(
            writer,
            source.status,
            topic=source_topic(source),
            has_generated_ids=source.status.generated_ids,
        )
    put_head(writer, source, id=source_id(source), updated=source.updated)
    writer.put(b"</source>")


def put_status(
    writer: XmlWriter,
    status: Status,
    *,
    topic: str,
    has_generated_ids: bool = False,
    is_digest: bool = False,
    is_test: bool = False,
) -> None:
    """Write the status. ``http`` is always there; the rest only if it is known."""
    digest = b' digest="true"' if is_digest else b""
    if is_test:
        digest = b'%b test="true"' % digest
    code = b"" if status.code is None else b' code="%d"' % status.code
    count = status.entries_count_since_last_maintenance
    writer.parts += (b'<status feed="', topic)
    writer.parts += (
        b'"%b xmlns="%b"><http%b>' % (digest, SUPERFEEDR.encode(), code),
        status.http,
        b"".join(
            (
                b"</http>",
                date_element(b"next_fetch", status.next_fetch),
                _number(b"entries_count_since_last_maintenance", count),
                _number(b"velocity", status.velocity),
                _number(b"popularity", status.popularity),
                _number(b"porn_rank", status.porn_rank),
                _number(b"bozo_rank", status.bozo_rank),
                b"<generated_ids>true</generated_ids>" if has_generated_ids else b"",
            )
        ),
        "",
    )
    writer.put_element(b"title", status.title)
    writer.put(
        b"".join(
            (
                _number(b"period", status.period),
                date_element(b"last_fetch", status.last_fetch),
                date_element(b"last_parse", status.last_parse),
                date_element(b"last_maintenance_at", status.last_maintenance_at),
                b"</status>",
            )
        )
    )


def _number(tag: bytes, value: float | None) -> bytes:
    return b"" if value is None else b"<%b>%b</%b>" % (tag, str(value).encode(), tag)


ATOM_TYPE: Final = "application/atom+xml"

_FEED: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    f'<feed xmlns="{ATOM}" xmlns:as="{ACTIVITY}"%b%b>'
).encode()
_DIGEST: Final = f' xmlns:sf="{SUPERFEEDR}" sf:digest="true"'.encode()


def render_atom(notification: Notification, entries: bytes | None = None) -> bytes:
    """The whole document.

    ``entries`` may be the bytes of `render_entries`, which are the same for every topic
    and subscriber: only the head names these.
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
    """Write everything before the entries."""
    feed, topic = notification.feed, notification.topic
    digest = _DIGEST if notification.is_digest else b""
    writer.put(_FEED % (digest, language_attribute(feed.language)))
    put_status(
        writer,
        notification.status,
        topic=topic,
        has_generated_ids=has_generated_ids(notification),
        is_digest=notification.is_digest,
        is_test=notification.is_test,
    )
    id, updated = feed_id(feed, topic) or topic, document_date(notification)
    put_head(writer, feed, id=id, updated=updated)
    if not feed.authors and not all(map(_has_author, notification.entries or ())):
        put_people(writer, b"author", [Author(name=feed.title or topic)])


def _has_author(entry: Entry) -> bool:
    """Whether the entry or its source has an author (RFC 4287 4.1.2)."""
    return bool(entry.authors or (entry.source and entry.source.authors))
