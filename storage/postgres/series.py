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

    async def add(self, sample: SeriesSample, kept_from: datetime) -> None:
        await self._connections.write(
            "SELECT add_sample(%s, %s, %s)",
            (sample.at, msgspec.msgpack.encode(sample), kept_from),
        )

    async def page(self, since: datetime, limit: int) -> list[SeriesSample]:
        rows = await self._connections.all(
            "SELECT body FROM series_samples WHERE at >= %s ORDER BY at LIMIT %s",
            (since, limit),
        )
        return [_decoder.decode(body) for (body,) in rows]
