"""PostgreSQL beside SQLite: polls, deliveries and first deliveries on both, and lists
and entries on PostgreSQL as the database grows.

Those benches take an engine by themselves: ``scripts/bench poll --engine postgresql``
measures a hub on that engine against the floor of the bench, ``--engine both`` a hub on
PostgreSQL against one on SQLite, as here. The server has its data on the disk of
temporary files; its CPU does not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Final

import psycopg

from scripts.benchmarks.measuring import Finding, Size
from storage.contract import Storage
from storage.copying import copy_content
from storage.postgres import open_database as open_postgres
from storage.secrets import key_path
from storage.sqlite import open_database as open_sqlite
from tests.support.postgres_server import durable_server

COMPARED: Final = ("poll", "fanout", "first")
"""The benches that can compare both engines."""
GROWING: Final = ("list", "retrieve")
TAKING_ENGINE: Final = (*COMPARED, *GROWING)
"""The benches that take an engine."""


class Engine(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    BOTH = "both"  # a hub on PostgreSQL, and as its floor one on SQLite


Open = Callable[[Path, int], Awaitable[Storage]]
"""Makes a database with so many of something, and opens it."""
EngineMeasure = Callable[[Path, Size, Engine], AsyncIterator[Finding]]


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    for name in TAKING_ENGINE:
        place = directory / name
        place.mkdir()
        engine = Engine.BOTH if name in COMPARED else Engine.POSTGRESQL
        bench = import_module(f"scripts.benchmarks.{name}")
        async for finding in bench.measure(place, size, engine):
            yield finding


def named(bench: str, engine: Engine) -> str:
    """Its name in the table."""
    return bench if engine is Engine.SQLITE else f"{bench}, {engine}"


@asynccontextmanager
async def opened(directory: Path, engine: Engine) -> AsyncIterator[list[Storage]]:
    """The storage of the hub; for both engines that on SQLite follows it."""
    if engine is Engine.SQLITE:
        async with _on_sqlite(directory) as storage:
            yield [storage]
        return
    with durable_server(memory="off") as server:
        location = server.location(server.create())
        storage = await open_postgres(location, directory / "postgres.key")
        try:
            if engine is Engine.POSTGRESQL:
                yield [storage]
            else:
                async with _on_sqlite(directory) as file:
                    yield [storage, file]
        finally:
            await storage.close()


@asynccontextmanager
async def _on_sqlite(directory: Path) -> AsyncIterator[Storage]:
    storage = await open_sqlite(directory / "hub.db")
    try:
        yield storage
    finally:
        await storage.close()


@contextmanager
def copied_to_server(opened: Open) -> Iterator[Open]:
    """Makes the same databases as ``opened``, on a server."""
    with durable_server(memory="off") as server:

        async def open_copy(path: Path, count: int) -> Storage:
            await (await opened(path, count)).close()
            location, local = server.location(server.create()), path.with_suffix(".pg")
            await asyncio.to_thread(
                copy_content, f"sqlite:{path}", location, local, lambda *_: None
            )
            with psycopg.connect(location, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
            return await open_postgres(location, key_path(local))

        yield open_copy
