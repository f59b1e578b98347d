"""`storage.contract.SeriesStore` on SQLite."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from storage.records import SeriesSample
from storage.sqlite.columns import to_milliseconds
from storage.sqlite.readers import Readers
from storage.sqlite.writer import Writer

_TABLES: Final = ("series_samples", "fine_samples")
_decoder: Final = msgspec.msgpack.Decoder(SeriesSample)


class SqliteSeries:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(
        self, sample: SeriesSample, kept_from: datetime, *, is_fine: bool = False
    ) -> None:
        row = to_milliseconds(sample.at), msgspec.msgpack.encode(sample)
        kept = to_milliseconds(kept_from)
        await self._writer.submit(partial(_add, _TABLES[is_fine], row, kept))

    async def page(
        self, since: datetime, limit: int, *, is_fine: bool = False
    ) -> list[SeriesSample]:
        rows = await self._readers.all(
            f"SELECT body FROM {_TABLES[is_fine]} WHERE at >= ? ORDER BY at LIMIT ?",
            (to_milliseconds(since), limit),
        )
        return [_decoder.decode(body) for (body,) in rows]


def _add(
    table: str, row: tuple[int, bytes], kept: int, connection: sqlite3.Connection
) -> None:
    connection.execute(f"DELETE FROM {table} WHERE at < ?", (kept,))
    connection.execute(f"DELETE FROM {table} WHERE at >= ?", (row[0],))
    connection.execute(f"INSERT INTO {table} VALUES (?, ?)", row)
