"""What subscribers are sent for a record: rendered once for all who get the same.

A record is rendered with the current state of its entries, marked as updated where that
is newer than the record. Entries deleted since are left out: who wants to hear of
deletions gets their own record. A record of which nothing is left is not sent.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from protocols.model import Deletion, Entry, Feed, Notification
from protocols.superfeedr.atom import ATOM_TYPE, render_atom
from protocols.superfeedr.json import JSON_TYPE, render_json
from storage.interface import LogStore
from storage.packing import unpack, unpack_bytes
from storage.records import (
    EntryRef,
    Format,
    Position,
    Record,
    RecordKind,
    StoredEntry,
    Updates,
)
from storage.wanted import wanted_entries

STATUS_KINDS = frozenset({RecordKind.ERROR, RecordKind.RECOVERED, RecordKind.CONTENT})
"""Sent as a status without entries. The content itself is for as-is subscriptions;
to the others a resource that is not a feed has only a status (Superfeedr 1.10)."""

KEPT_DOCUMENTS = 128
KEPT_BYTES = 32 * 2**20

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Document:
    """The body of a notification with its media type, ready to be signed and sent."""

    content_type: str
    body: bytes


class Taker(Protocol):
    """What of a subscription decides which document it gets."""

    @property
    def topic(self) -> str: ...

    @property
    def format(self) -> Format: ...

    @property
    def updates(self) -> Updates: ...


@dataclass(frozen=True, slots=True)
class Rendition:
    """All that makes one document differ from another; equal ones are rendered once."""

    first: Position
    last: Position
    topic: str
    format: Format
    updates: Updates

    @classmethod
    def of(cls, records: Sequence[Record], subscription: Taker) -> Rendition:
        """Of records of one feed, in order, that the subscription wants."""
        has_updates = any(each.kind is RecordKind.UPDATED for each in records)
        return cls(
            first=records[0].position,
            last=records[-1].position,
            topic=subscription.topic,
            format=subscription.format,
            updates=subscription.updates if has_updates else Updates.NONE,
        )


class Notifications:
    """Renders records, and keeps the last documents, bounded by count and bytes."""

    def __init__(self, log: LogStore, hub_url: str) -> None:
        self._log = log
        self._hub_url = hub_url
        self._kept: OrderedDict[Rendition, Document | None] = OrderedDict()
        self._kept_bytes = 0
        self._rendering = asyncio.Lock()

    async def document(
        self, records: Sequence[Record], subscription: Taker
    ) -> Document | None:
        """The document that tells a subscription of these records; None: nothing to.

        As-is it is the latest one and never a kept one: an earlier document under a
        later record would take the subscriber back.
        """
        if subscription.format is Format.AS_IS:
            return await self._latest_document(records[-1])
        rendition = Rendition.of(records, subscription)
        async with self._rendering:
            if rendition in self._kept:
                self._kept.move_to_end(rendition)
                return self._kept[rendition]
            document = await self._render(records, rendition)
            self._keep(rendition, document)
            return document

    async def _render(
        self, records: Sequence[Record], rendition: Rendition
    ) -> Document | None:
        notification = await self._notification(records, rendition)
        if notification is None:
            return None
        if rendition.format is Format.ATOM:
            return Document(ATOM_TYPE, render_atom(notification))
        return Document(JSON_TYPE, render_json(notification))

    async def _latest_document(self, record: Record) -> Document | None:
        """The topic's own document; bytes and Content-Type are the publisher's."""
        stored = await self._log.body(record.feed_id)
        if stored is None:
            log.warning("document_not_kept", feed=record.feed_id)
            return None
        return Document(stored.content_type, unpack_bytes(stored.body))

    async def _notification(
        self, records: Sequence[Record], rendition: Rendition
    ) -> Notification | None:
        news = _News()
        for record in records:
            refs = wanted_entries(record, rendition.updates)
            stored = await self._log.entries([ref.entry_id for ref in refs])
            news.add(record, refs, stored)
        if news.is_empty:
            return None
        last = records[-1]
        head = await self._log.feed_head(last.feed_id)
        return Notification(
            topic=rendition.topic,
            hub=self._hub_url,
            status=last.status,
            feed=unpack(head, Feed) if head else Feed(),
            entries=None if news.is_status_only else tuple(news.entries.values()),
            deletions=tuple(news.deletions.values()),
            updated_keys=frozenset(news.updated),
        )

    def _keep(self, rendition: Rendition, document: Document | None) -> None:
        self._kept[rendition] = document
        self._kept_bytes += _size(document)
        while len(self._kept) > KEPT_DOCUMENTS or self._kept_bytes > KEPT_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= _size(dropped)


class _News:
    """What records say together: each entry once, in its current state."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.deletions: dict[str, Deletion] = {}
        self.updated: set[str] = set()
        self._has_status = False

    @property
    def is_status_only(self) -> bool:
        return not self.entries and not self.deletions

    @property
    def is_empty(self) -> bool:
        return self.is_status_only and not self._has_status

    def add(
        self, record: Record, refs: Sequence[EntryRef], stored: Sequence[StoredEntry]
    ) -> None:
        self._has_status |= record.kind in STATUS_KINDS
        revisions = {ref.entry_id: ref.revision for ref in refs}
        for each in stored:
            if each.deleted is not (record.kind is RecordKind.DELETED):
                continue  # its state changed since, and that has its own record
            entry = unpack(each.body, Entry)
            if each.deleted:
                deletion = Deletion(key=entry.key, id=entry.id, at=record.at)
                self.deletions[entry.key] = deletion
            else:
                self._add_entry(entry, each.revision > revisions[each.id])

    def _add_entry(self, entry: Entry, is_newer: bool) -> None:
        self.entries.pop(entry.key, None)  # its last mention gives it its place
        self.entries[entry.key] = entry
        if is_newer:
            self.updated.add(entry.key)
        else:
            self.updated.discard(entry.key)


def _size(document: Document | None) -> int:
    return 0 if document is None else len(document.body)
