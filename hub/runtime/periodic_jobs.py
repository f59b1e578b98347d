"""Scheduled jobs, on APScheduler: each by itself, one round at a time.

The scheduler's messages about delayed rounds are replaced by plainer ones. It goes by
the time of day; if that is set back, it would wait until the former time is reached
again, so all jobs are then scheduled anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

LOOK_SECONDS: Final = 5.0
SET_BACK: Final = 1.0
"""Seconds that a clock has to go back between two looks for it to count."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledJob:
    """A job. ``what`` it does, in words for people: "trimming the log"."""

    what: str
    every: float  # seconds
    work: Callable[[], Awaitable[object]]
    jitter: float | None = None  # seconds


@asynccontextmanager
async def scheduled(
    jobs: Iterable[ScheduledJob],
    *,
    wall: Callable[[], float] = time.time,
    look_seconds: float = LOOK_SECONDS,
) -> AsyncIterator[None]:
    """Run the jobs within the block; ``wall`` returns the time of day in seconds."""
    scheduler = AsyncIOScheduler(timezone=UTC)
    for job in jobs:
        scheduler.add_job(
            _run,
            "interval",
            (job.work,),
            seconds=job.every,
            jitter=job.jitter,
            name=job.what,
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,  # late is better than not at all
        )
    names = {job.id: job.name for job in scheduler.get_jobs()}

    def tell(event: JobSubmissionEvent) -> None:
        log.info(
            "job_still_running",
            job=names[event.job_id],
            hint="it takes longer than usual; its next round begins when it is done",
        )

    scheduler.add_listener(tell, EVENT_JOB_MAX_INSTANCES)
    scheduler.start()
    watching = asyncio.create_task(_watch(scheduler, wall, look_seconds))
    try:
        yield
    finally:
        watching.cancel()
        scheduler.shutdown(wait=False)


async def _run(work: Callable[[], Awaitable[object]]) -> None:
    """Do the work. The scheduler cancels it when it is shut down, and would log that as
    a failure of the job."""
    with suppress(asyncio.CancelledError):
        await work()


async def _watch(
    scheduler: AsyncIOScheduler, wall: Callable[[], float], look_seconds: float
) -> None:
    latest = wall()
    while True:
        await asyncio.sleep(look_seconds)
        now = wall()
        if now < latest - SET_BACK:
            for job in scheduler.get_jobs():
                job.modify(next_run_time=datetime.fromtimestamp(now, UTC))
        latest = now
