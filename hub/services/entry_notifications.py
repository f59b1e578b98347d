"""Stored entries of one topic or several, combined into one notification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from hub.core.status.feed_status import shown_status
from hub.delivery.notifications import NotificationBody, render_body
from hub.publishing.local_topics import name_topic
from hub.runtime.offloading import run_by_size
from protocols.live.live_messages import BodyFormat
from protocols.model import Entry, Feed, Link, Notification, Status
from storage.packing import unpack, unpacked_size
from storage.records import EntrySource, FeedId, Format, StoredEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedEntries:
    """Entries, newest first, with the feeds that they come from.

    ``topic`` is what was asked for, ``hub`` the URL that subscribers know, ``title``
    the title of the whole unless that is a feed's. ``topics``: the URL that each feed
    was asked for by; by default the feed's own. ``status`` None: the status of the
    feeds.
    """

    topic: str
    hub: str
    entries: Sequence[StoredEntry]
    sources: Sequence[EntrySource]
    is_merged: bool
    title: str = ""
    line: str = ""
    topics: Mapping[FeedId, str]
    status: Status | None = None

    @property
    def size(self) -> int:
        """Bytes of all entries, unpacked."""
        return sum(unpacked_size(entry.body) for entry in self.entries)


async def render(collected: CollectedEntries, format: BodyFormat) -> NotificationBody:
    def rendering() -> NotificationBody:
        return render_body(notify(collected), Format(format))

    return await run_by_size(rendering, collected.size, len(collected.entries))


def notify(collected: CollectedEntries) -> Notification:
    entries = [unpack(each.body, Entry) for each in collected.entries]
    if not collected.is_merged:
        (source,) = collected.sources
        return name_topic(
            Notification(
                topic=collected.topic,
                hub=collected.hub,
                status=shown_status(source.feed, source.statistics),
                feed=_head(source),
                entries=tuple(entries),
            )
        )
    heads = {
        each.feed.id: _source(each, collected.topics) for each in collected.sources
    }
    return Notification(
        topic=collected.topic,
        hub=collected.hub,
        status=collected.status or _status_of_all(collected),
        feed=Feed(title=collected.title),
        entries=tuple(
            replace(entry, source=heads[stored.feed_id])
            for entry, stored in zip(entries, collected.entries, strict=True)
        ),
    )


def _status_of_all(collected: CollectedEntries) -> Status:
    """The combined status: the earliest time of a next fetch, and the latest of a last
    one."""
    every = [shown_status(each.feed, each.statistics) for each in collected.sources]
    if not every:
        return Status(code=200, http=collected.line)
    return Status(
        code=200,
        http=collected.line,
        next_fetch=min(each.next_fetch for each in every if each.next_fetch),
        period=min(each.period or 0 for each in every),
        last_fetch=max(each.last_fetch for each in every if each.last_fetch),
        last_parse=max(each.last_parse for each in every if each.last_parse),
        last_maintenance_at=min(
            each.last_maintenance_at for each in every if each.last_maintenance_at
        ),
    )


def _head(source: EntrySource) -> Feed:
    return unpack(source.head, Feed) if source.head else Feed(title=source.feed.title)


def _source(source: EntrySource, topics: Mapping[FeedId, str]) -> Feed:
    """The feed of an entry that is shown among entries of other feeds."""
    head = _head(source)
    topic = topics.get(source.feed.id, source.feed.url)
    return replace(
        head,
        links=(*head.links, Link(href=topic, rel="superfeedr")),
        status=shown_status(source.feed, source.statistics),
    )
