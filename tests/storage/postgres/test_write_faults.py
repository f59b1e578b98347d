"""Writes that fail by a fault of the server, as they are counted."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from storage.errors import StorageFull
from storage.postgres import open_database
from storage.records import NewFeed
from tests.support.new_database import new_postgres
from tests.support.storage_scene import START

FILL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON feeds EXECUTE FUNCTION refuse()
"""
FREE = "DROP FUNCTION refuse() CASCADE"


async def test_those_with_none_between_that_succeeded_are_one_stretch(
    tmp_path: Path,
) -> None:
    async with new_postgres() as location:
        storage = await open_database(location, tmp_path / "key")
        try:
            with psycopg.connect(location, autocommit=True) as server:
                for number in range(2):
                    server.execute(FILL)
                    for _ in range(2):
                        with pytest.raises(StorageFull):
                            await storage.feeds.add(
                                NewFeed(url="https://a.example/"), START
                            )
                    server.execute(FREE)
                    url = f"https://{number}.example/"
                    await storage.feeds.add(NewFeed(url=url), START)
            faults = storage.write_faults()
        finally:
            await storage.close()

    assert (faults.count, faults.stretches) == (4, 2)
