"""`storage.contract.PlaygroundStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from storage.postgres.connections import Connections
from storage.records import StoredRun
from storage.secrets import SecretBox
from storage.sqlite.stored_runs import read_runs


class PostgresPlayground:
    def __init__(self, connections: Connections, box: SecretBox) -> None:
        self._connections = connections
        self._box = box

    async def save(self, runs: Collection[StoredRun]) -> None:
        await self._connections.write(
            "INSERT INTO playground_runs SELECT * FROM"
            " unnest(%s::text[], %s::bigint[], %s::bytea[])"
            " ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at,"
            " body = excluded.body",
            (
                [each.id for each in runs],
                [each.used_at for each in runs],
                [self._box.seal(each.body) for each in runs],
            ),
        )

    async def remove(self, id: str) -> None:
        await self._remove([id])

    async def since(self, used_from: datetime) -> list[StoredRun]:
        rows = await self._connections.all(
            "SELECT id, used_at, body FROM playground_runs ORDER BY used_at DESC"
        )
        kept, gone = read_runs(rows, self._box, used_from)
        if gone:
            await self._remove(gone)
        return kept

    async def _remove(self, ids: list[str]) -> None:
        await self._connections.write(
            "DELETE FROM playground_runs WHERE id = ANY(%s)", (ids,)
        )
