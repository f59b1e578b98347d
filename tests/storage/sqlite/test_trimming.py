"""The log is trimmed in transactions that are short, whatever its records name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from storage.records import Retention
from storage.sqlite import open_database
from storage.sqlite.trimming import MOST_TRIMMED_ENTRIES
from tests.support.storage_scene import START, Scene

RETENTION = Retention(soft_age=60, soft_count=10**6, hard_age=60, hard_count=10**6)
LATER = START + timedelta(hours=1)


@pytest.mark.parametrize(
    ("entries", "records"),
    [(1, [10]), (MOST_TRIMMED_ENTRIES // 3, [3, 3, 3, 1]), (1_001, [1] * 10)],
)
async def test_records_of_many_entries_go_fewer_at_a_time(
    tmp_path: Path, entries: int, records: list[int]
) -> None:
    storage = await open_database(tmp_path / "hub.db")
    scene = Scene(storage)
    feed = await scene.add_feed()
    for number in range(10):
        await scene.publish(feed, *(f"{number}/{each}" for each in range(entries)))
    trimmed = []
    while count := await storage.log.trim(RETENTION, LATER, 250):
        trimmed.append(count)
    await storage.close()
    assert trimmed == records
