"""Backups and checks run one at a time, by the clock and when they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.runtime.metrics import Metrics
from hub.services.backup_directory import BackupDirectory
from hub.services.database_jobs import RETRY_SECONDS, DatabaseJobs, JobKind
from hub.services.service_errors import Conflict
from protocols.protocol_errors import InvalidValue
from storage.contract import Storage
from storage.errors import WriteFailed
from tests.support.clock import ManualClock
from tests.support.waiting import eventually

HOUR = 3_600.0
SIZE = 100


@dataclass
class CopiedDatabase:
    """Copies at once, or when it is told to go on."""

    failure: str = ""
    damage: tuple[str, ...] = ()
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def backup(self, path: Path, progress: Callable[[int, int], None]) -> None:
        progress(SIZE // 2, SIZE)
        await self.goes_on.wait()
        if self.failure:
            raise WriteFailed(self.failure)
        progress(SIZE, SIZE)
        await asyncio.to_thread(path.write_bytes, bytes(SIZE))

    async def find_damage(self) -> tuple[str, ...]:
        return self.damage

    async def status(self) -> SimpleNamespace:
        return SimpleNamespace(location="/srv/hub.db")


@dataclass
class Scene:
    database: CopiedDatabase
    clock: ManualClock
    metrics: Metrics
    jobs: DatabaseJobs
    directory: BackupDirectory

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.jobs.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def names(self) -> list[str]:
        return [Path(each.file).name for each in self.directory.files()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    database, clock, metrics = CopiedDatabase(), ManualClock(), Metrics()
    database.goes_on.set()
    directory = BackupDirectory(tmp_path, Path("hub.db"), every=HOUR, kept=2)
    storage = cast("Storage", database)
    jobs = DatabaseJobs(storage, clock, metrics, directory)
    return Scene(database, clock, metrics, jobs, directory)


async def test_backups_are_made_by_the_clock_and_the_newest_are_kept(
    scene: Scene,
) -> None:
    async with scene.running():
        await eventually(lambda: scene.names() == ["hub-20260101T000000Z.db"])
        await eventually(lambda: scene.metrics.backups["done"] == 1)
    for _ in range(2):
        scene.clock.advance(HOUR)
        async with scene.running():
            newest = scene.directory.new_file(scene.clock.now())
            await eventually(newest.exists)
            await eventually(lambda: scene.jobs.running is None)
    assert scene.names() == ["hub-20260101T020000Z.db", "hub-20260101T010000Z.db"]
    assert scene.metrics.backups["done"] == 3
    assert scene.metrics.backup_time.value == scene.clock.now().timestamp()
    assert scene.metrics.backup_bytes.value == SIZE
    assert scene.jobs.warning() == ""


async def test_a_hub_that_starts_knows_the_last_backup_and_waits_for_the_next(
    scene: Scene,
) -> None:
    made = scene.clock.now() - timedelta(seconds=HOUR / 2)
    scene.directory.new_file(made).write_bytes(b"four")

    async with scene.running():
        await eventually(lambda: scene.metrics.backup_bytes.value == 4)
        await asyncio.sleep(0.01)
        assert scene.jobs.running is None

    assert scene.metrics.backup_time.value == made.timestamp()
    assert len(scene.names()) == 1


async def test_backups_that_fail_are_warned_of_until_one_succeeds(scene: Scene) -> None:
    scene.database.failure = "no disk"
    with capture_logs() as lines:
        async with scene.running():
            await eventually(lambda: scene.jobs.last(JobKind.BACKUP) is not None)
    assert [line["event"] for line in lines] == ["backup_failed"]
    scene.clock.advance(RETRY_SECONDS)
    assert scene.jobs.warning() == "backups have failed for 10 min: no disk"
    assert scene.metrics.backups["failed"] == 1

    scene.database.failure = ""
    async with scene.running():
        await eventually(lambda: scene.metrics.backups["done"] == 1)

    assert scene.jobs.warning() == ""


async def test_who_asks_is_told_how_far_it_has_come(
    scene: Scene, tmp_path: Path
) -> None:
    scene.database.goes_on.clear()
    async with scene.running():
        await eventually(lambda: scene.jobs.running is not None)
        job = await scene.jobs.wait(0.01)
        assert (job.done, job.total, job.finished) == (SIZE // 2, SIZE, None)
        with pytest.raises(Conflict, match="a backup is running"):
            scene.jobs.start_backup(None)
        with pytest.raises(Conflict, match="a backup is running"):
            await scene.jobs.start_check()
        scene.database.goes_on.set()
        done = await scene.jobs.wait(5)
    assert done.finished is not None
    assert not done.error
    assert (done.done, done.total) == (SIZE, SIZE)
    with pytest.raises(Conflict, match="no backup or check"):
        await scene.jobs.wait(0)


async def test_who_waits_is_told_why_it_failed(scene: Scene, tmp_path: Path) -> None:
    scene.directory.new_file(scene.clock.now()).touch()
    scene.database.failure = "no disk"
    async with scene.running():
        scene.jobs.start_backup(str(tmp_path / "copy.db"))
        with pytest.raises(WriteFailed, match="no disk"):
            await scene.jobs.wait(5)
    assert scene.jobs.warning() == "", "only of those by the clock"


async def test_damage_is_told_and_logged(scene: Scene) -> None:
    scene.directory.new_file(scene.clock.now()).touch()
    scene.database.damage = ("page 3 is torn",)
    async with scene.running():
        await scene.jobs.start_check()
        with capture_logs() as lines:
            job = await scene.jobs.wait(5)
    assert (job.kind, job.file) == (JobKind.CHECK, "/srv/hub.db")
    assert job.findings == ("page 3 is torn",)
    assert [line["event"] for line in lines] == ["database_damaged"]


async def test_without_a_directory_a_backup_needs_a_name(tmp_path: Path) -> None:
    jobs = DatabaseJobs(cast("Storage", CopiedDatabase()), ManualClock(), Metrics())
    with pytest.raises(InvalidValue, match="FANFARE_BACKUP_DIR is not set"):
        jobs.start_backup(None)
    assert await jobs.backups() == ()


async def test_a_directory_that_is_gone_is_no_end_of_the_hub(
    scene: Scene, tmp_path: Path
) -> None:
    scene.directory.path = tmp_path / "gone" / "backups"
    scene.database.failure = "there is no such directory"
    async with scene.running():
        await eventually(lambda: scene.jobs.last(JobKind.BACKUP) is not None)
    scene.clock.advance(1)
    assert "there is no such directory" in scene.jobs.warning()
    assert await scene.jobs.backups() == ()


async def test_a_database_whose_server_has_backups_of_its_own_gets_none(
    tmp_path: Path,
) -> None:
    class Served(CopiedDatabase):
        backup = None  # type: ignore[assignment]

    directory = BackupDirectory(tmp_path, Path("hub.db"), every=HOUR, kept=2)
    served = cast("Storage", Served())
    with capture_logs() as lines:
        jobs = DatabaseJobs(served, ManualClock(), Metrics(), directory)
    assert [each["event"] for each in lines] == ["backups_left_to_the_engine"]
    assert jobs.directory is None
    for destination in (None, str(tmp_path / "copy.db")):
        with pytest.raises(Conflict, match="the tools of its server"):
            jobs.start_backup(destination)
    assert directory.files() == []
