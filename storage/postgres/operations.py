"""`storage.contract.Storage`: an opened PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime, timedelta
from typing import Final

from storage.errors import StorageBusy, StorageError
from storage.postgres.audit import PostgresAudit
from storage.postgres.bulk_plans import PostgresBulkPlans
from storage.postgres.claims import PostgresClaims
from storage.postgres.connections import Connections
from storage.postgres.control import PostgresControl
from storage.postgres.deliveries import FollowingClaims, PostgresDeliveries
from storage.postgres.events import PostgresEvents
from storage.postgres.feed_statistics import PostgresFeedStatistics
from storage.postgres.feeds import OLDEST_DUE, PostgresFeeds
from storage.postgres.fetch_commits import RowTypes
from storage.postgres.known_end import KnownEnd
from storage.postgres.list_watches import PostgresListWatches
from storage.postgres.listings import PostgresListings
from storage.postgres.log import PostgresLog
from storage.postgres.membership import PostgresMembership
from storage.postgres.publishing import (
    PostgresPageList,
    PostgresPages,
    PostgresPublic,
)
from storage.postgres.pushes import PostgresPushes
from storage.postgres.schema import latest_schema
from storage.postgres.search import PostgresSearch
from storage.postgres.selections import (
    PostgresFeedSelections,
    PostgresSubscriptionSelections,
)
from storage.postgres.series import PostgresSeries
from storage.postgres.sessions import PostgresSessions
from storage.postgres.sites import PostgresSites
from storage.postgres.stored_entries import PostgresEntries
from storage.postgres.stored_runs import PostgresPlayground
from storage.postgres.subscriptions import PostgresDigests, PostgresSubscriptions
from storage.postgres.time_columns import note_time
from storage.postgres.tokens import PostgresTokens
from storage.postgres.tracking import PostgresTracking
from storage.postgres.verifications import PostgresVerifications
from storage.records import (
    Backlog,
    DatabaseStatus,
    DiskSample,
    FeedId,
    Position,
    WriteFaults,
)
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds, from_milliseconds_or_none
from storage.sqlite.log_end import LogEnd

_STATUS: Final = (
    "SELECT s.version, h.head, h.tail, pg_database_size(current_database())"
    " FROM fanfare_schema s, log_head h"
)
_BACKLOG: Final = f"""
SELECT (SELECT coalesce(sum(total), 0)::bigint FROM feed_counts
        WHERE health NOT IN ('removed', 'track', 'events')),
    (SELECT coalesce(sum(total), 0)::bigint FROM subscription_counts
        WHERE health NOT IN ('pending', 'gone', 'ended')),
    (SELECT count(*) FROM fanouts), (SELECT count(*) FROM chunks),
    (SELECT count(*) FROM retries), (SELECT count(*) FROM dead_letters),
    (SELECT coalesce(sum(total), 0)::bigint FROM feed_counts WHERE health = 'track'),
    {OLDEST_DUE},
    (SELECT at FROM records WHERE position = least(
        (SELECT min(position) FROM fanouts), (SELECT min(position) FROM chunks)))
"""
_USAGE: Final = """
SELECT purpose, sum(pg_total_relation_size(c.oid))::bigint FROM (VALUES
    ('entries', ARRAY['entries', 'records']), ('search', ARRAY['searched']),
    ('seen', ARRAY['seen_sets', 'slices', 'inventories']),
    ('deliveries', ARRAY['deliveries', 'chunks', 'attempts', 'dead_letters'])
) p (purpose, tables), pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND coalesce(i.inhparent::regclass::text, c.relname) = ANY(tables)
GROUP BY purpose
"""

_DAMAGE: Final = """
SELECT
    (SELECT coalesce(checksum_failures, 0) FROM pg_stat_database
        WHERE datname = current_database()),
    (SELECT string_agg(i.indexrelid::regclass::text, ', ') FROM pg_index i
        JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisvalid),
    (SELECT h.head - h.tail - (SELECT count(*) FROM kept_records) FROM log_head h),
    (SELECT count(*) FROM (SELECT position FROM fanouts UNION ALL
        SELECT position FROM chunks) d
        WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.position = d.position))
"""


class PostgresStorage:
    """Made by `open_database`; owns its connections."""

    def __init__(
        self,
        *,
        location: str,
        connections: Connections,
        box: SecretBox,
        row_types: RowTypes,
        epoch: str,
        log_end: Position,
        known_end: KnownEnd,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_close = on_close
        self._location = location
        self._connections = connections
        self._epoch = epoch
        self._log_end = LogEnd(log_end)
        self._closing: asyncio.Future[None] | None = None
        self._has_noted_time = False
        self.control = control = PostgresControl(connections, self._log_end)
        claims = FollowingClaims(connections, box)
        self.feeds = PostgresFeeds(connections, box, control)
        self.feed_statistics = PostgresFeedStatistics(connections)
        self.log = PostgresLog(connections, row_types, epoch, self._log_end, claims)
        self.entries = PostgresEntries(connections)
        self.sites = PostgresSites(connections)
        self.subscriptions = PostgresSubscriptions(connections, box, control)
        self.digests = PostgresDigests(connections, box)
        self.deliveries = PostgresDeliveries(connections, box, control, claims)
        self.pushes = PostgresPushes(connections, box)
        self.events = PostgresEvents(connections, self._log_end, claims)
        self.tracking = PostgresTracking(connections, control)
        self.verifications = PostgresVerifications(connections, box, control)
        self.audit = PostgresAudit(connections)
        self.membership = PostgresMembership(
            connections, control, epoch, self._log_end, known_end
        )
        self.claims = PostgresClaims(connections)
        self.series = PostgresSeries(connections)
        self.playground = PostgresPlayground(connections, box)
        self.public = PostgresPublic(connections)
        self.pages = PostgresPages(connections)
        self.page_list = PostgresPageList(connections)
        self.search = PostgresSearch(connections)
        self.listings = PostgresListings(connections, box)
        self.feed_selections = PostgresFeedSelections(connections)
        self.subscription_selections = PostgresSubscriptionSelections(connections, box)
        self.tokens = PostgresTokens(connections, control)
        self.sessions = PostgresSessions(connections)
        self.plans = PostgresBulkPlans(connections)
        self.list_watches = PostgresListWatches(connections)

    async def read_ahead(self) -> AbstractContextManager[None]:
        """Nothing: the server answers each connection by itself."""
        return nullcontext()

    async def status(self) -> DatabaseStatus:
        row = await self._connections.first(_STATUS)
        version, last, tail, size_bytes = row or (0, 0, 0, 0)
        return DatabaseStatus(
            engine="postgresql",
            location=self._location,
            version=version,
            latest=latest_schema(),
            epoch=self._epoch,
            log_end=Position(last),
            size_bytes=size_bytes,
            tail=Position(tail),
        )

    async def backlog(self, under_way: Collection[FeedId] = ()) -> Backlog:
        row = await self._connections.first(_BACKLOG, {"without": list(under_way)})
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
        return self._connections.write_error

    def write_faults(self) -> WriteFaults:
        return self._connections.faults

    async def check(self) -> None:
        await self._connections.write("UPDATE hub SET checked_at = checked_at + 1")

    async def note_disk(self, sample: DiskSample, kept_from: datetime) -> None:
        await self._connections.write(
            "SELECT note_disk(%s, %s, %s, %s)",
            (sample.at, sample.used_bytes, sample.free_bytes, kept_from),
        )

    async def disk_samples(self) -> list[DiskSample]:
        rows = await self._connections.all(
            "SELECT at, used_bytes, free_bytes FROM disk_samples ORDER BY at"
        )
        return [
            DiskSample(at=from_milliseconds(at), used_bytes=used, free_bytes=free)
            for at, used, free in rows
        ]

    async def usage(self) -> Mapping[str, int]:
        found = Counter[str]()
        for purpose, size in await self._connections.all(_USAGE):
            found[purpose] += int(size)
        status = await self.status()
        found["other"] = max(0, status.size_bytes - found.total())
        found["free"] = 0
        return found

    async def give_back(self, limit: int) -> int:
        """Sum up counts that are stored as changes, and drop parts of the log that are
        wholly trimmed. Returns 0: the server keeps free pages for new data."""
        await self._connections.write("SELECT compact_counts()")
        with suppress(StorageBusy):  # a long read holds the log: next time
            await self._connections.write("SELECT drop_partitions()")
        return 0

    async def note_time(self, now: datetime) -> timedelta:
        is_first, self._has_noted_time = not self._has_noted_time, True
        try:
            return await note_time(now, self._connections, is_first=is_first)
        except StorageError:
            self._has_noted_time = not is_first
            raise

    @property
    def backup(self) -> None:
        """None: servers are backed up by pg_basebackup and archived WAL."""
        return None

    async def find_damage(self) -> tuple[str, ...]:
        """Damage that the tables show. The pages of its files are the server's to check
        (data checksums, pg_amcheck)."""
        ((checksums, indexes, missing, strays),) = await self._connections.all(_DAMAGE)
        found = {
            f"the server has found {checksums} pages with a wrong checksum": checksums,
            f"these indexes are not whole: {indexes}": indexes,
            f"the log lacks {missing} of its records": missing,
            f"{strays} chunks or fan-outs are of records that the log lacks": strays,
        }
        return tuple(what for what, amount in found.items() if amount)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._log_end.close()
        self.control.stop()
        await self._connections.close()
        self._on_close()
