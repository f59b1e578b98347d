"""What a fetch found, encoded and packed outside of the writer."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from protocols.model import Deletion, Entry
from storage.packing import pack_bytes
from storage.records import (
    DocumentWrite,
    FetchCommit,
    Matched,
    PushCount,
    RecordWrite,
    SiteWrite,
    StoredBody,
    pace_of,
)
from storage.sqlite.columns import to_milliseconds, to_milliseconds_or_none
from storage.sqlite.feed_rows import encode_push
from storage.sqlite.log_rows import hash_key
from storage.subscription_filter import superseded


class EncodedEntry(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    key_hash: bytes
    body: bytes
    published: int | None
    deleted: bool
    unlisted: bool
    last_record: int | None  # index of the last record that names it


class EncodedRecord(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    is_superseded: bool
    status: bytes
    entries: tuple[tuple[str, bool], ...]


class EncodedPush(msgspec.Struct, frozen=True, kw_only=True):
    row: dict[str, object]
    counted: tuple[PushCount, ...]


class EncodedCommit(msgspec.Struct, frozen=True, kw_only=True):
    feed_id: int
    at: int
    feed: dict[str, object]  # parameters of the feed's own rows
    entries: tuple[EncodedEntry, ...]
    records: tuple[EncodedRecord, ...]
    seen: bytes | None
    slices: bytes | None
    head: bytes | None
    inventory: bytes | None
    raw: StoredBody | None
    site: SiteWrite | None
    body: StoredBody | None
    matched: Matched | None
    match_status: bytes  # of the records of track queries
    push: EncodedPush | None


class PlainValues(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be packed of a commit, encoded: deletions before entries."""

    deletions: list[bytes]
    entries: list[bytes]
    head: bytes | None
    documents: int  # bytes of the documents, which are packed as they are

    @property
    def size(self) -> int:
        encoded = map(len, (*self.deletions, *self.entries, self.head or b""))
        return sum(encoded) + self.documents


def encode_values(fetch: FetchCommit) -> PlainValues:
    """A deletion's body is for an entry that is not known: else the last one stays."""
    encode = msgspec.json.encode
    documents = (each for each in (fetch.raw, fetch.body) if each is not None)
    return PlainValues(
        deletions=[encode(Entry(key=e.key, id=e.id)) for e in fetch.deletions],
        entries=[encode(entry) for entry in fetch.entries],
        head=None if fetch.head is None else encode(fetch.head),
        documents=sum(len(each.body) for each in documents),
    )


def encode_commit(fetch: FetchCommit, values: PlainValues) -> EncodedCommit:
    """``values`` are those of the commit; here they are packed."""
    at = to_milliseconds(fetch.at)
    last_records = {
        key: index
        for index, record in enumerate(fetch.records)
        for key, _fresh in record.entries
    }
    return EncodedCommit(
        feed_id=fetch.feed_id,
        at=at,
        feed={
            "id": fetch.feed_id,
            "next_fetch": to_milliseconds(fetch.next_fetch),
            "pace": pace_of(fetch.polling.period),
            "polling": msgspec.json.encode(fetch.polling),
            "fetch_url": fetch.polling.fetch_url,
            "unlisted": fetch.polling.unlisted,
            "state": fetch.state,
            "title": fetch.title,
            "format": fetch.format,
            "removed_at": at if fetch.state == "removed" else None,
        },
        entries=tuple(_encode_entries(fetch, values, at, last_records)),
        records=tuple(map(_encode_record, fetch.records, _superseded(fetch))),
        seen=fetch.seen,
        slices=fetch.slices,
        head=None if values.head is None else pack_bytes(values.head),
        inventory=fetch.inventory,
        raw=_pack_document(fetch.raw),
        site=fetch.site,
        body=_pack_document(fetch.body),
        matched=fetch.matched,
        match_status=msgspec.json.encode(fetch.records[-1].status)
        if fetch.matched and fetch.matched.matches
        else b"",
        push=EncodedPush(row=encode_push(fetch.push), counted=fetch.push.counted)
        if fetch.push
        else None,
    )


def _encode_entries(
    fetch: FetchCommit, values: PlainValues, at: int, last_records: dict[str, int]
) -> Iterator[EncodedEntry]:
    for deletion, plain in zip(fetch.deletions, values.deletions, strict=True):
        yield _encode_deletion(deletion, plain, last_records.get(deletion.key))
    for entry, plain in zip(fetch.entries, values.entries, strict=True):
        yield _encode_entry(entry, plain, at, last_records.get(entry.key))


def _encode_entry(
    entry: Entry, plain: bytes, at: int, last_record: int | None
) -> EncodedEntry:
    """A date in the future counts as now: it must not stay the latest for years."""
    published = to_milliseconds_or_none(entry.published or entry.updated)
    return EncodedEntry(
        key=entry.key,
        key_hash=hash_key(entry.key),
        body=pack_bytes(plain),
        published=None if published is None else min(published, at),
        deleted=False,
        unlisted=entry.unlisted,
        last_record=last_record,
    )


def _encode_deletion(
    deletion: Deletion, plain: bytes, last_record: int | None
) -> EncodedEntry:
    return EncodedEntry(
        key=deletion.key,
        key_hash=hash_key(deletion.key),
        body=pack_bytes(plain),
        published=None,
        deleted=True,
        unlisted=False,
        last_record=last_record,
    )


def _pack_document(document: DocumentWrite | None) -> StoredBody | None:
    if document is None:
        return None
    body = pack_bytes(document.body)
    return StoredBody(content_type=document.content_type, body=body)


def _superseded(fetch: FetchCommit) -> list[bool]:
    return superseded([record.kind for record in fetch.records])


def _encode_record(record: RecordWrite, is_superseded: bool) -> EncodedRecord:
    return EncodedRecord(
        kind=record.kind,
        is_superseded=is_superseded,
        status=msgspec.json.encode(record.status),
        entries=record.entries,
    )
