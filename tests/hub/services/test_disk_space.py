"""What takes the disk, over time and restarts."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from hub.services.disk_space import REPORT_SECONDS, DiskSpace
from storage.contract import Storage
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock

GB = 10**9


@dataclass
class Disk:
    free: int = 50 * GB
    total: int = 100 * GB


class Scene:
    def __init__(self, storage: Storage, folder: Path) -> None:
        self.storage = storage
        self.folder = folder
        self.clock = ManualClock()
        self.disk = Disk()
        self.space = self.restarted()

    def restarted(self) -> DiskSpace:
        return DiskSpace(
            self.storage,
            self.clock,
            self.folder,
            self.folder / "scp",
            8 * GB,
            disk_of=lambda _: self.disk,
        )

    async def pass_hours(self, hours: int, *, loss: int = 0) -> None:
        """With a look every ten minutes; ``loss`` of free space an hour."""
        for _ in range(6 * hours):
            self.clock.advance(600)
            self.disk.free -= loss // 6
            await self.space.sample()


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_chosen(tmp_path / "hub.db")
    yield Scene(storage, tmp_path)
    await storage.close()


async def test_sizes_are_kept_once_an_hour_and_for_a_day(scene: Scene) -> None:
    await scene.pass_hours(30)
    kept = await scene.storage.disk_samples()
    steps = {later.at - earlier.at for earlier, later in itertools.pairwise(kept)}
    assert steps == {timedelta(hours=1)}
    assert len(kept) in (24, 25)
    assert kept[-1].used_bytes > 0


async def test_a_rate_is_known_after_six_hours_and_beyond_a_restart(
    scene: Scene,
) -> None:
    await scene.pass_hours(4, loss=GB)
    assert (await scene.space.report()).forecast is None
    scene.space = scene.restarted()
    await scene.pass_hours(3, loss=GB)
    report = await scene.space.report()
    assert report.forecast is not None
    assert report.forecast.loss == pytest.approx(24 * GB, rel=0.01)
    assert "the disk is full in 43 h" in report.outlook


async def test_a_clock_that_was_ahead_leaves_no_samples(scene: Scene) -> None:
    scene.clock.advance(86_400)
    await scene.space.sample()
    scene.clock.set_back(86_400)
    await scene.space.sample()
    assert [each.at for each in await scene.storage.disk_samples()] == [
        scene.clock.now()
    ]


async def test_a_report_has_what_lies_beside_the_database_as_well(
    scene: Scene,
) -> None:
    assert (await scene.space.report()).purposes["collections"] == 0
    folder = scene.folder / "scp"
    folder.mkdir()
    (folder / "1.json.gz").write_bytes(bytes(700))
    (folder / "2.json.gz").write_bytes(bytes(800))
    assert (await scene.space.report()).purposes["collections"] == 0  # not asked anew
    scene.clock.advance(REPORT_SECONDS)
    report = await scene.space.report()
    assert report.purposes["collections"] == 1_500
    assert report.purposes["other"] > 0
    assert (report.free, report.total, report.limit) == (50 * GB, 100 * GB, 8 * GB)


async def test_of_a_database_on_a_server_nothing_is_foreseen(scene: Scene) -> None:
    space = DiskSpace(
        scene.storage,
        scene.clock,
        scene.folder,
        scene.folder / "scp",
        0,
        holds_database=False,
        disk_of=lambda _: scene.disk,
    )
    await space.sample()

    report = await space.report()

    assert await scene.storage.disk_samples() == []
    assert report.forecast is None
    assert "whose disk the hub does not see" in report.outlook
