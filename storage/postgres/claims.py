"""`storage.contract.ClaimStore` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from storage.postgres.connections import Connections
from storage.records import WorkKind

_CLAIM: Final = "SELECT claim_work(%s, %s::bigint[], %s, %s, %s, %s)"
_RENEW: Final = "SELECT renew_claims(%s, %s::bigint[], %s, %s, %s, %s)"
_END: Final = "SELECT end_claims(%s, %s::bigint[], %s, %s)"


def unclaimed(kind: WorkKind, column: str) -> str:
    """A condition: that nobody holds what the column names, at ``now``."""
    return (
        f"{column} NOT IN (SELECT item FROM claims"
        f" WHERE kind = '{kind}' AND until > lease_time(%(now)s))"
    )


class PostgresClaims:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def claim(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        return await self._write(_CLAIM, kind, ids, lease_id, seconds, now)

    async def renew(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        return await self._write(_RENEW, kind, ids, lease_id, seconds, now)

    async def _write(
        self,
        sql: str,
        kind: WorkKind,
        ids: Collection[int],
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        term, lasting = self._connections.incarnation, round(seconds * 1000)
        ((held,),) = await self._connections.write(
            sql, (kind.value, sorted(ids), lease_id, term, lasting, now)
        )
        return frozenset(held)

    async def release(
        self, kind: WorkKind, ids: Sequence[int], *, lease_id: int
    ) -> None:
        term = self._connections.incarnation
        await self._connections.write(_END, (kind.value, list(ids), lease_id, term))
