"""Which records a subscription receives: one rule for every engine and reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from protocols.model import FeedFormat
from storage.records import EntryRef, Format, Record, RecordKind, Subscription, Updates

DOCUMENT_KINDS = frozenset({RecordKind.ENTRIES, RecordKind.UPDATED, RecordKind.CONTENT})
"""The kinds of records for which as-is subscriptions are sent the document."""


_NO_FEEDS = frozenset({"", FeedFormat.PART})


def keeps_document(format: Format, of_topic: str) -> bool:
    """Whether a subscription is sent a topic's own document.

    ``of_topic`` is the format that the topic's feed was last read in; "" if it never
    was a feed.
    """
    if format is Format.BY_TOPIC:
        return of_topic in _NO_FEEDS
    return format is Format.AS_IS


def superseded(kinds: Sequence[RecordKind]) -> list[bool]:
    """For each record of a commit, whether a later one carries the commit's document.

    The document is the same for all of them, so it is sent for the last one only.
    """
    are_documents = [kind in DOCUMENT_KINDS for kind in kinds]
    return [
        is_document and any(are_documents[index + 1 :])
        for index, is_document in enumerate(are_documents)
    ]


def wants(
    format: Format,
    updates: Updates,
    kind: RecordKind,
    any_fresh: bool,
    is_superseded: bool = False,
) -> bool:
    """Whether a subscription with that format and those updates gets a record at all.

    As-is subscriptions get the document when it has news, once for each commit, and
    never a status. ``FRESH`` subscriptions get updates only of entries whose own date
    says that they have just changed.
    """
    if format is Format.AS_IS:
        return kind in DOCUMENT_KINDS and not is_superseded
    match kind:
        case RecordKind.BASELINE:
            return False
        case RecordKind.UPDATED:
            return updates is Updates.ALL or (updates is Updates.FRESH and any_fresh)
        case RecordKind.DELETED:
            return updates is Updates.ALL
        case (
            RecordKind.ENTRIES
            | RecordKind.CONTENT
            | RecordKind.ERROR
            | RecordKind.RECOVERED
            | RecordKind.EVENT
        ):
            return True


def is_due(record: Record, subscription: Subscription) -> bool:
    """Whether the subscription gets that record of its feed."""
    any_fresh = any(each.fresh for each in record.entries)
    return wants(
        subscription.format,
        subscription.updates,
        record.kind,
        any_fresh,
        record.is_superseded,
    )


def wanted_entries(record: Record, updates: Updates) -> tuple[EntryRef, ...]:
    """The entries of a record that a subscription is sent."""
    if record.kind is RecordKind.UPDATED and updates is Updates.FRESH:
        return tuple(ref for ref in record.entries if ref.fresh)
    return record.entries


def wanted_news() -> Iterator[tuple[str, str]]:
    """The rule of `wants` as pairs, for SQL: ``format || '/' || updates`` of a
    subscription, and the ``news`` of records that it gets."""
    either = (False, True)
    for case in product(Format, Updates, RecordKind, either, either):
        format, updates, kind, any_fresh, is_superseded = case
        if wants(format, updates, kind, any_fresh, is_superseded):
            news = f"{kind}/{int(any_fresh)}/{int(is_superseded)}"
            yield f"{format}/{updates}", news
