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


CLAIM = "INSERT INTO claims VALUES ('denials', %s, 7, %s, 9000000000000)"
FREE_CLAIMS = "SELECT item FROM claims ORDER BY item FOR UPDATE SKIP LOCKED"


async def test_claims_that_end_are_locked_by_their_items(tmp_path: Path) -> None:
    async with new_postgres() as location:
        hub = await open_database(location, tmp_path / "key")
        node = hub._connections.incarnation
        ending = await connect(hub._connections._settings)
        for scan in ("index", "bitmap"):  # neither: rows come as they were stored
            await ending.execute(f"SET enable_{scan}scan = off".encode())

        with (
            psycopg.connect(location) as first,
            psycopg.connect(location, autocommit=True) as other,
        ):
            for item in (3, 2, 1):
                other.execute(CLAIM, (item, node))
            first.execute("SELECT 1 FROM claims WHERE item = 1 FOR UPDATE")
            end = ending.execute(
                "SELECT end_claims('denials', ARRAY[1, 2, 3]::bigint[], 7, %s)", (node,)
            )
            task = asyncio.create_task(end)
            await eventually(lambda: other.execute(WAITING).fetchone() == (1,))
            assert other.execute(FREE_CLAIMS).fetchall() == [(2,), (3,)]
            first.rollback()
            assert sorted((await (await task).fetchone() or ([],))[0]) == [1, 2, 3]
        await ending.close()
        await hub.close()
