"""Entries, deletions and feed heads as JSON objects of the Superfeedr schema.

Objects for orjson, with Superfeedr's camelCase keys. Times are whole seconds UTC. A
key whose value is not known is absent.
"""

from __future__ import annotations

from typing import TypeGuard

from protocols.languages import language_tag
from protocols.model import ActivityObject, Deletion, Entry, Feed, Text
from protocols.superfeedr.extensions import extensions_of
from protocols.superfeedr.ids import source_id, source_topic
from protocols.superfeedr.json_status import status_object
from protocols.superfeedr.json_values import (
    JsonObject,
    actor_object,
    category_object,
    last_segment,
    permalink,
    put_links,
    seconds,
)

DELETE = "delete"
"""The ``verb`` of an item that says no more than that an entry is gone."""


def entry_object(entry: Entry, *, is_updated: bool = False) -> JsonObject:
    """An entry that never changed was last changed when it was published."""
    item: JsonObject = {"id": entry.id}
    if entry.published is not None:
        item["published"] = item["updated"] = seconds(entry.published)
    if entry.updated is not None:
        item["updated"] = seconds(entry.updated)
    item["title"] = entry.title
    _put_contents(item, entry)
    if entry.authors:
        item["actor"] = actor_object(entry.authors[0])
    if entry.categories:
        item["categories"] = [each.term for each in entry.categories]
    _put_activity(item, entry)
    if entry.source is not None:
        item["source"] = _source(entry.source)
    extensions = _entry_extensions(entry)
    if entry.extensions or is_updated:
        extensions = {**extensions_of(entry, is_updated=is_updated), **extensions}
    if extensions:
        item["extensions"] = extensions
    return item


def _put_contents(item: JsonObject, entry: Entry) -> None:
    if entry.summary is not None:
        item["summary"] = entry.summary.value
    if entry.content is not None:
        item["content"] = entry.content.value
    if entry.links:
        put_links(item, entry.links)
        links = item["standardLinks"]
        if "image" in links:
            item["image"] = links["image"][0]["href"]


def deletion_object(deletion: Deletion) -> JsonObject:
    """``{"id": …, "verb": "delete", "updated": …}``: Superfeedr had no such thing."""
    item: JsonObject = {"id": deletion.id, "verb": DELETE}
    if deletion.at is not None:
        item["updated"] = seconds(deletion.at)
    return item


def feed_object(feed: Feed, *, id: str) -> JsonObject:
    """The head of a feed or of a source; ``updated`` is null when it is not known."""
    head: JsonObject = {
        "title": feed.title,
        "updated": seconds(feed.updated) if feed.updated else None,
        "id": id,
    }
    if feed.subtitle:
        head["subtitle"] = feed.subtitle
    if feed.published is not None:
        head["published"] = seconds(feed.published)
    put_links(head, feed.links)
    extensions = {**feed.extensions, **_feed_extensions(feed)}
    if extensions:
        head["extensions"] = extensions
    return head


def _source(source: Feed) -> JsonObject:
    found = feed_object(source, id=source_id(source))
    if source.status is not None:
        found["status"] = status_object(
            source.status,
            topic=source_topic(source),
            has_generated_ids=source.status.generated_ids,
        )
    return found


def _put_activity(item: JsonObject, entry: Entry) -> None:
    """Where, what was done, to what, and in which language.

    Latitude first: it is no GeoJSON.
    """
    if entry.geo is not None:
        place = [entry.geo.latitude, entry.geo.longitude]
        item["geo"] = {"type": "point", "coordinates": place}
    if entry.verbs:
        item["verb"] = last_segment(entry.verbs)
    if entry.objects:
        item["object"] = _object(entry.objects[0])
    if tag := language_tag(entry.language):
        item["language"] = tag


def _object(activity_object: ActivityObject) -> JsonObject:
    facts: JsonObject = {
        "id": activity_object.id,
        "title": activity_object.title,
        "objectType": last_segment(activity_object.object_types),
        "permalinkUrl": permalink(activity_object.links),
    }
    found = {key: value for key, value in facts.items() if value}
    if activity_object.content is not None:
        found["content"] = activity_object.content.value
    if activity_object.published is not None:
        found["published"] = seconds(activity_object.published)
    if activity_object.updated is not None:
        found["updated"] = seconds(activity_object.updated)
    if activity_object.authors:
        found["actor"] = actor_object(activity_object.authors[0])
    return found


def _entry_extensions(entry: Entry) -> JsonObject:
    """What Atom says of an entry and Superfeedr's JSON has no key for."""
    found: JsonObject = {}
    if len(entry.authors) > 1:
        found["authors"] = [actor_object(each) for each in entry.authors[1:]]
    if entry.contributors:
        found["contributors"] = [actor_object(each) for each in entry.contributors]
    if described := [
        category_object(each)
        for each in entry.categories
        if each.scheme or each.label  # of which a term does not say everything
    ]:
        found["categories"] = described
    if len(entry.verbs) > 1:
        found["verbs"] = entry.verbs[:-1]
    if entry.object_types:
        found["objectTypes"] = entry.object_types
    if len(entry.objects) > 1:
        found["objects"] = [_object(each) for each in entry.objects[1:]]
    if entry.rights:
        found["rights"] = entry.rights
    if _is_unusual(entry.summary):
        found["summaryType"] = entry.summary.type
    if _is_unusual(entry.content):
        found["contentType"] = entry.content.type
    return found


def _feed_extensions(feed: Feed) -> JsonObject:
    facts: JsonObject = {
        "authors": [actor_object(each) for each in feed.authors],
        "contributors": [actor_object(each) for each in feed.contributors],
        "categories": [category_object(each) for each in feed.categories],
        "language": language_tag(feed.language),
        "rights": feed.rights,
        "generator": feed.generator,
        "icon": feed.icon,
        "logo": feed.logo,
    }
    return {key: value for key, value in facts.items() if value}


def _is_unusual(text: Text | None) -> TypeGuard[Text]:
    """Texts are HTML where nothing else is said."""
    return text is not None and text.type != "html"
