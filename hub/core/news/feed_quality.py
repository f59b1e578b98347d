"""Warnings about a feed's entries, for its status and for people.

The **bozo rank** says how poorly ids and dates tell a feed's entries apart. Each entry
of a document counts its worst fault (see below), one that was left out as a duplicate
counts 1, and the document's share is their mean. The rank of the first document is its
share; each later document moves it half-way to that document's share, so a corrected
fault is forgotten: after four documents a sixteenth is left. An empty document changes
nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from hub.core.news.entry_diff import EntryDiff
from hub.core.news.seen_set import HASHED, MADE_UP, UNDATED
from protocols.model import ParsedFeed
from storage.records import Polling

CHANGED_ID = 1.0
"""The entry was known under another id. An entry that was left out counts as much."""
HASHED_ID = 0.5
"""The entry has no id, link or enclosure to identify it."""
MADE_UP_ID = 0.2
"""The entry is identified by its link or enclosure."""
NO_DATE = 0.2
"""The entry has no date that can be read."""
_FAULTS = tuple(
    max(
        HASHED_ID if flags & HASHED else 0.0,
        MADE_UP_ID if flags & MADE_UP else 0.0,
        NO_DATE if flags & UNDATED else 0.0,
    )
    for flags in range(256)
)
"""An entry's worst fault, by the flags of its sighting."""
MOST_PROBLEMS = 5
LONGEST_PROBLEM = 200


class FeedQuality(TypedDict):
    """Members of `storage.records.Polling`."""

    bozo_rank: float
    generated_ids: bool
    rekeyed: int
    rekeyed_at: datetime | None
    gap_at: datetime | None
    dropped: int
    problems: tuple[str, ...]


def feed_quality(
    before: Polling, news: EntryDiff, document: ParsedFeed, at: datetime
) -> FeedQuality:
    """The stored figures after a document."""
    return FeedQuality(
        bozo_rank=round(_bozo_rank(before, news, document), 3),
        generated_ids=any(each.has_generated_id for each in news.sightings),
        rekeyed=news.rekeyed or before.rekeyed,
        rekeyed_at=at if news.rekeyed else before.rekeyed_at,
        gap_at=at if news.is_gap else before.gap_at,
        dropped=document.dropped,
        problems=tuple(
            problem[:LONGEST_PROBLEM] for problem in document.problems[:MOST_PROBLEMS]
        ),
    )


def remarks(news: EntryDiff, document: ParsedFeed) -> tuple[str, ...]:
    """Warnings about a document, for the status line of its fetch."""
    limit = "bytes" if news.is_too_large else "entries"
    found = (
        (news.rekeyed, f"{news.rekeyed} known under new ids"),
        (document.dropped, f"{document.dropped} left out"),
        (news.is_gap, "no entry was known (gap)"),
        (news.waiting, f"{news.waiting} over the daily limit of {limit}"),
    )
    return tuple(remark for is_found, remark in found if is_found)


def _bozo_rank(before: Polling, news: EntryDiff, document: ParsedFeed) -> float:
    count = len(news.sightings) + document.dropped
    if not count:
        return before.bozo_rank
    faults = sum(_FAULTS[each.flags] for each in news.sightings)
    certain = document.dropped + CHANGED_ID * news.rekeyed
    share = min(1.0, (faults + certain) / count)
    return share if news.is_baseline else (before.bozo_rank + share) / 2
