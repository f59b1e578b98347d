"""The log lies in partitions of a million records; one that is trimmed goes as a
whole."""

from __future__ import annotations

from math import inf
from pathlib import Path

import psycopg
import pytest

from storage.postgres import open_database
from storage.records import Retention
from tests.support.postgres_server import shared_server
from tests.support.storage_scene import START, Scene

NEARLY_FULL = "UPDATE log_head SET head = 999996, tail = 999996"
PARTITIONS = "SELECT relname FROM pg_class WHERE relname ~ '^records_\\d+$' ORDER BY 1"
FIRST, NEXT = "records_0", "records_1"


@pytest.mark.parametrize(
    ("kept", "partitions"),
    [
        pytest.param(4, {FIRST, NEXT}, id="a record is left in it"),
        pytest.param(2, {NEXT}, id="all of it is trimmed"),
    ],
)
async def test_a_partition_goes_when_it_is_trimmed(
    tmp_path: Path, kept: int, partitions: set[str]
) -> None:
    retention = Retention(soft_age=inf, soft_count=kept, hard_age=inf, hard_count=kept)
    with shared_server().database() as location, psycopg.connect(location) as direct:
        direct.autocommit = True

        await (await open_database(location, tmp_path / "key")).close()
        direct.execute(NEARLY_FULL)
        storage = await open_database(location, tmp_path / "key")
        try:
            scene = Scene(storage)
            feed = await scene.add_feed()
            published = [await scene.publish(feed, f"{n}") for n in range(6)]
            await scene.deliver()
            await storage.log.trim(retention, START, 99)
            await storage.give_back(99)
            left = await storage.log.records(after=0, limit=9)
        finally:
            await storage.close()
        names = {name for (name,) in direct.execute(PARTITIONS)}

    assert published == [*range(999_997, 1_000_003)]
    assert [each.position for each in left] == published[-kept:]
    assert names & {FIRST, NEXT} == partitions
