"""`storage.contract.Storage`: an opened PostgreSQL database."""

from __future__ import annotations

import asyncio
from datetime import datetime

from storage.postgres.bulk_plans import PostgresBulkPlans
from storage.postgres.connections import Connections
from storage.postgres.list_watches import PostgresListWatches
from storage.postgres.schema import latest_schema
from storage.postgres.sessions import PostgresSessions
from storage.postgres.tokens import PostgresTokens
from storage.records import DatabaseStatus, DiskSample, Position
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds
from storage.sqlite.log_end import LogEnd

_STATUS = (
    "SELECT s.version, h.head, h.tail, pg_database_size(current_database())"
    " FROM fanfare_schema s, log_head h"
)


class PostgresStorage:
    """Made by `open_database`; owns its connections."""

    def __init__(
        self,
        *,
        location: str,
        connections: Connections,
        box: SecretBox,
        epoch: str,
        head: Position,
    ) -> None:
        self._location = location
        self._connections = connections
        self._epoch = epoch
        self._head = LogEnd(head)
        self._closing: asyncio.Future[None] | None = None
        self.tokens = PostgresTokens(connections)
        self.sessions = PostgresSessions(connections)
        self.plans = PostgresBulkPlans(connections)
        self.list_watches = PostgresListWatches(connections)

    async def status(self) -> DatabaseStatus:
        row = await self._connections.first(_STATUS)
        version, head, tail, size_bytes = row or (0, 0, 0, 0)
        return DatabaseStatus(
            engine="postgresql",
            location=self._location,
            version=version,
            latest=latest_schema(),
            epoch=self._epoch,
            head=Position(head),
            size_bytes=size_bytes,
            tail=Position(tail),
        )

    def write_error(self) -> str:
        return self._connections.write_error

    async def check(self) -> None:
        await self._connections.write("UPDATE hub SET checked_at = checked_at + 1")

    async def note_disk(self, sample: DiskSample, kept_from: datetime) -> None:
        await self._connections.write(
            "SELECT note_disk(%s, %s, %s, %s)",
            (sample.at, sample.used_bytes, sample.free_bytes, kept_from),
        )

    async def disk_samples(self) -> list[DiskSample]:
        rows = await self._connections.all(
            "SELECT at, used_bytes, free_bytes FROM disk_samples ORDER BY at"
        )
        return [
            DiskSample(at=from_milliseconds(at), used_bytes=used, free_bytes=free)
            for at, used, free in rows
        ]

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._head.close()
        await self._connections.close()
