"""How late entries are: from publication to commit, and from commit to the first
callback.

New entries count: from the commit on all of them, from publication those with a
believable date. Entries of a first document are not news, whatever their dates.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import accumulate, chain
from math import ceil, log2
from typing import Self

import msgspec
from msgspec.structs import replace

from hub.core.schedule.posting_profile import LATE_DATES
from protocols.model import Entry
from storage.records import FetchCommit, Polling, RecordKind

LONGEST_DELAY = timedelta(days=7)
"""Longer delays do not count: they say that the feed was paused, or its server down,
not how fresh the hub is."""


def publication_of(
    entry: Entry, last_success: datetime | None, at: datetime
) -> datetime | None:
    """When a new entry was published, if its date is believable.

    ``last_success`` is when its feed was last read before, ``at`` when it was read with
    the entry. A date is not believable

    - that lies in the future;
    - at midnight (UTC), as dates without a time are read;
    - more than an hour before the feed was last read, without the entry: it was dated
      back, or its publisher held it back;
    - or more than a week ago.
    """
    date = entry.published or entry.updated
    if date is None or last_success is None or date > at:
        return None
    is_date_alone = not (date.hour or date.minute or date.second or date.microsecond)
    earliest = max(last_success - LATE_DATES, at - LONGEST_DELAY)
    return None if is_date_alone or date < earliest else date


def publications(
    before: Polling, commit: FetchCommit
) -> tuple[tuple[datetime, ...], ...]:
    """For each record of a commit the believable publications of its new entries.

    Entries of a part of a page have none: the hub made their dates.
    """
    if commit.polling.is_resource:
        return ((),) * len(commit.records)
    dates: dict[str, datetime] = {}
    for entry in commit.entries:
        if date := publication_of(entry, before.last_success, commit.at):
            dates[entry.key] = date
    found: list[tuple[datetime, ...]] = []
    for record in commit.records:
        news = record.entries if record.kind is RecordKind.ENTRIES else ()
        found.append(tuple([dates[key] for key, _ in news if key in dates]))
    return tuple(found)


def with_delays(before: Polling, commit: FetchCommit) -> FetchCommit:
    """The commit with what its new entries add to the delays known of the feed."""
    if not commit.records:
        return commit
    dates = [*chain.from_iterable(publications(before, commit))]
    if not dates:
        return commit
    digest = DelayDigest.unpack(commit.polling.delays)
    for date in dates:
        digest.add((commit.at - date).total_seconds())
    polling = replace(commit.polling, delays=digest.pack())
    return replace(commit, polling=polling)


_STEPS_AN_OCTAVE = 2
_MOST_BUCKETS = 62
"""Buckets for delays up to 17 days; longer ones count as 17 days."""
_FULL = 255


class DelaySummary(msgspec.Struct, frozen=True, kw_only=True):
    """Half of the delays are at most ``p50`` seconds, 99 of 100 at most ``p99``; None:
    none was measured. ``entries``: of how many, the older ones counting less."""

    entries: int = 0
    p50: float | None = None
    p99: float | None = None


class DelayDigest:
    """Delays counted in buckets, each of which ends at √2 of the one before: what is
    read from it is the end of a bucket, at most √2 of the delay itself.

    The first is for a millisecond and less. When a bucket is full, at 255, all counts
    are halved: so the last few hundred delays are what counts.
    """

    __slots__ = ("_counts",)

    def __init__(self, counts: Iterable[int] = ()) -> None:
        self._counts = bytearray(counts).ljust(_MOST_BUCKETS, b"\0")

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        return cls(bytes(packed[0]) + packed[1:]) if packed else cls()

    def pack(self) -> bytes:
        """Pack the digest: how many buckets are empty before the first that is not, and
        the counts from there to the last; b"" if all are empty."""
        counts = bytes(self._counts).rstrip(b"\0")
        first = len(counts) - len(counts.lstrip(b"\0"))
        return bytes([first]) + counts[first:] if counts else b""

    def add(self, seconds: float) -> None:
        bucket = 0
        if seconds > 0.001:
            exact = ceil(_STEPS_AN_OCTAVE * log2(1_000 * seconds))
            bucket = min(exact, _MOST_BUCKETS - 1)
        if self._counts[bucket] == _FULL:
            self._counts = bytearray(count >> 1 for count in self._counts)
        self._counts[bucket] += 1

    def summary(self) -> DelaySummary:
        if not any(self._counts):
            return DelaySummary()
        return DelaySummary(
            entries=sum(self._counts), p50=self._quantile(0.5), p99=self._quantile(0.99)
        )

    def _quantile(self, share: float) -> float:
        wanted = ceil(share * sum(self._counts))
        sums = enumerate(accumulate(self._counts))
        return _end(next(bucket for bucket, counted in sums if counted >= wanted))


def _end(bucket: int) -> float:
    """The end of a bucket in seconds, rounded up to three digits."""
    end: float = 2 ** (bucket / _STEPS_AN_OCTAVE) / 1_000
    shown = float(f"{end:.3g}")
    return shown if shown >= end else float(f"{end * 1.005:.3g}")
