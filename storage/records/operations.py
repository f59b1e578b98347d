"""The database as a whole: its counts, its size, and how much of the log it keeps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

import msgspec

from storage.records.identities import BEFORE_ALL, Position

OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all, on the thread that does the work. An
exception it raises ends the work."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Counts for health and metrics."""

    feeds: int
    subscriptions: int
    fanouts: int
    chunks: int
    retrying: int
    dead_letters: int
    track_queries: int
    oldest_due: datetime | None  # the earliest ``next_fetch`` of an active feed
    oldest_undelivered: datetime | None = None  # of records with first tries to do


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the log is kept. Soft limits stop at what a retrying subscription or
    an unfinished fan-out still needs; hard limits do not stop at retries, whose records
    then go to a dead letter with the reason ``trimmed``.

    Records up to ``soft_end`` and ``hard_end`` also exceed the limits, except those
    younger than ``spared_age``.
    """

    soft_age: float  # seconds
    soft_count: int
    hard_age: float
    hard_count: int
    soft_end: Position = BEFORE_ALL
    hard_end: Position = BEFORE_ALL
    spared_age: float = 0.0  # seconds


class DatabaseStatus(msgspec.Struct, frozen=True, kw_only=True):
    engine: str
    location: str
    version: int  # of the schema in the file
    latest: int  # of the schema this program knows
    epoch: str
    log_end: Position
    size_bytes: int
    free_bytes: int = 0  # of these, in unused pages
    tail: Position = BEFORE_ALL  # the last position that was trimmed
    wal_bytes: int = 0  # of a write-ahead log beside it, not yet in the file itself


class WriteFaults(msgspec.Struct, frozen=True):
    """How many writes failed by a fault of the disk or the server since the database
    was opened, and why the last one did. ``stretches``: how many runs of failures that
    is; a write that succeeds ends a run."""

    count: int = 0
    last: str = ""
    stretches: int = 0

    def one_more(self, reason: str, *, is_first: bool) -> WriteFaults:
        """``is_first``: whether it is the first of its stretch."""
        return WriteFaults(self.count + 1, reason, self.stretches + is_first)


class DiskSample(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement: ``used_bytes`` of the database, without its free pages, and
    ``free_bytes`` of the disk."""

    at: datetime
    used_bytes: int
    free_bytes: int
