"""Scheduled housekeeping: old data is deleted, in short pages.

Only this runs on the scheduler. Feeds and deliveries that are due are queries of the
poller and the dispatcher, never jobs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import structlog

from hub.core.disk_limits import ByteLimits, retention_within
from hub.runtime.clock import Clock
from hub.runtime.paced_steps import PacedSteps, StepSize
from hub.runtime.periodic_jobs import ScheduledJob, scheduled
from storage.contract import Storage
from storage.errors import StorageError
from storage.records import (
    FEED_REMOVED,
    IDLE_SESSION,
    LONGEST_SESSION,
    AuditRetention,
    FeedId,
    FeedState,
    Retention,
)

PAGE = 1_000
"""Rows deleted in one transaction, so that no other write waits for long."""
REMOVED_FEEDS_KEPT = timedelta(days=30)
ENDED_SUBSCRIPTIONS_KEPT = timedelta(days=30)
UNWANTED_QUERIES_KEPT = timedelta(days=1, hours=1)
"""How long a track query is kept without subscription or listener: a day, in case they
come back, and an hour, because its use is noted only once an hour."""
WAL_ALARM_BYTES = 256 * 1024 * 1024
"""Four times the size that a write-ahead log keeps if no reader holds it up."""
FREEING = StepSize(count=16, most=256, seconds=0.02)
"""Pages freed in one transaction. If many are free, each takes long: SQLite searches
the list of all free pages."""
FREEING_SECONDS = 1.0
"""Seconds of one round of freeing."""
MOST_FREED = 5_000
"""Pages freed in one round, usually 20 MB, so that the disk is not kept busy."""
ROUND = sys.maxsize
"""`Job.least` of a job that does a whole round at once."""
TRIMMED_RECORDS = 250
"""Records of the log trimmed in one transaction, together with their entries."""
ATTEMPTS_KEPT = timedelta(days=7)
MOST_ATTEMPTS = 1_000_000
"""Failures and catch-ups that are kept of all subscriptions together: some 300 MB."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Job:
    """A job. ``name``: the log event if it did something; ``what`` it does, for
    people."""

    name: str
    what: str
    every: float  # seconds
    page: Callable[[], Awaitable[int]]
    """Does a part of the work; returns how much it did."""
    least: int = PAGE
    """If a part did at least so much, there may be more to do."""


class Housekeeping:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        retention: Retention,
        byte_limits: ByteLimits | None,
        listened: Callable[[], Sequence[FeedId]] = tuple,
        maintain: Callable[[], Awaitable[int]] | None = None,
        audit: AuditRetention | None = None,
    ) -> None:
        """``byte_limits`` None: deleting does not make the database smaller.
        ``listened``: returns the feeds that somebody listens to now.

        ``maintain`` does a round of maintenance, of fewer than `PAGE` feeds.
        """
        self._storage = storage
        self._clock = clock
        self._retention = retention
        self._byte_limits = byte_limits
        self._freeing = PacedSteps(clock, FREEING)
        self._listened = listened
        self._maintain = maintain
        self._audit = audit or AuditRetention()

    @property
    def jobs(self) -> tuple[Job, ...]:
        return (
            Job("log_trimmed", "trimming the log", 300, self._trim_log, least=ROUND),
            Job(
                "pages_given_back",
                "giving free pages back",
                10,
                self._give_back,
                least=ROUND,
            ),
            Job("attempts_trimmed", "trimming attempts", 3_600, self._trim_attempts),
            Job(
                "removals_finished",
                "ending subscriptions of removed feeds",
                600,
                self._finish_removals,
            ),
            Job(
                "removed_feeds_purged",
                "purging removed feeds",
                3_600,
                self._purge_feeds,
            ),
            Job(
                "ended_subscriptions_purged",
                "purging ended subscriptions",
                3_600,
                self._purge_subscriptions,
            ),
            Job("wal_watched", "watching the write-ahead log", 60, self._watch_wal),
            Job("leases_expired", "ending leases", 5, self._end_expired_subscriptions),
            Job(
                "former_secrets_forgotten",
                "forgetting former secrets",
                600,
                self._forget_secrets,
            ),
            Job("queries_retired", "retiring queries", 3_600, self._retire_queries),
            Job("requests_trimmed", "trimming requests", 3_600, self._trim_requests),
            Job("sessions_trimmed", "trimming sessions", 3_600, self._trim_sessions),
            Job("audit_trimmed", "trimming the audit trail", 3_600, self._trim_audit),
            *self._maintenance(),
        )

    def _maintenance(self) -> tuple[Job, ...]:
        if self._maintain is None:
            return ()
        return (Job("feeds_maintained", "maintaining feeds", 60, self._maintain),)

    async def run(self) -> None:
        """Run the jobs until cancelled."""
        jobs = [
            ScheduledJob(
                what=job.what,
                every=job.every,
                work=partial(self.do, job),
                jitter=job.every / 10,
            )
            for job in self.jobs
        ]
        async with scheduled(jobs):
            await asyncio.Event().wait()

    async def do(self, job: Job) -> int:
        """One round of a job, page by page; a failure waits for the next round."""
        done = 0
        try:
            while True:
                page = await job.page()
                done += page
                if page < job.least:
                    break
        except StorageError as error:
            log.warning("housekeeping_failed", job=job.what, error=str(error))
        if done:
            log.info(job.name, count=done)
        return done

    async def _trim_log(self) -> int:
        """Trim records that are too old or too many. The size of the database is
        checked in the next round, because the index of words shrinks only after this
        one."""
        trimmed, now = 0, self._clock.now()
        retention = await self._retention_now()
        while page := await self._storage.log.trim(retention, now, TRIMMED_RECORDS):
            trimmed += page
        return trimmed

    async def _retention_now(self) -> Retention:
        if self._byte_limits is None:
            return self._retention
        database = await self._storage.status()
        log_bytes = (await self._storage.usage())["entries"]
        return retention_within(self._byte_limits, self._retention, database, log_bytes)

    async def _give_back(self) -> int:
        """Give freed pages back to the disk, little by little; nothing is logged."""
        given, until = 0, self._clock.monotonic() + FREEING_SECONDS
        while given < MOST_FREED and self._clock.monotonic() < until:
            wanted = self._freeing.count
            freed = await self._freeing.take_and_rest(self._storage.give_back)
            given += freed
            if freed < wanted:
                break
        return 0

    async def _trim_attempts(self) -> int:
        before = self._clock.now() - ATTEMPTS_KEPT
        return await self._storage.deliveries.trim_attempts(
            before, PAGE, kept=MOST_ATTEMPTS
        )

    async def _finish_removals(self) -> int:
        """End the remaining subscriptions of removed feeds whose removal was
        interrupted."""
        now, ended, last = self._clock.now(), 0, FeedId(0)
        while ended < PAGE:
            feeds = await self._storage.feeds.page(
                after=last, limit=PAGE, state=FeedState.REMOVED
            )
            for feed in feeds:
                last = feed.id
                if await self._storage.subscriptions.count(feed.id):
                    ended += await self._storage.subscriptions.end_all(
                        feed.id, FEED_REMOVED, now, PAGE
                    )
            if len(feeds) < PAGE:
                break
        return ended

    async def _purge_feeds(self) -> int:
        before = self._clock.now() - REMOVED_FEEDS_KEPT
        return await self._storage.feeds.purge_removed(before, PAGE)

    async def _retire_queries(self) -> int:
        now = self._clock.now()
        return await self._storage.tracking.retire(
            now - UNWANTED_QUERIES_KEPT, self._listened(), now, PAGE
        )

    async def _trim_requests(self) -> int:
        return await self._storage.verifications.trim(self._clock.now(), PAGE)

    async def _trim_sessions(self) -> int:
        now = self._clock.now()
        return await self._storage.sessions.trim(
            made_before=now - LONGEST_SESSION,
            used_before=now - IDLE_SESSION,
            limit=PAGE,
        )

    async def _trim_audit(self) -> int:
        kept = self._audit
        before = self._clock.now() - timedelta(seconds=kept.seconds)
        return await self._storage.audit.trim(
            before=before, kept=kept.count, limit=PAGE
        )

    async def _watch_wal(self) -> int:
        """Warn if a long read keeps the write-ahead log out of the database."""
        found = (await self._storage.status()).wal_bytes
        if found > WAL_ALARM_BYTES:
            log.warning(
                "wal_grew",
                bytes=found,
                hint="another program has been reading the database for a long time;"
                " end it",
            )
        return 0

    async def _purge_subscriptions(self) -> int:
        before = self._clock.now() - ENDED_SUBSCRIPTIONS_KEPT
        return await self._storage.subscriptions.purge_ended(before, PAGE)

    async def _forget_secrets(self) -> int:
        now = self._clock.now()
        return await self._storage.subscriptions.forget_secrets(now, PAGE)

    async def _end_expired_subscriptions(self) -> int:
        return await self._storage.subscriptions.expire(self._clock.now(), PAGE)
