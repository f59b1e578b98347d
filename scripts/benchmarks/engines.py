"""PostgreSQL beside SQLite: polls, deliveries and first deliveries on both.

Those benches take an engine by themselves: ``scripts/bench poll --engine postgresql``
measures a hub on that engine against the floor of the bench, ``--engine both`` a hub on
PostgreSQL against one on SQLite, as here. The server has its data on the disk of
temporary files; its CPU does not count.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Final

from scripts.benchmarks.measuring import Finding, Size
from storage.contract import Storage
from storage.postgres import open_database as open_postgres
from storage.sqlite import open_database as open_sqlite
from tests.support.postgres_server import durable_server

TAKING_ENGINE: Final = ("poll", "fanout", "first")
"""The benches that take an engine."""


class Engine(StrEnum):
    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    BOTH = "both"  # a hub on PostgreSQL, and as its floor one on SQLite


EngineMeasure = Callable[[Path, Size, Engine], AsyncIterator[Finding]]


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    for name in TAKING_ENGINE:
        place = directory / name
        place.mkdir()
        bench = import_module(f"scripts.benchmarks.{name}")
        async for finding in bench.measure(place, size, Engine.BOTH):
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
