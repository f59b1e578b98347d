"""Notifications as JSON with Superfeedr's keys.

A notification without entries (trouble began or ended) has no ``items`` at all: that
is how clients tell it from one that has. Deletions are items with the verb ``delete``.
"""

from __future__ import annotations

from typing import Final

import orjson

from protocols.model import Notification
from protocols.superfeedr.json_entries import (
    deletion_object,
    entry_object,
    feed_object,
)
from protocols.superfeedr.json_values import JsonObject, seconds
from protocols.superfeedr.status import has_generated_ids

JSON_TYPE: Final = "application/json; charset=utf-8"


def render_json(notification: Notification, items: bytes | None = None) -> bytes:
    """The whole document. ``items`` are those of `render_items`, if at hand:

    they are the same for every topic and subscriber, whom only the head names.
    """
    document = {"status": _status(notification), **feed_object(notification.feed)}
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


def _status(notification: Notification) -> JsonObject:
    """``code`` and ``http`` are always there; the rest only when it is known."""
    status = notification.status
    facts = {
        "nextFetch": seconds(status.next_fetch) if status.next_fetch else None,
        "entriesCountSinceLastMaintenance": status.entries_count_since_last_maintenance,
        "velocity": status.velocity,
        "popularity": status.popularity,
        "pornRank": status.porn_rank,
        "bozoRank": status.bozo_rank,
        "generatedIds": has_generated_ids(notification) or None,
        "title": status.title or None,
        "period": status.period,
        "lastFetch": seconds(status.last_fetch) if status.last_fetch else None,
        "lastParse": seconds(status.last_parse) if status.last_parse else None,
        "lastMaintenanceAt": (
            seconds(status.last_maintenance_at) if status.last_maintenance_at else None
        ),
    }
    known = {key: value for key, value in facts.items() if value is not None}
    topic = {"feed": notification.topic}
    return {"code": status.code, "http": status.http, **known, **topic}
