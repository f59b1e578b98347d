"""Notifications as JSON with Superfeedr's camelCase keys: objects for orjson.

A notification without entries (a failure began or ended) has no ``items`` at all, by
which clients recognize it. Deletions are items with the verb ``delete``. Times are
whole seconds UTC. A key whose value is not known is absent.

Objects are written out key by key, because this is done for every entry, and a loop
over a table of keys takes several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import orjson

from protocols.languages import language_tag
from protocols.model import (
    ActivityObject,
    Author,
    Category,
    Deletion,
    Entry,
    Feed,
    Link,
    Notification,
    Status,
    first_href,
)
from protocols.superfeedr.atom_values import extensions_of
from protocols.superfeedr.rendered_values import (
    author_id,
    feed_id,
    has_generated_ids,
    source_id,
    source_topic,
)

JsonObject: TypeAlias = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PICTURES = frozenset({"picture", "image", "thumbnail"})


def seconds(moment: datetime) -> int:
    """Whole seconds since 1970; exact even in distant years, where floats round up."""
    since = moment - _EPOCH
    return since.days * 86_400 + since.seconds


def put_links(target: JsonObject, links: Iterable[Link]) -> None:
    """Add every link by its relation, and the first alternate as the permalink."""
    grouped: dict[str, list[JsonObject]] = {}
    for link in links:
        rel = link.rel
        each: JsonObject = {
            "title": link.title,
            "rel": rel,
            "href": link.href,
            "type": link.type,
        }
        if link.length is not None:
            each["length"] = link.length
        if rel in grouped:
            grouped[rel].append(each)
        else:
            grouped[rel] = [each]
    if grouped:
        if "alternate" in grouped:
            target["permalinkUrl"] = grouped["alternate"][0]["href"]
        target["standardLinks"] = grouped


def actor_object(person: Author) -> JsonObject:
    """A person as an actor, without an e-mail address, as in Superfeedr."""
    actor: JsonObject = {}
    if person.name:
        actor["displayName"] = person.name
    if id := author_id(person):
        actor["id"] = id
    if person.title:
        actor["title"] = person.title
    if page := first_href(person.links, "alternate") or person.uri:
        actor["permalinkUrl"] = page
    for link in person.links:
        if link.rel in _PICTURES:
            actor["image"] = link.href
            break
    if kind := last_segment(person.object_types):
        actor["objectType"] = kind
    return actor


def last_segment(uris: Sequence[str]) -> str:
    """The last segment of a type: ``http://activitystrea.ms/schema/1.0/place`` is
    ``place``."""
    return uris[-1].rstrip("/").rpartition("/")[2] if uris else ""


def category_object(category: Category) -> JsonObject:
    found: JsonObject = {"term": category.term}
    if category.scheme:
        found["scheme"] = category.scheme
    if category.label:
        found["label"] = category.label
    return found


DELETE = "delete"
"""The ``verb`` of an item that only says that an entry is gone."""


def entry_object(entry: Entry, *, is_updated: bool = False) -> JsonObject:
    """An entry as an item. Without ``updated``, that is the date of publication."""
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
    """``{"id": …, "verb": "delete", "updated": …}``, which Superfeedr did not have."""
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
    """Add place, verb, object and language.

    Latitude comes first, unlike in GeoJSON.
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
        "permalinkUrl": first_href(activity_object.links, "alternate"),
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
    """The parts of an entry for which Superfeedr's JSON has no key."""
    found: JsonObject = {}
    if len(entry.authors) > 1:
        found["authors"] = [actor_object(each) for each in entry.authors[1:]]
    if entry.contributors:
        found["contributors"] = [actor_object(each) for each in entry.contributors]
    if described := [
        category_object(each)
        for each in entry.categories
        if each.scheme or each.label  # a term alone would be incomplete
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
    if entry.summary is not None and entry.summary.type != "html":
        found["summaryType"] = entry.summary.type
    if entry.content is not None and entry.content.type != "html":
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


def status_object(
    status: Status,
    *,
    topic: str,
    has_generated_ids: bool = False,
    is_digest: bool = False,
    is_test: bool = False,
) -> JsonObject:
    """The status. ``code``, ``http`` and ``feed`` are always there, the rest if
    known.
    """
    facts = {
        "nextFetch": seconds(status.next_fetch) if status.next_fetch else None,
        "entriesCountSinceLastMaintenance": status.entries_count_since_last_maintenance,
        "velocity": status.velocity,
        "popularity": status.popularity,
        "pornRank": status.porn_rank,
        "bozoRank": status.bozo_rank,
        "generatedIds": has_generated_ids or None,
        "title": status.title or None,
        "period": status.period,
        "lastFetch": seconds(status.last_fetch) if status.last_fetch else None,
        "lastParse": seconds(status.last_parse) if status.last_parse else None,
        "lastMaintenanceAt": (
            seconds(status.last_maintenance_at) if status.last_maintenance_at else None
        ),
        "digest": is_digest or None,
        "test": is_test or None,
    }
    known = {key: value for key, value in facts.items() if value is not None}
    return {"code": status.code, "http": status.http, **known, "feed": topic}


JSON_TYPE: Final = "application/json; charset=utf-8"


def render_json(notification: Notification, items: bytes | None = None) -> bytes:
    """The whole document.

    ``items`` may be the bytes of `render_items`, which are the same for every topic and
    subscriber: only the head names these.
    """
    feed, topic = notification.feed, notification.topic
    status = status_object(
        notification.status,
        topic=topic,
        has_generated_ids=has_generated_ids(notification),
        is_digest=notification.is_digest,
        is_test=notification.is_test,
    )
    document = {"status": status, **feed_object(feed, id=feed_id(feed, topic))}
    if notification.entries is not None or notification.deletions:
        document["items"] = (
            _items(notification) if items is None else orjson.Fragment(items)
        )
    return orjson.dumps(document)


def render_items(notification: Notification) -> bytes:
    """Entries, then deletions, as one JSON array."""
    return orjson.dumps(_items(notification))


def _items(notification: Notification) -> list[JsonObject]:
    updated = notification.updated_keys
    entries = [
        entry_object(entry, is_updated=entry.key in updated)
        for entry in notification.entries or ()
    ]
    return entries + [deletion_object(each) for each in notification.deletions]
