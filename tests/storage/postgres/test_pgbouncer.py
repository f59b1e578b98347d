"""A store behind PgBouncer, which gives each transaction another connection, and ends
TLS as a server does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from storage.errors import DatabaseUnusable
from storage.postgres import open_database
from storage.records import NewNode
from tests.support.pgbouncer import needs_pgbouncer, pgbouncer
from tests.support.postgres_server import shared_server
from tests.support.storage_scene import Scene

pytestmark = needs_pgbouncer


@dataclass(frozen=True, slots=True)
class PooledDatabase:
    location: str  # without parameters
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PooledDatabase]:
    server = shared_server()
    name = server.create()
    with pgbouncer(server, name) as (location, certificate):
        key = tmp_path_factory.mktemp("pooled") / "key"
        yield PooledDatabase(location, certificate, key)
    server.drop(name)


async def test_a_store_works_by_transactions_of_two_connections(
    pooled: PooledDatabase,
) -> None:
    storage = await open_database(f"{pooled.location}?pgbouncer=true", pooled.key)
    await storage.membership.join(NewNode(name="hub", is_alone=True))
    scene = Scene(storage)
    feeds = await asyncio.gather(*(scene.add_feed(name) for name in "abcdefgh"))
    await asyncio.gather(*map(scene.subscribe, feeds))

    await asyncio.gather(*map(scene.publish, feeds))
    for _ in range(8):  # psycopg prepares what it executes a sixth time
        await asyncio.gather(*(storage.feeds.find(feed.url) for feed in feeds))

    assert len(await scene.claim()) == 8
    await storage.close()


async def test_without_the_parameter_it_is_refused(pooled: PooledDatabase) -> None:
    with pytest.raises(DatabaseUnusable, match="unsupported startup parameter"):
        await open_database(pooled.location, pooled.key)


async def test_the_certificate_of_the_server_is_checked(
    pooled: PooledDatabase,
) -> None:
    checked = (
        f"{pooled.location}?pgbouncer=true&sslmode=verify-full"
        f"&sslrootcert={pooled.certificate}"
    )
    storage = await open_database(checked, pooled.key)
    await storage.check()
    await storage.close()

    other_host = checked.replace("127.0.0.1", "localhost")
    with pytest.raises(DatabaseUnusable, match="does not match host name"):
        await open_database(other_host, pooled.key)
