"""Backups and checks of the running hub's database, one at a time.

They take longer the larger the database is, so their progress is reported. Backups into
a directory are made on schedule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from hub.core.durations import duration
from hub.runtime.background import wait_for
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from hub.services.backup_directory import BackupDirectory, BackupFile
from hub.services.service_errors import Conflict
from protocols.protocol_errors import InvalidValue
from storage.contract import Storage
from storage.errors import StorageError

LOOK_SECONDS: Final = 60.0
"""The most seconds between two looks whether a backup is due: the clock may be set."""
RETRY_SECONDS: Final = 600.0
"""Seconds until the next try after a scheduled backup has failed."""

log = structlog.get_logger()


class JobKind(StrEnum):
    BACKUP = "backup"
    CHECK = "check"


class DatabaseJob(msgspec.Struct, frozen=True, kw_only=True):
    """A backup or a check. ``file``: the file that is written or checked. ``done`` of
    ``total`` bytes; the progress of a check is not known. ``findings``: what a check
    found wrong."""

    kind: JobKind
    file: str
    started: datetime
    is_scheduled: bool = False
    done: int = 0
    total: int = 0
    finished: datetime | None = None
    error: str = ""
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A requested job, and those who wait for its end."""

    job: DatabaseJob
    ended: asyncio.Future[DatabaseJob]


class DatabaseJobs:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        metrics: Metrics,
        directory: BackupDirectory | None = None,
    ) -> None:
        """``directory``: of scheduled backups; None: none are made.

        Nor are any made if the engine is backed up by tools of its own.
        """
        self._back_up = storage.backup
        if directory is not None and self._back_up is None:
            log.warning("backups_left_to_the_engine", directory=str(directory.path))
            directory = None
        self.directory = directory
        self._storage = storage
        self._clock = clock
        self._metrics = metrics
        self._waiting: _Waiting | None = None
        self._progress = 0, 0
        self._last: dict[JobKind, DatabaseJob] = {}
        self._retry_at = float("-inf")
        self._failing_since: datetime | None = None
        self._woken = asyncio.Event()

    @property
    def running(self) -> DatabaseJob | None:
        if self._waiting is None:
            return None
        done, total = self._progress
        return replace(self._waiting.job, done=done, total=total)

    def last(self, kind: JobKind) -> DatabaseJob | None:
        """The last job of this kind that ended in this process; None if there is
        none."""
        return self._last.get(kind)

    async def backups(self) -> Sequence[BackupFile]:
        """The backups in the directory, newest first; none if it cannot be read."""
        if self.directory is None:
            return ()
        try:
            return await asyncio.to_thread(self.directory.files)
        except OSError:
            return ()

    def warning(self) -> str:
        """What an operator should know about the scheduled backups; "" if nothing."""
        if self._failing_since is None:
            return ""
        last = self._last[JobKind.BACKUP]
        ago = (self._clock.now() - self._failing_since).total_seconds()
        return f"backups have failed for {duration(max(0.0, ago))}: {last.error}"

    def start_backup(self, destination: str | None) -> DatabaseJob:
        """Begin to write a copy to a new file, by default one in the directory.

        Raises `InvalidValue` and `Conflict`.
        """
        if self._back_up is None:
            raise Conflict("this database is backed up by the tools of its server")
        if destination is not None:
            return self._ask(JobKind.BACKUP, str(new_file(destination)))
        if self.directory is None:
            wanted = "a file, since FANFARE_BACKUP_DIR is not set"
            raise InvalidValue("destination", wanted, "")
        file = self.directory.new_file(self._clock.now())
        return self._ask(JobKind.BACKUP, str(file), scheduled=True)

    async def start_check(self) -> DatabaseJob:
        """Begin to check the whole database. Raises `Conflict`."""
        status = await self._storage.status()
        return self._ask(JobKind.CHECK, status.location)

    async def wait(self, seconds: float) -> DatabaseJob:
        """The current job once it has ended, or in its state after so many seconds.

        Raises `Conflict` if there is no job, and the error of a job that failed.
        """
        waiting = self._waiting
        if waiting is None:
            raise Conflict("no backup or check is running")
        await asyncio.wait([waiting.ended], timeout=seconds)
        if waiting.ended.done():
            return waiting.ended.result()
        return self.running or waiting.job

    async def run(self) -> None:
        """Do jobs that are requested or due, until cancelled."""
        for newest in (await self.backups())[:1]:
            self._note_backup(newest.at, newest.bytes)
        while True:
            self._woken.clear()
            if self._waiting is None:
                await self._begin_scheduled()
            if self._waiting is None:
                await wait_for(self._woken, LOOK_SECONDS)
            else:
                await self._do(self._waiting)

    def _ask(self, kind: JobKind, file: str, *, scheduled: bool = False) -> DatabaseJob:
        if self._waiting is not None:
            under_way = self._waiting.job
            raise Conflict(f"a {under_way.kind} is running: {under_way.file}")
        job = DatabaseJob(
            kind=kind,
            file=file,
            started=self._clock.now(),
            is_scheduled=scheduled,
        )
        ended = asyncio.get_running_loop().create_future()
        ended.add_done_callback(_note_error)
        self._waiting, self._progress = _Waiting(job, ended), (0, 0)
        self._woken.set()
        return job

    async def _begin_scheduled(self) -> None:
        if self.directory is None or self._clock.monotonic() < self._retry_at:
            return
        now = self._clock.now()
        try:
            due_in = await asyncio.to_thread(self.directory.due_in, now)
        except OSError:
            due_in = 0.0  # then the backup itself reports why
        if due_in <= 0 and self._waiting is None:
            file = self.directory.new_file(now)
            self._ask(JobKind.BACKUP, str(file), scheduled=True)

    async def _do(self, waiting: _Waiting) -> None:
        job, failure = waiting.job, None
        findings: tuple[str, ...] = ()
        try:
            if job.kind is JobKind.CHECK:
                findings = await self._storage.find_damage()
            else:
                await self._copy(Path(job.file))
                await self._rotate(job)
        except StorageError as error:
            failure = error
        finally:
            ended = replace(
                self.running or job,
                finished=self._clock.now(),
                error=str(failure or ""),
                findings=findings,
            )
            self._waiting = None
        self._note_end(ended)
        if failure is None:
            waiting.ended.set_result(ended)
        else:
            waiting.ended.set_exception(failure)

    async def _copy(self, destination: Path) -> None:
        if self._back_up is not None:
            await self._back_up(destination, self._note_progress)

    def _note_progress(self, done: int, total: int) -> None:
        """Note the progress; called from the thread that copies."""
        self._progress = done, total

    async def _rotate(self, job: DatabaseJob) -> None:
        """Remove old backups; if that fails, the new backup still counts as a
        success."""
        if self.directory is None or not job.is_scheduled:
            return
        try:
            removed = await asyncio.to_thread(self.directory.rotate)
        except OSError as error:
            log.warning("old_backups_not_removed", error=str(error))
        else:
            if removed:
                log.info("old_backups_removed", count=len(removed))

    def _note_end(self, job: DatabaseJob) -> None:
        self._last[job.kind] = job
        if job.kind is JobKind.CHECK:
            if job.findings:
                log.error("database_damaged", findings=job.findings)
            return
        self._metrics.backups.add("failed" if job.error else "done")
        seconds = (self._clock.now() - job.started).total_seconds()
        if job.error:
            log.warning("backup_failed", file=job.file, error=job.error)
            if job.is_scheduled:
                self._retry_at = self._clock.monotonic() + RETRY_SECONDS
                self._failing_since = self._failing_since or job.started
            return
        log.info("backup_made", file=job.file, bytes=job.total, seconds=seconds)
        self._note_backup(job.started, job.total)
        if job.is_scheduled:
            self._failing_since = None

    def _note_backup(self, at: datetime, size: int) -> None:
        self._metrics.backup_time.value = at.timestamp()
        self._metrics.backup_bytes.value = size


def _note_error(ended: asyncio.Future[DatabaseJob]) -> None:
    """Retrieve an error that nobody waits for; it is in the log already."""
    if not ended.cancelled():
        ended.exception()


def new_file(destination: str) -> Path:
    """The path of a backup to write. Raises `InvalidValue` and `Conflict`."""
    path = Path(destination)
    if not path.is_absolute() or "\0" in destination:
        raise InvalidValue("destination", "an absolute path", destination)
    try:
        has_place, is_taken = path.parent.is_dir(), path.exists()
    except OSError:
        raise InvalidValue("destination", "a shorter path", destination) from None
    if not has_place:
        raise InvalidValue(
            "destination", "a path in an existing directory", destination
        )
    if is_taken:
        raise Conflict(f"{path} exists already; name a new file")
    return path
