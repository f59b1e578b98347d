"""Locks are taken in one order, whatever order a statement is given its rows in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg

from storage.postgres import open_database
from storage.postgres.connections import connect
from storage.postgres.fetch_commits import pack_news, read_row_types
from storage.postgres.packed_rows import pack_place, pack_rows
from storage.sqlite.fetch_commits import encode_values
from tests.support.new_database import new_postgres
from tests.support.storage_scene import Scene, fetch, record
from tests.support.waiting import eventually

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"
FREE = "SELECT id FROM feeds ORDER BY id FOR UPDATE SKIP LOCKED"


async def test_news_lock_their_feeds_by_ids(tmp_path: Path) -> None:
    async with new_postgres() as location:
        hub = await open_database(location, tmp_path / "key")
        feeds = [await Scene(hub).add_feed(name) for name in "abc"]
        committing = await connect(hub._connections._settings)
        for join in ("hash", "merge"):  # none of these: the planner keeps the order
            await committing.execute(f"SET enable_{join}join = off".encode())
        types = await read_row_types(committing)
        rows: list[bytes] = []
        for place, feed in enumerate(reversed(feeds), 1):
            found = fetch(feed, records=(record(),))
            packed = pack_news(found, encode_values(found))
            rows += (packed.commit, pack_place(place, place - 1))

        with (
            psycopg.connect(location) as first,
            psycopg.connect(location, autocommit=True) as other,
        ):
            first.execute("SELECT 1 FROM feeds WHERE id = 1 FOR UPDATE")
            put = committing.execute(
                "SELECT cardinality(stored) FROM put_feeds(%s::fetch_commit[])",
                (pack_rows(types.commit, rows),),
            )
            putting = asyncio.create_task(put)
            await eventually(lambda: other.execute(WAITING).fetchone() == (1,))
            assert other.execute(FREE).fetchall() == [(2,), (3,)]
            first.rollback()
            assert await (await putting).fetchone() == (3,)
        await committing.close()
        await hub.close()
