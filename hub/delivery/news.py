"""What records say together, with the current state of their entries."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from protocols.model import Deletion, Entry, Feed, Link
from protocols.superfeedr.rendered_values import source_topic
from storage.packing import unpack
from storage.records import EntryRef, Record, RecordKind, SourceFeed, StoredEntry

STATUS_KINDS = frozenset({RecordKind.ERROR, RecordKind.RECOVERED, RecordKind.CONTENT})
"""Sent as a status without entries. The content itself is for as-is subscriptions;
to the others a resource that is not a feed has only a status (Superfeedr 1.10)."""


@dataclass(frozen=True, slots=True)
class Told:
    """A record with what it tells a subscription of, and the state that has now.

    ``source``: of a track query's record, the feed that the entries are of.
    """

    record: Record
    refs: tuple[EntryRef, ...]
    stored: list[StoredEntry]
    source: SourceFeed | None = None


class News:
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

    def add(self, told: Told) -> None:
        record = told.record
        self._has_status |= record.kind in STATUS_KINDS
        source = _source_feed(record, told.source) if told.source else None
        revisions = {ref.entry_id: ref.revision for ref in told.refs}
        for each in told.stored:
            if each.deleted is not (record.kind is RecordKind.DELETED):
                continue  # its state changed since, and that has its own record
            entry = unpack(each.body, Entry)
            if each.deleted:
                deletion = Deletion(key=entry.key, id=entry.id, at=record.at)
                self.deletions[entry.key] = deletion
            else:
                if source is not None:
                    entry = replace(entry, source=source)
                self._add_entry(entry, each.revision > revisions[each.id])

    def _add_entry(self, entry: Entry, is_newer: bool) -> None:
        self.entries.pop(entry.key, None)  # its last mention gives it its place
        self.entries[entry.key] = entry
        if is_newer:
            self.updated.add(entry.key)
        else:
            self.updated.discard(entry.key)


def _source_feed(record: Record, source: SourceFeed) -> Feed:
    """With its status when it had the entries, and where it is subscribed to here."""
    head = unpack(source.head, Feed) if source.head else Feed()
    links = head.links
    if source_topic(head) != source.url:
        links = (Link(rel="superfeedr", href=source.url), *links)
    return replace(head, links=links, status=record.status)
