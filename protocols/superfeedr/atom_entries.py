"""Entries, deletions and feed heads as Atom elements of the Superfeedr schema.

In the order Superfeedr sent them, each entry with its namespaces.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from protocols.model import ActivityObject, Deletion, Entry, Feed, Geo
from protocols.superfeedr.atom_status import SUPERFEEDR, put_status
from protocols.superfeedr.atom_syntax import iri
from protocols.superfeedr.atom_texts import put_content, put_text_construct
from protocols.superfeedr.atom_values import (
    date_element,
    has_alternate,
    language_attribute,
    one_alternate_a_type,
    put_categories,
    put_each,
    put_links,
    put_people,
    timestamp,
)
from protocols.superfeedr.dates import updated_of
from protocols.superfeedr.extensions import extensions_of, put_extensions
from protocols.superfeedr.ids import source_id, source_topic
from protocols.superfeedr.xml import XmlWriter

ATOM: Final = "http://www.w3.org/2005/Atom"
ACTIVITY: Final = "http://activitystrea.ms/spec/1.0/"
DUBLIN_CORE_TERMS: Final = "http://purl.org/dc/terms/"
GEORSS: Final = "http://www.georss.org/georss"
TOMBSTONES: Final = "http://purl.org/atompub/tombstones/1.0"

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
    """Atom requires ``updated``: ``undated`` is what an entry without dates gets."""
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
        # RFC 4287 4.1.2: without the one there "MUST" be the other. Empty and without
        # a type, as content of the feed's own never is, it says no more than the feed.
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
    """RFC 6721: ``ref`` and ``when`` are both required."""
    writer.parts += (
        b'<at:deleted-entry xmlns:at="%b" ref="' % TOMBSTONES.encode(),
        deletion.id,
        b'" when="%b"/>' % timestamp(deletion.at or undated),
        "",
    )


def put_head(
    writer: XmlWriter, feed: Feed, *, id: str, updated: datetime | None
) -> None:
    """The head of a feed or of a source, links first, as Superfeedr sent it."""
    put_links(writer, one_alternate_a_type(feed.links))
    writer.parts += (b"<title>", feed.title, b"</title>", "")
    if updated:
        writer.put(date_element(b"updated", updated))
    writer.put_element(b"id", id)
    writer.put_element(b"subtitle", feed.subtitle)
    if feed.published:
        # Atom knows no such date of a feed; the element of Dublin Core means it.
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
    """Without an exponent, which few readers of places expect."""
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
    """What it does not say of itself is left out: nothing is required of a source."""
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
