"""The records of the log that tell of an entry.

The log knows what a record tells, not which records tell of an entry. New entries of a
feed have rising ids, in the order of its records, so the first record of an entry is
found by halving the log, whatever the dates in the feed say.
"""

from __future__ import annotations

from typing import Final

from storage.contract import LogStore
from storage.records import EntryId, FeedId, Position, Record

SOUGHT_RECORDS: Final = 2_000
"""Records of its feed in which an entry is looked for."""
PROBED: Final = 100
"""Records of the feed that are read to see how far new entries have come."""


async def records_of(
    log: LogStore, feed_id: FeedId, entry_id: EntryId, most: int = SOUGHT_RECORDS
) -> list[Record]:
    """The records that tell of an entry, the oldest first, out of the ``most`` of its
    feed from its first one on; none if that is no longer in the log."""
    begin = await _place_before(log, feed_id, entry_id, most)
    records = await log.records(after=begin, limit=most, feed_id=feed_id)
    return [each for each in records if _tells_of(each, entry_id)]


async def _place_before(
    log: LogStore, feed_id: FeedId, entry_id: EntryId, most: int
) -> Position:
    """A place before all records of the entry, with few others between."""
    low, high = 0, int((await log.end()).position)
    while high - low > most // 2:
        middle = (low + high) // 2
        found = await _next_new(log, feed_id, Position(middle))
        if found is None or found[1] > entry_id:
            high = middle
        elif found[1] == entry_id:
            return Position(found[0] - 1)
        else:
            low = max(middle, found[0] - 1)
    return Position(low)


async def _next_new(
    log: LogStore, feed_id: FeedId, after: Position
) -> tuple[Position, EntryId] | None:
    """The next record with a new entry, and the first of them; None if there is none
    among the next records of the feed."""
    for record in await log.records(after=after, limit=PROBED, feed_id=feed_id):
        new = [ref.entry_id for ref in record.entries if ref.revision == 1]
        if new:
            return record.position, min(new)
    return None


def _tells_of(record: Record, entry_id: EntryId) -> bool:
    return any(ref.entry_id == entry_id for ref in record.entries)
