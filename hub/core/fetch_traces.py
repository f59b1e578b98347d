"""The trace that a fetch, its commit and its deliveries belong to.

Deliveries are made later than the commit, in chunks, by retries and perhaps after a
restart. So that they know their trace without anything being stored, its ids are
derived from what every record tells: the feed that was fetched, and when. All records
of one fetch have the same time, and those of track queries name the feed that their
entries are from.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from msgspec import Struct

from storage.records import FeedId, Record, RecordKind

_START = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class FetchTrace(Struct, frozen=True):
    """The ids of a fetch's trace (128 bits), and of two of its spans (64 bits each).

    ``commit`` is None for what no fetch has brought about.
    """

    id: int
    fetch: int
    commit: int | None


def trace_of_fetch(epoch: str, feed_id: FeedId, at: datetime) -> FetchTrace:
    """The trace of a commit at this time. ``epoch``: of the log, which tells hubs
    apart.

    Times count in whole milliseconds, as records are stored.
    """
    source = f"{epoch}-{feed_id}-{(at - _START) // _MILLISECOND}"
    digest = blake2b(source.encode(), digest_size=32).digest()
    return FetchTrace(
        id=int.from_bytes(digest[:16]),
        fetch=int.from_bytes(digest[16:24]),
        commit=int.from_bytes(digest[24:]),
    )


def trace_of_record(epoch: str, record: Record) -> FetchTrace:
    """The trace of the fetch that a record comes from; that of an event of the hub has
    no fetch and no commit."""
    feed_id = record.feed_id if record.source is None else record.source
    found = trace_of_fetch(epoch, feed_id, record.at)
    if record.kind is RecordKind.EVENT:
        return FetchTrace(found.id, found.fetch, None)
    return found
