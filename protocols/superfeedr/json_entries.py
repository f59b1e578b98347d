"""Entries, deletions and feed heads as JSON objects of the Superfeedr schema.

Objects for orjson, with Superfeedr's camelCase keys. Times are whole seconds UTC. A
key whose value is not known is absent.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocols.model import ActivityObject, Category, Deletion, Entry, Feed, Text
from protocols.superfeedr.dates import updated_of
from protocols.superfeedr.extensions import extensions_of
from protocols.superfeedr.ids import feed_id
from protocols.superfeedr.json_values import (
    JsonObject,
    actor_object,
    category_object,
    last_segment,
    permalink,
    put_date,
    put_links,
    put_text,
    seconds,
)

DELETE = "delete"
"""The ``verb`` of an item that says no more than that an entry is gone."""


def entry_object(entry: Entry, *, is_updated: bool = False) -> JsonObject:
    item: JsonObject = {"id": entry.id}
    put_date(item, "published", entry.published)
    put_date(item, "updated", updated_of(entry))
    item["title"] = entry.title
    put_text(item, "summary", entry.summary)
    put_text(item, "content", entry.content)
    put_links(item, entry.links)
    if entry.authors:
        item["actor"] = actor_object(entry.authors[0])
    if entry.categories:
        item["categories"] = [each.term for each in entry.categories]
    _put_activity(item, entry)
    if entry.language:
        item["language"] = entry.language
    if entry.source is not None:
        item["source"] = feed_object(entry.source)
    own = extensions_of(entry, is_updated=is_updated)
    extensions = {**own, **_entry_extensions(entry)}
    if extensions:
        item["extensions"] = extensions
    return item


def deletion_object(deletion: Deletion) -> JsonObject:
    """``{"id": …, "verb": "delete", "updated": …}``: Superfeedr had no such thing."""
    item: JsonObject = {"id": deletion.id, "verb": DELETE}
    put_date(item, "updated", deletion.at)
    return item


def feed_object(feed: Feed) -> JsonObject:
    """The head of a feed or of a source; ``updated`` is null when it is not known."""
    head: JsonObject = {
        "title": feed.title,
        "updated": seconds(feed.updated) if feed.updated else None,
        "id": feed_id(feed),
    }
    if feed.subtitle:
        head["subtitle"] = feed.subtitle
    put_date(head, "published", feed.published)
    put_links(head, feed.links)
    extensions = {**feed.extensions, **_feed_extensions(feed)}
    if extensions:
        head["extensions"] = extensions
    return head


def _put_activity(item: JsonObject, entry: Entry) -> None:
    """Where, what was done, to what. Latitude first: it is no GeoJSON."""
    if entry.geo is not None:
        place = [entry.geo.latitude, entry.geo.longitude]
        item["geo"] = {"type": "point", "coordinates": place}
    if entry.verbs:
        item["verb"] = last_segment(entry.verbs)
    if entry.objects:
        item["object"] = _object(entry.objects[0])


def _object(activity_object: ActivityObject) -> JsonObject:
    facts: JsonObject = {
        "id": activity_object.id,
        "title": activity_object.title,
        "objectType": last_segment(activity_object.object_types),
        "permalinkUrl": permalink(activity_object.links),
    }
    found = {key: value for key, value in facts.items() if value}
    put_text(found, "content", activity_object.content)
    put_date(found, "published", activity_object.published)
    put_date(found, "updated", activity_object.updated)
    if activity_object.authors:
        found["actor"] = actor_object(activity_object.authors[0])
    return found


def _entry_extensions(entry: Entry) -> JsonObject:
    """What Atom says of an entry and Superfeedr's JSON has no key for."""
    facts: JsonObject = {
        "authors": [actor_object(each) for each in entry.authors[1:]],
        "contributors": [actor_object(each) for each in entry.contributors],
        "categories": _described(entry.categories),
        "verbs": entry.verbs[:-1],
        "objectTypes": entry.object_types,
        "objects": [_object(each) for each in entry.objects[1:]],
        "rights": entry.rights,
        "summaryType": _unusual_type(entry.summary),
        "contentType": _unusual_type(entry.content),
    }
    return {key: value for key, value in facts.items() if value}


def _feed_extensions(feed: Feed) -> JsonObject:
    facts: JsonObject = {
        "authors": [actor_object(each) for each in feed.authors],
        "contributors": [actor_object(each) for each in feed.contributors],
        "categories": [category_object(each) for each in feed.categories],
        "language": feed.language,
        "rights": feed.rights,
        "generator": feed.generator,
        "icon": feed.icon,
        "logo": feed.logo,
    }
    return {key: value for key, value in facts.items() if value}


def _unusual_type(text: Text | None) -> str:
    """Texts are HTML where nothing else is said."""
    return "" if text is None or text.type == "html" else text.type


def _described(categories: Iterable[Category]) -> list[JsonObject]:
    """Those of which the schema's list of terms does not say everything."""
    return [category_object(each) for each in categories if each.scheme or each.label]
