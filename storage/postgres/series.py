"""`storage.contract.SeriesStore` on PostgreSQL."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from storage.postgres.connections import Connections
from storage.records import SeriesSample

_decoder: Final = msgspec.msgpack.Decoder(SeriesSample)


class PostgresSeries:
    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def add(
        self, sample: SeriesSample, kept_from: datetime, *, is_fine: bool = False
    ) -> None:
        add = "add_fine_sample" if is_fine else "add_sample"
        await self._connections.write(
            f"SELECT {add}(%s, %s, %s)",
            (sample.at, msgspec.msgpack.encode(sample), kept_from),
        )

    async def page(
        self, since: datetime, limit: int, *, is_fine: bool = False
    ) -> list[SeriesSample]:
        table = "fine_samples" if is_fine else "series_samples"
        rows = await self._connections.all(
            f"SELECT body FROM {table} WHERE at >= %s ORDER BY at LIMIT %s",
            (since, limit),
        )
        return [_decoder.decode(body) for (body,) in rows]
