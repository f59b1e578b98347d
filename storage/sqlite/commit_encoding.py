"""What a fetch found, encoded outside of the writer."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from protocols.quick import quick_init
from storage.records import (
    EntryWrite,
    FetchCommit,
    Matched,
    PushCount,
    RecordWrite,
    SiteWrite,
    StoredBody,
    pace_of,
)
from storage.wanted import superseded

from .log_rows import hash_key
from .push_rows import encode_push
from .times import to_milliseconds, to_milliseconds_or_none


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedEntry:
    key: str
    key_hash: bytes
    body: bytes
    published: int | None
    deleted: bool
    unlisted: bool
    last_record: int | None  # index of the last record that names it


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecord:
    kind: str
    is_superseded: bool
    status: bytes
    entries: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPush:
    row: dict[str, object]
    counted: tuple[PushCount, ...]


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedCommit:
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


def encode_commit(fetch: FetchCommit) -> EncodedCommit:
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
        entries=tuple(
            _encode_entry(entry, at, last_records.get(entry.key))
            for entry in fetch.entries
        ),
        records=tuple(map(_encode_record, fetch.records, _superseded(fetch))),
        seen=fetch.seen,
        slices=fetch.slices,
        head=fetch.head,
        inventory=fetch.inventory,
        raw=fetch.raw,
        site=fetch.site,
        body=fetch.body,
        matched=fetch.matched,
        match_status=msgspec.json.encode(fetch.records[-1].status)
        if fetch.matched and fetch.matched.matches
        else b"",
        push=EncodedPush(row=encode_push(fetch.push), counted=fetch.push.counted)
        if fetch.push
        else None,
    )


def _encode_entry(entry: EntryWrite, at: int, last_record: int | None) -> EncodedEntry:
    """A date in the future counts as now: it must not stay the latest for years."""
    published = to_milliseconds_or_none(entry.published)
    return EncodedEntry(
        key=entry.key,
        key_hash=hash_key(entry.key),
        body=entry.body,
        published=None if published is None else min(published, at),
        deleted=entry.deleted,
        unlisted=entry.unlisted,
        last_record=last_record,
    )


def _superseded(fetch: FetchCommit) -> list[bool]:
    return superseded([record.kind for record in fetch.records])


def _encode_record(record: RecordWrite, is_superseded: bool) -> EncodedRecord:
    return EncodedRecord(
        kind=record.kind,
        is_superseded=is_superseded,
        status=msgspec.json.encode(record.status),
        entries=record.entries,
    )
