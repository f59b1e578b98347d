"""Entries, people and links as Atom elements of the Superfeedr schema.

Whole elements as text, with their namespaces, in the order Superfeedr sent them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from protocols.model import (
    ActivityObject,
    Author,
    Category,
    Deletion,
    Entry,
    Feed,
    Link,
)
from protocols.superfeedr.dates import updated_of
from protocols.superfeedr.extensions import extensions_element, extensions_of
from protocols.superfeedr.ids import author_id, feed_id
from protocols.superfeedr.xml import (
    attribute,
    content_element,
    element,
    escape,
    text_element,
)

ATOM: Final = "http://www.w3.org/2005/Atom"
ACTIVITY: Final = "http://activitystrea.ms/spec/1.0/"
GEORSS: Final = "http://www.georss.org/georss"
SUPERFEEDR: Final = "http://superfeedr.com/xmpp-pubsub-ext"
TOMBSTONES: Final = "http://purl.org/atompub/tombstones/1.0"

_ENTRY: Final = (
    f'<entry xmlns="{ATOM}" xmlns:geo="{GEORSS}" xmlns:as="{ACTIVITY}"'
    f' xmlns:sf="{SUPERFEEDR}"'
)


def timestamp(moment: datetime) -> str:
    """``2025-05-02T06:19:31.000Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def date_element(tag: str, moment: datetime | None) -> str:
    return f"<{tag}>{timestamp(moment)}</{tag}>" if moment else ""


def language_attribute(language: str) -> str:
    return f' xml:lang="{attribute(language)}"' if language else ""


def entry_element(entry: Entry, *, undated: datetime, is_updated: bool = False) -> str:
    """Atom requires ``updated``: ``undated`` is what an entry without dates gets."""
    return "".join(
        (
            _ENTRY,
            language_attribute(entry.language),
            f"><id>{escape(entry.id)}</id>",
            date_element("published", entry.published),
            f"<updated>{timestamp(updated_of(entry) or undated)}</updated>",
            f"<title>{escape(entry.title)}</title>",
            text_element("summary", entry.summary),
            content_element(entry.content),
            _point(entry),
            _links(entry.links),
            *map(_category, entry.categories),
            _people("author", entry.authors),
            _people("contributor", entry.contributors),
            element("rights", entry.rights),
            *(element("as:verb", each) for each in entry.verbs),
            _object_types(entry.object_types),
            *map(_object, entry.objects),
            _source(entry.source, undated),
            extensions_element(extensions_of(entry, is_updated=is_updated)),
            "</entry>",
        )
    )


def deleted_entry_element(deletion: Deletion, *, undated: datetime) -> str:
    """RFC 6721: ``ref`` and ``when`` are both required."""
    when = timestamp(deletion.at or undated)
    return (
        f'<at:deleted-entry xmlns:at="{TOMBSTONES}" ref="{attribute(deletion.id)}"'
        f' when="{when}"/>'
    )


def feed_elements(feed: Feed, *, id: str, updated: datetime) -> str:
    """The head of a feed or of a source, links first, as Superfeedr sent it."""
    return "".join(
        (
            _links(feed.links),
            f"<title>{escape(feed.title)}</title>",
            f"<updated>{timestamp(updated)}</updated>",
            f"<id>{escape(id)}</id>",
            element("subtitle", feed.subtitle),
            date_element("published", feed.published),
            *map(_category, feed.categories),
            _people("author", feed.authors),
            _people("contributor", feed.contributors),
            element("rights", feed.rights),
            element("generator", feed.generator),
            element("icon", feed.icon),
            element("logo", feed.logo),
            extensions_element(feed.extensions),
        )
    )


def _point(entry: Entry) -> str:
    if entry.geo is None:
        return ""
    return f"<geo:point>{entry.geo.latitude!r} {entry.geo.longitude!r}</geo:point>"


def _links(links: Iterable[Link]) -> str:
    return "".join(map(_link, links))


def _link(link: Link) -> str:
    kind = f' type="{attribute(link.type)}"' if link.type else ""
    length = f' length="{link.length}"' if link.length is not None else ""
    return (
        f'<link title="{attribute(link.title)}" rel="{attribute(link.rel)}"'
        f' href="{attribute(link.href)}"{kind}{length}/>'
    )


def _category(category: Category) -> str:
    scheme = f' scheme="{attribute(category.scheme)}"' if category.scheme else ""
    label = f' label="{attribute(category.label)}"' if category.label else ""
    return f'<category term="{attribute(category.term)}"{scheme}{label}/>'


def _people(tag: str, people: Iterable[Author]) -> str:
    return "".join(f"<{tag}>{_person(each)}</{tag}>" for each in people)


def _person(person: Author) -> str:
    """``name`` is required, and only what could be an address is an ``email``."""
    has_address = "@" in person.email.strip("@")
    return "".join(
        (
            f"<name>{escape(person.name)}</name>",
            element("uri", person.uri),
            element("email", person.email) if has_address else "",
            element("id", author_id(person)),
            element("title", person.title),
            _object_types(person.object_types),
            _links(person.links),
        )
    )


def _object_types(types: Iterable[str]) -> str:
    return "".join(element("as:object-type", each) for each in types)


def _object(activity_object: ActivityObject) -> str:
    return "".join(
        (
            "<as:object>",
            _object_types(activity_object.object_types),
            element("id", activity_object.id),
            element("title", activity_object.title),
            date_element("published", activity_object.published),
            date_element("updated", activity_object.updated),
            content_element(activity_object.content),
            _people("author", activity_object.authors),
            *map(_category, activity_object.categories),
            _links(activity_object.links),
            "</as:object>",
        )
    )


def _source(source: Feed | None, undated: datetime) -> str:
    if source is None:
        return ""
    updated = source.updated or undated
    head = feed_elements(source, id=feed_id(source), updated=updated)
    return f"<source{language_attribute(source.language)}>{head}</source>"
