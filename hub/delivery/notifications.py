"""Notifications of records, rendered once for all subscribers with the same format.

A record is rendered with the current state of its entries; an entry newer than the
record is marked as updated. Entries deleted since are left out, because deletions have
records of their own. A record of which nothing is left is not sent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Protocol, TypeAlias

import msgspec
import structlog
from msgspec.structs import replace

from hub.core.status.event_messages import api_url_of, render_event
from hub.core.status.feed_status import track_status
from hub.publishing.local_topics import name_topic
from hub.runtime.caching import KeyedLock
from hub.runtime.offloading import run_by_size
from protocols.model import Deletion, Entry, Feed, Link, Notification
from protocols.superfeedr.atom_notifications import ATOM_TYPE, render_atom
from protocols.superfeedr.json_notifications import JSON_TYPE, render_json
from protocols.superfeedr.rendered_values import source_topic
from protocols.urls import selector_of
from storage.contract import LogStore
from storage.packing import unpack, unpack_bytes, unpack_head, unpacked_size
from storage.records import (
    BEFORE_ALL,
    EntryId,
    EntryRef,
    Format,
    Position,
    Record,
    RecordKind,
    SourceFeed,
    StoredEntry,
    Updates,
)
from storage.subscription_filter import DOCUMENT_KINDS, wanted_entries

STATUS_KINDS = frozenset({RecordKind.ERROR, RecordKind.RECOVERED, RecordKind.CONTENT})
"""Kinds of records that are sent as a status without entries. The content itself is
sent to as-is subscriptions only; for other subscriptions a resource that is not a feed
has only a status (Superfeedr 1.10)."""


class LoadedRecord(msgspec.Struct, frozen=True):
    """A record, the entries in it that a subscription wants, and their current state.

    ``source``: for a record of a track query, the feed that the entries belong to.
    """

    record: Record
    refs: tuple[EntryRef, ...]
    stored: list[StoredEntry]
    source: SourceFeed | None = None


class NotificationBuilder:
    """Collects what several records tell: each entry once, in its current state."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.deletions: dict[str, Deletion] = {}
        self.updated: set[str] = set()
        self.has_status = False

    def add(self, loaded: LoadedRecord) -> None:
        record = loaded.record
        self.has_status |= record.kind in STATUS_KINDS
        source = _source_feed(record, loaded.source) if loaded.source else None
        revisions = {ref.entry_id: ref.revision for ref in loaded.refs}
        for each in loaded.stored:
            if each.deleted is not (record.kind is RecordKind.DELETED):
                continue  # it was deleted or restored since, which has its own record
            entry = unpack(each.body, Entry)
            if each.deleted:
                deletion = Deletion(key=entry.key, id=entry.id, at=record.at)
                self.deletions[entry.key] = deletion
            else:
                if source is not None:
                    entry = replace(entry, source=source)
                self.entries.pop(entry.key, None)  # it goes behind the others
                self.entries[entry.key] = entry
                if each.revision > revisions[each.id]:
                    self.updated.add(entry.key)
                else:
                    self.updated.discard(entry.key)


def _source_feed(record: Record, source: SourceFeed) -> Feed:
    """The feed as the source of an entry: with its status at the time of the record,
    and a link to its topic on this hub."""
    head = unpack_head(source.head)
    links = head.links
    if source_topic(head) != source.url:
        links = (Link(rel="superfeedr", href=source.url), *links)
    return replace(head, links=links, status=record.status)


KEPT_DOCUMENTS = 128
KEPT_BYTES = 32 * 2**20

log = structlog.get_logger()


States: TypeAlias = tuple[tuple[EntryId, int], ...]
"""The ids and revisions of the entries that a document shows."""


class NotificationBody(msgspec.Struct, frozen=True):
    """The body of a notification with its media type, ready to be signed and sent.

    ``position``: for an as-is document, the position of the record that brought it. Its
    receiver is then up to date to there, even if it is sent for an earlier record.
    """

    content_type: str
    body: bytes
    position: Position = BEFORE_ALL
    shows: States = ()


_STATUSES = frozenset({RecordKind.ERROR, RecordKind.RECOVERED})


def render_body(
    notification: Notification, format: Format, shows: States = ()
) -> NotificationBody:
    """Render a notification as JSON if that is the format; else as Atom, which as-is
    subscriptions get as well."""
    if format is Format.JSON:
        return NotificationBody(JSON_TYPE, render_json(notification), shows=shows)
    return NotificationBody(ATOM_TYPE, render_atom(notification), shows=shows)


class NotRenderable(Exception):
    """The hub fails to render these records, by its own fault."""


class RenditionTarget(Protocol):
    """The fields of a subscription that decide which document it gets."""

    @property
    def topic(self) -> str: ...

    @property
    def format(self) -> Format: ...

    @property
    def updates(self) -> Updates: ...


class Rendition(msgspec.Struct, frozen=True):
    """All that makes one document differ from another; equal renditions share a
    document."""

    first: Position
    last: Position
    topic: str
    format: Format
    updates: Updates

    @classmethod
    def of(cls, records: Sequence[Record], subscription: RenditionTarget) -> Rendition:
        """The rendition of records of one feed, in order, all wanted by the
        subscription."""
        has_updates = any(each.kind is RecordKind.UPDATED for each in records)
        is_by_topic = subscription.format is Format.BY_TOPIC
        return cls(
            first=records[0].position,
            last=records[-1].position,
            topic=subscription.topic,
            format=Format.ATOM if is_by_topic else subscription.format,
            updates=subscription.updates if has_updates else Updates.NONE,
        )


def is_sent_as_is(subscription: RenditionTarget, record: Record) -> bool:
    """Whether the topic's own document is sent for a record.

    A subscription without a format gets it unless the topic is a feed. The record
    decides that, because at the time of subscribing it may not have been known.
    """
    if subscription.format is not Format.BY_TOPIC:
        return subscription.format is Format.AS_IS
    is_part = bool(selector_of(subscription.topic)) and record.kind in DOCUMENT_KINDS
    return is_part or record.kind is RecordKind.CONTENT


class Notifications:
    """Renders records, and keeps the last documents, bounded by count and bytes.

    A kept document is used only while it shows all entries in their current state: a
    subscriber that was sent a newer state must not be sent an older one.
    """

    def __init__(self, log: LogStore, hub_url: str) -> None:
        self._log = log
        self._hub_url = hub_url
        self._api_url = api_url_of(hub_url)
        self._kept: OrderedDict[Rendition, tuple[States, NotificationBody | None]]
        self._kept = OrderedDict()
        self._kept_bytes = 0
        self._locks: KeyedLock[Rendition] = KeyedLock()

    async def document(
        self, records: Sequence[Record], subscription: RenditionTarget
    ) -> NotificationBody | None:
        """The document that tells a subscription of these records; None if nothing is
        left.

        Raises `NotRenderable`, so that the content of one feed does not end all
        deliveries. For an as-is subscription it is always the latest document, never a
        kept one: an older document for a later record would take the subscriber back.
        """
        if (event := records[-1].event) is not None:
            body = render_event(event, self._api_url)
            return NotificationBody(JSON_TYPE, body)
        if is_sent_as_is(subscription, records[-1]):
            return await self._latest_document(records[-1])
        is_by_topic = subscription.format is Format.BY_TOPIC
        is_status = is_by_topic and records[-1].kind in _STATUSES
        if is_status and await self._is_silent(subscription, records[-1]):
            return None
        rendition = Rendition.of(records, subscription)
        loaded = [await self._read(each, rendition) for each in records]
        states = tuple(
            (each.id, each.revision) for one in loaded for each in one.stored
        )
        async with self._locks.of(rendition):
            kept = self._kept.get(rendition)
            if kept is not None and kept[0] == states:
                self._kept.move_to_end(rendition)
                return kept[1]
            document = await self._render(loaded, rendition, states)
            self._keep(rendition, states, document)
            return document

    async def _is_silent(self, subscription: RenditionTarget, record: Record) -> bool:
        """Whether the topic's own document does not show this status."""
        if selector_of(subscription.topic):
            return True
        if await self._log.feed_head(record.feed_id) is not None:
            return False
        # A resource that answers and never was a feed is no error.
        is_there = record.status.code == HTTPStatus.OK
        return is_there or await self._log.body(record.feed_id) is not None

    async def _read(self, record: Record, rendition: Rendition) -> LoadedRecord:
        refs = wanted_entries(record, rendition.updates)
        source = None
        if record.source is not None:
            source = await self._log.source(record.source, record.feed_id)
            if source is None:  # the owner of the query may not read it
                return LoadedRecord(record, (), [])
        stored = await self._log.entries([ref.entry_id for ref in refs])
        return LoadedRecord(record, refs, stored, source)

    async def _render(
        self, loaded: Sequence[LoadedRecord], rendition: Rendition, states: States
    ) -> NotificationBody | None:
        head = await self._log.feed_head(loaded[-1].record.feed_id)
        rendering = partial(self._rendered, loaded, rendition, states, head)
        try:
            sizes = [unpacked_size(each.body) for one in loaded for each in one.stored]
            return await run_by_size(rendering, sum(sizes), len(sizes))
        except Exception as error:
            record = loaded[-1].record
            log.exception(
                "record_not_rendered",
                feed=record.feed_id,
                position=record.position,
                format=rendition.format.value,
            )
            raise NotRenderable from error

    def _rendered(
        self,
        loaded: Sequence[LoadedRecord],
        rendition: Rendition,
        states: States,
        head: bytes | None,
    ) -> NotificationBody | None:
        news = NotificationBuilder()
        for each in loaded:
            news.add(each)
        has_entries = bool(news.entries or news.deletions)
        if not has_entries and not news.has_status:
            return None
        last = loaded[-1].record
        if last.source is None:
            feed, status = unpack_head(head), last.status
        else:  # a track query has no head: it changed when it last found an entry
            feed, status = Feed(updated=last.at), track_status(last.at)
        notification = Notification(
            topic=rendition.topic,
            hub=self._hub_url,
            status=status,
            feed=feed,
            entries=tuple(news.entries.values()) if has_entries else None,
            deletions=tuple(news.deletions.values()),
            updated_keys=frozenset(news.updated),
        )
        return render_body(name_topic(notification), rendition.format, states)

    async def _latest_document(self, record: Record) -> NotificationBody | None:
        """The topic's own document; bytes and Content-Type are the publisher's."""
        stored = await self._log.body(record.feed_id)
        if stored is None:
            log.warning("document_not_kept", feed=record.feed_id)
            return None
        unpacking = partial(unpack_bytes, stored.body)
        body = await run_by_size(unpacking, unpacked_size(stored.body))
        return NotificationBody(stored.content_type, body, stored.position)

    def _keep(
        self, rendition: Rendition, states: States, document: NotificationBody | None
    ) -> None:
        _, outdated = self._kept.pop(rendition, ((), None))
        self._kept[rendition] = states, document
        self._kept_bytes += _size(document) - _size(outdated)
        while len(self._kept) > KEPT_DOCUMENTS or self._kept_bytes > KEPT_BYTES:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._kept_bytes -= _size(dropped)


def _size(document: NotificationBody | None) -> int:
    return 0 if document is None else len(document.body)
