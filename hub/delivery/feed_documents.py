"""A feed as it is stored, rendered like a notification of all that there is."""

from __future__ import annotations

from hub.core.status.feed_status import shown_status
from hub.delivery.notifications import NotificationBody
from hub.local_topics import name_topic
from protocols.model import Entry, Feed, Notification
from protocols.superfeedr.atom_notifications import ATOM_TYPE, render_atom
from protocols.superfeedr.json_notifications import JSON_TYPE, render_json
from storage.contract import Storage
from storage.packing import unpack
from storage.records import FeedState, Format, StoredFeed


async def read_feed_document(
    storage: Storage,
    feed: StoredFeed,
    *,
    topic: str,
    hub_url: str,
    count: int,
    has_unlisted: bool,
) -> Notification:
    """Its newest entries, up to ``count``, under the topic that was asked for.

    ``has_unlisted``: also those that are kept out of whatever many can find.
    """
    standing = await storage.standings.get(feed.id)
    head = await storage.log.feed_head(feed.id)
    if feed.state is FeedState.TRACK:
        stored = await storage.log.latest_entries(feed.id, count)
    else:
        stored = await storage.entries.newest(
            [feed.id], limit=count, listed_only=not has_unlisted
        )
    return name_topic(
        Notification(
            topic=topic,
            hub=hub_url,
            status=shown_status(feed, standing),
            feed=unpack(head, Feed) if head else Feed(),
            entries=tuple(unpack(each.body, Entry) for each in stored),
        )
    )


def render_feed_document(
    notification: Notification, format: Format
) -> NotificationBody:
    """As JSON if that is the format; as Atom, too, for who gets topics as they are."""
    if format is Format.JSON:
        return NotificationBody(JSON_TYPE, render_json(notification))
    return NotificationBody(ATOM_TYPE, render_atom(notification))
