"""Reads rows of the log and of deliveries as values.

All other rows are read like SQLite's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product
from typing import Final

import msgspec

from protocols.model import Status
from storage.postgres.connections import Row
from storage.records import (
    EntryId,
    EntryRef,
    Format,
    Record,
    RecordKind,
    Updates,
)
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.rows import decode_event
from storage.subscription_filter import wants

_status_decoder = msgspec.json.Decoder(Status)

RECORD: Final = (
    "position, at, feed_id, kind, status, refs, is_superseded, source_id, event"
)
"""The columns that `read_stored_record` takes."""
_NEWS: Final = {
    case: 1 << number
    for number, case in enumerate(product(RecordKind, (False, True), (False, True)))
}
"""A bit for each case: the kind of a record, whether an entry of it is fresh, and
whether a later record of its commit brings the document. New kinds go to the end."""


def news_of(kind: RecordKind, *, any_fresh: bool, is_superseded: bool) -> int:
    """The bit of a record's case."""
    return _NEWS[kind, any_fresh, is_superseded]


def wanted_news_of(format: Format, updates: Updates) -> int:
    """The bits of all records that such a subscription gets: the rule of
    `storage.subscription_filter.wants`, for SQL."""
    return sum(bit for case, bit in _NEWS.items() if wants(format, updates, *case))


def read_stored_record(row: Row) -> Record:
    position, at, feed_id, kind, status, refs, is_superseded, source, event = row
    return Record(
        position=position,
        at=from_milliseconds(at),
        feed_id=feed_id,
        kind=RecordKind(kind),
        status=_status_decoder.decode(status),
        entries=tuple(unpack_references(refs)),
        is_superseded=is_superseded,
        source=source,
        event=None if event is None else decode_event(event),
    )


def unpack_references(packed: bytes) -> Iterator[EntryRef]:
    """Unpack references that the database's ``refer`` has packed."""
    for entry_id, marked in struct.iter_unpack(">qq", packed):
        yield EntryRef(EntryId(entry_id), marked >> 1, bool(marked & 1))
