"""Who comes while a commit waits to say who gets its records is not passed over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from storage.errors import BodyRequired, StaleQueries, StorageError
from storage.postgres import open_database
from storage.records import Matched
from tests.support.documents import an_entry
from tests.support.new_database import new_postgres
from tests.support.storage_scene import Scene, fetch, record
from tests.support.waiting import eventually

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("UPDATE log_head SET queries = queries + 1", StaleQueries),
        ("UPDATE feed_audience SET as_is = 1", BodyRequired),
    ],
)
async def test_a_commit_is_held_against_what_has_changed_meanwhile(
    tmp_path: Path, change: str, refusal: type[StorageError]
) -> None:
    async with new_postgres() as location:
        hub = await open_database(location, tmp_path / "key")
        feed = await Scene(hub).add_feed()
        found = fetch(
            feed,
            entries=(an_entry("a"),),
            records=(record("a"),),
            matched=Matched(version=0),
        )
        with psycopg.connect(location) as other:
            other.execute("SELECT hold_audience()")
            committing = asyncio.create_task(hub.log.commit(found))
            await eventually(lambda: other.execute(WAITING).fetchone() == (1,))
            other.execute(change.encode())

        with pytest.raises(refusal):
            await committing
        assert (await hub.log.end()).position == 0
        assert await hub.log.latest_entries(feed.id, 1) == []
        await hub.close()
