"""How many failures and catch-ups of a subscription are kept, on either engine."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from storage.postgres import open_database
from storage.sqlite.flushes import ATTEMPTS_KEPT, DETAILS_KEPT
from tests.support.failures import details, failed
from tests.support.new_database import new_postgres, open_new
from tests.support.storage_scene import Scene, at, new_subscription

Execute = Callable[[str], None]


def on_sqlite(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def on_postgres(location: str, statement: str) -> None:
    with psycopg.connect(location) as connection:
        connection.execute(statement.encode())


@pytest.fixture(params=["sqlite", "postgres"])
async def engine(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[Scene, Execute]]:
    if request.param == "sqlite":
        path = tmp_path / "hub.db"
        storage = await open_new(path)
        yield Scene(storage), lambda statement: on_sqlite(path, statement)
        await storage.close()
        return
    async with new_postgres() as location:
        hub = await open_database(location, tmp_path / "key")
        yield Scene(hub), lambda statement: on_postgres(location, statement)
        await hub.close()


async def test_the_oldest_make_room_but_for_those_with_details(
    engine: tuple[Scene, Execute],
) -> None:
    scene, execute = engine
    subscription = await scene.subscribe(await scene.add_feed())
    with_details = [
        failed(subscription, at(number), kept=details())
        for number in range(DETAILS_KEPT)
    ]
    following = [failed(subscription, at(number)) for number in range(5, 12)]
    await scene.flush(attempts=(*with_details, *following))
    deliveries = scene.storage.deliveries
    assert await deliveries.attempts_kept_from(subscription.id) is None

    # As if so many had come since that the oldest of these are too many.
    assert ATTEMPTS_KEPT == 2_000
    await asyncio.to_thread(execute, "UPDATE attempts SET number = 2008 WHERE id = 12")
    for number in range(12, 15):
        await scene.flush(attempts=(failed(subscription, at(number)),))

    kept = await deliveries.attempts(subscription.id, 99)
    seconds = [each.at for each in kept]
    assert seconds == [at(each) for each in (14, 13, 12, 11, 4, 3, 2, 1, 0)]
    assert await deliveries.attempts_kept_from(subscription.id) == at(11)


async def test_what_made_room_for_others_is_not_said_to_be_kept(
    engine: tuple[Scene, Execute],
) -> None:
    scene, _ = engine
    feed = await scene.add_feed()
    quiet, busy = [await scene.subscribe(feed, name) for name in "ab"]
    deliveries = scene.storage.deliveries
    await scene.flush(attempts=(failed(quiet, at(0)),))
    await scene.flush(attempts=tuple(failed(busy, at(each)) for each in (1, 2, 3)))

    await deliveries.trim_attempts(at(-9), 9, kept=2)

    kept = [await deliveries.attempts_kept_from(each.id) for each in (quiet, busy)]
    assert kept == [at(2), at(2)], "of the first none are left"
    await scene.flush(attempts=(failed(quiet, at(9)),))
    assert await deliveries.attempts_kept_from(quiet.id) == at(2), "counted anew"
    new = new_subscription(feed, "new")
    later = await scene.storage.subscriptions.add(new, at(5))
    assert await deliveries.attempts_kept_from(later.id) is None
