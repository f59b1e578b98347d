"""Notifications as JSON with Superfeedr's keys.

A notification without entries (trouble began or ended) has no ``items`` at all: that
is how clients tell it from one that has. Deletions are items with the verb ``delete``.
"""

from __future__ import annotations

from typing import Final

import orjson

from protocols.model import Notification
from protocols.superfeedr.ids import feed_id
from protocols.superfeedr.json_entries import (
    deletion_object,
    entry_object,
    feed_object,
)
from protocols.superfeedr.json_status import status_object
from protocols.superfeedr.json_values import JsonObject
from protocols.superfeedr.status import has_generated_ids

JSON_TYPE: Final = "application/json; charset=utf-8"


def render_json(notification: Notification, items: bytes | None = None) -> bytes:
    """The whole document. ``items`` are those of `render_items`, if at hand:

    they are the same for every topic and subscriber, whom only the head names.
    """
    document = _head(notification)
    if notification.entries is not None or notification.deletions:
        document["items"] = (
            _items(notification) if items is None else orjson.Fragment(items)
        )
    return orjson.dumps(document)


def render_items(notification: Notification) -> bytes:
    """Entries, then deletions, as one JSON array."""
    return orjson.dumps(_items(notification))


def _head(notification: Notification) -> JsonObject:
    feed, topic = notification.feed, notification.topic
    status = status_object(
        notification.status,
        topic=topic,
        has_generated_ids=has_generated_ids(notification),
        is_digest=notification.is_digest,
    )
    return {"status": status, **feed_object(feed, id=feed_id(feed, topic))}


def _items(notification: Notification) -> list[JsonObject]:
    updated = notification.updated_keys
    entries = [
        entry_object(entry, is_updated=entry.key in updated)
        for entry in notification.entries or ()
    ]
    return entries + [deletion_object(each) for each in notification.deletions]
