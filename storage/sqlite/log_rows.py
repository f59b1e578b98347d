"""Rows of records, entries and bodies, and the values they stand for."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import msgspec

from protocols.model import Status
from storage.records import EntryId, EntryRef, Record, RecordKind, StoredEntry
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.readers import Row

_status_decoder = msgspec.json.Decoder(Status)


def read_record(row: Row) -> Record:
    position, at, feed_id, kind, status, refs, is_superseded, source = row
    return Record(
        position=position,
        at=from_milliseconds(at),
        feed_id=feed_id,
        kind=RecordKind(kind),
        status=_status_decoder.decode(status),
        entries=unpack_refs(refs),
        is_superseded=bool(is_superseded),
        source=source,
    )


ENTRY = "e.id, e.feed_id, e.key, e.revision, e.deleted, e.body, e.unlisted"
"""The columns that `read_entry` takes, of ``entries e``."""


def read_entry(row: Row) -> StoredEntry:
    entry_id, feed_id, key, revision, deleted, body, unlisted = row
    return StoredEntry(
        id=entry_id,
        feed_id=feed_id,
        key=key,
        revision=revision,
        deleted=bool(deleted),
        body=body,
        unlisted=bool(unlisted),
    )


def hash_key(key: str) -> bytes:
    """What stands for a key of any length in an index."""
    return hashlib.blake2b(key.encode(), digest_size=16).digest()


def pack_refs(refs: Sequence[tuple[int, int, bool]]) -> bytes:
    """Pack (entry id, revision, fresh) as pairs of 64-bit integers."""
    numbers = [
        number
        for entry_id, revision, fresh in refs
        for number in (entry_id, revision << 1 | fresh)
    ]
    return struct.pack(f"<{len(numbers)}q", *numbers)


def unpack_refs(packed: bytes) -> tuple[EntryRef, ...]:
    return tuple(
        EntryRef(EntryId(entry_id), marked >> 1, bool(marked & 1))
        for entry_id, marked in struct.iter_unpack("<qq", packed)
    )
