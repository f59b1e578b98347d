"""Which records a subscription receives; the same rule for every engine and reader."""

from __future__ import annotations

from storage.records import EntryRef, Format, Record, RecordKind, Updates

DOCUMENT_KINDS = frozenset({RecordKind.ENTRIES, RecordKind.UPDATED, RecordKind.CONTENT})
"""What as-is subscriptions are sent the document for."""


def wants(format: Format, updates: Updates, kind: RecordKind, any_fresh: bool) -> bool:
    """Whether a subscription of that kind gets a record at all.

    As-is subscriptions get the document when it has news, never a status. ``FRESH``
    ones get updates only of entries that say they were just changed.
    """
    match kind:
        case RecordKind.BASELINE:
            return False
        case RecordKind.ENTRIES:
            return True
        case RecordKind.ERROR | RecordKind.RECOVERED:
            return format is not Format.AS_IS
        case RecordKind.CONTENT:
            return True
        case RecordKind.UPDATED:
            if format is Format.AS_IS or updates is Updates.ALL:
                return True
            return updates is Updates.FRESH and any_fresh
        case RecordKind.DELETED:
            return updates is Updates.ALL and format is not Format.AS_IS


def wanted_entries(record: Record, updates: Updates) -> tuple[EntryRef, ...]:
    """The entries of a record that a subscription is sent."""
    if record.kind is RecordKind.UPDATED and updates is Updates.FRESH:
        return tuple(ref for ref in record.entries if ref.fresh)
    return record.entries
