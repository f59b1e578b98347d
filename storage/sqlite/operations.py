"""`storage.contract.Storage`: an opened SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from storage.errors import StorageClosed, StorageError, WriteFailed
from storage.records import (
    Backlog,
    DatabaseStatus,
    DiskSample,
    FeedId,
    OnProgress,
    Position,
    WriteFaults,
)
from storage.secrets import SecretBox
from storage.sqlite import time_columns
from storage.sqlite.audit import SqliteAudit
from storage.sqlite.backup import copy_database, ignore_progress
from storage.sqlite.bulk_plans import SqliteBulkPlans
from storage.sqlite.claims import SqliteClaims
from storage.sqlite.columns import (
    from_milliseconds,
    from_milliseconds_or_none,
    pack_ids,
    to_milliseconds,
)
from storage.sqlite.connection_threads import Worker
from storage.sqlite.control import SqliteControl
from storage.sqlite.deliveries import SqliteDeliveries
from storage.sqlite.delivery_chunks import CommitClaims
from storage.sqlite.disk_usage import (
    INDEX_STRUCTURE,
    estimate_tables,
    give_back_pages,
    index_bytes,
    note_sample,
)
from storage.sqlite.events import SqliteEvents
from storage.sqlite.feed_statistics import SqliteFeedStatistics
from storage.sqlite.feeds import OLDEST_DUE, SqliteFeeds
from storage.sqlite.file_identity import FileLock
from storage.sqlite.integrity import find_damage
from storage.sqlite.list_watches import SqliteListWatches
from storage.sqlite.listings import SqliteListings
from storage.sqlite.log import SqliteLog
from storage.sqlite.log_end import LogEnd
from storage.sqlite.membership import SqliteMembership
from storage.sqlite.publishing import SqlitePageList, SqlitePages, SqlitePublic
from storage.sqlite.pushes import SqlitePushes
from storage.sqlite.readers import Readers
from storage.sqlite.schema import latest_version
from storage.sqlite.search import SqliteSearch
from storage.sqlite.selections import (
    SqliteFeedSelections,
    SqliteSubscriptionSelections,
)
from storage.sqlite.series import SqliteSeries
from storage.sqlite.sessions import SqliteSessions
from storage.sqlite.sites import SqliteSites
from storage.sqlite.stored_entries import SqliteEntries
from storage.sqlite.stored_runs import SqlitePlayground
from storage.sqlite.subscriptions import SqliteDigests, SqliteSubscriptions
from storage.sqlite.tokens import SqliteTokens
from storage.sqlite.tracking import SqliteTracking
from storage.sqlite.verifications import SqliteVerifications
from storage.sqlite.writer import TOUCH, Writer


class SqliteStorage:
    """Made by `open_database`; owns its worker, connections and file lock."""

    def __init__(
        self,
        *,
        path: Path,
        connection: sqlite3.Connection,
        readers: Readers,
        lock: FileLock,
        box: SecretBox,
        epoch: str,
        log_end: Position,
        worker: Worker,
    ) -> None:
        self._path = path
        self._has_noted_time = False
        self._lock = lock
        self._readers = readers
        self._epoch = epoch
        self._log_end = LogEnd(log_end)
        self._writer = Writer(connection, worker=worker)
        self._closing: asyncio.Future[None] | None = None
        self.control = SqliteControl(self._log_end)
        self.membership = SqliteMembership(self._writer, readers)
        self.claims = SqliteClaims(self._writer)
        self.feed_statistics = SqliteFeedStatistics(self._writer, readers)
        self.tracking = SqliteTracking(self._writer, readers, self.control)
        claims = CommitClaims(self._writer, box)
        self.log = SqliteLog(self._writer, readers, epoch, self._log_end, claims)
        self.events = SqliteEvents(self._writer, readers, self._log_end, claims)
        self.entries = SqliteEntries(readers)
        self.search = SqliteSearch(self._writer, readers)
        self.feeds = SqliteFeeds(self._writer, readers, box, self.control)
        self.subscriptions = SqliteSubscriptions(
            self._writer, readers, box, self.control
        )
        self.digests = SqliteDigests(self._writer, readers, box)
        self.listings = SqliteListings(readers, box)
        self.verifications = SqliteVerifications(
            self._writer, readers, box, self.control
        )
        self.deliveries = SqliteDeliveries(
            self._writer, readers, box, self.control, claims
        )
        self.tokens = SqliteTokens(self._writer, readers, self.control)
        self.sessions = SqliteSessions(self._writer, readers)
        self.public = SqlitePublic(readers)
        self.sites = SqliteSites(readers)
        self.pushes = SqlitePushes(self._writer, readers, box)
        self.pages = SqlitePages(self._writer, readers)
        self.page_list = SqlitePageList(readers)
        self.feed_selections = SqliteFeedSelections(readers)
        self.subscription_selections = SqliteSubscriptionSelections(readers, box)
        self.plans = SqliteBulkPlans(self._writer, readers)
        self.list_watches = SqliteListWatches(self._writer, readers)
        self.audit = SqliteAudit(self._writer, readers)
        self.series = SqliteSeries(self._writer, readers)
        self.playground = SqlitePlayground(self._writer, readers, box)

    async def read_ahead(self) -> AbstractContextManager[None]:
        return await self._readers.read_ahead()

    async def status(self) -> DatabaseStatus:
        row = await self._readers.first(
            "SELECT v.user_version, s.page_size * c.page_count,"
            " s.page_size * f.freelist_count, m.tail FROM pragma_user_version v,"
            " pragma_page_size s, pragma_page_count c, pragma_freelist_count f, meta m"
        )
        version, size_bytes, free_bytes, tail = row or (0, 0, 0, 0)
        return DatabaseStatus(
            engine="sqlite",
            location=str(self._path),
            version=version,
            latest=latest_version(),
            epoch=self._epoch,
            log_end=self._log_end.position,
            size_bytes=size_bytes,
            free_bytes=free_bytes,
            tail=Position(tail),
            wal_bytes=_size(self._path.with_name(self._path.name + "-wal")),
        )

    async def backlog(self, under_way: Collection[FeedId] = ()) -> Backlog:
        row = await self._readers.first(
            "SELECT (SELECT coalesce(sum(total), 0) FROM feed_counts"
            "  WHERE health NOT IN ('removed', 'track', 'events')),"
            " (SELECT coalesce(sum(total), 0) FROM subscription_counts"
            "  WHERE health NOT IN ('pending', 'gone', 'ended')),"
            " (SELECT count(*) FROM fanouts), (SELECT count(*) FROM chunks),"
            " (SELECT count(*) FROM stragglers), (SELECT count(*) FROM dead),"
            " (SELECT coalesce(sum(total), 0) FROM feed_counts"
            "  WHERE health = 'track'),"
            f" {OLDEST_DUE},"
            " (SELECT at FROM records WHERE position = ("
            "SELECT min(position) FROM (SELECT min(position) position FROM fanouts"
            " UNION ALL SELECT min(position) FROM chunks)))",
            (pack_ids(list(under_way)),),
        )
        *counts, due, undelivered = row or (*(0,) * 7, None, None)
        feeds, subscriptions, fanouts, chunks, retrying, dead_letters, queries = counts
        return Backlog(
            feeds=feeds,
            subscriptions=subscriptions,
            fanouts=fanouts,
            chunks=chunks,
            retrying=retrying,
            dead_letters=dead_letters,
            track_queries=queries,
            oldest_due=from_milliseconds_or_none(due),
            oldest_undelivered=from_milliseconds_or_none(undelivered),
        )

    def write_error(self) -> str:
        return self._writer.write_error

    def write_faults(self) -> WriteFaults:
        return self._writer.faults

    async def check(self) -> None:
        await self._writer.submit(_touch, is_single=True)

    async def usage(self) -> Mapping[str, int]:
        found = Counter[str]()
        for purpose, size in await self._readers.all(estimate_tables()):
            found[purpose] += int(size)
        row = await self._readers.first(INDEX_STRUCTURE)
        found["search"] += index_bytes(row[0]) if row else 0
        status = await self.status()
        used = status.size_bytes - status.free_bytes
        found["other"] = max(0, used - found.total())
        found["free"] = status.free_bytes
        return found

    async def note_disk(self, sample: DiskSample, kept_from: datetime) -> None:
        row = to_milliseconds(sample.at), sample.used_bytes, sample.free_bytes
        unit = partial(note_sample, row, to_milliseconds(kept_from))
        await self._writer.submit(unit)

    async def disk_samples(self) -> list[DiskSample]:
        rows = await self._readers.all(
            "SELECT at, used_bytes, free_bytes FROM disk_samples ORDER BY at"
        )
        return [
            DiskSample(at=from_milliseconds(at), used_bytes=used, free_bytes=free)
            for at, used, free in rows
        ]

    async def give_back(self, limit: int) -> int:
        return await self._writer.submit(partial(give_back_pages, limit))

    async def note_time(self, now: datetime) -> timedelta:
        is_first, self._has_noted_time = not self._has_noted_time, True
        unit = partial(time_columns.note_time, to_milliseconds(now), is_first)
        try:
            back = await self._writer.submit(unit)
        except StorageError:
            self._has_noted_time = not is_first
            raise
        return timedelta(milliseconds=back)

    async def backup(
        self, destination: Path, progress: OnProgress = ignore_progress
    ) -> None:
        """Copy the database, and its key to the destination's name with ``.key``.

        Raises `WriteFailed` if the destination exists or cannot be written.
        """
        with self._abandoning() as is_abandoned:

            def tell(done: int, total: int) -> None:
                if is_abandoned():
                    raise WriteFailed("the backup was interrupted")
                progress(done, total)

            await asyncio.to_thread(copy_database, self._path, destination, tell)

    async def find_damage(self) -> tuple[str, ...]:
        with self._abandoning() as is_abandoned:
            return await asyncio.to_thread(
                find_damage, self._path, is_abandoned=is_abandoned
            )

    @contextmanager
    def _abandoning(self) -> Iterator[Callable[[], bool]]:
        """Yield a function that says whether work in a thread is abandoned: nobody
        waits for it any more, or the storage is being closed."""
        if self._closing is not None:
            raise StorageClosed("the database is closed")
        is_left = threading.Event()
        try:
            yield lambda: is_left.is_set() or self._closing is not None
        finally:
            is_left.set()

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._log_end.close()
        await self._readers.close()
        await self._writer.close()
        self._lock.release()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _touch(connection: sqlite3.Connection) -> None:
    connection.execute(TOUCH)
