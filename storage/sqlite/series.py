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

_decoder: Final = msgspec.msgpack.Decoder(SeriesSample)


class SqliteSeries:
    def __init__(self, writer: Writer, readers: Readers) -> None:
        self._writer = writer
        self._readers = readers

    async def add(self, sample: SeriesSample, kept_from: datetime) -> None:
        row = to_milliseconds(sample.at), msgspec.msgpack.encode(sample)
        await self._writer.submit(partial(_add, row, to_milliseconds(kept_from)))

    async def page(self, since: datetime, limit: int) -> list[SeriesSample]:
        rows = await self._readers.all(
            "SELECT body FROM series_samples WHERE at >= ? ORDER BY at LIMIT ?",
            (to_milliseconds(since), limit),
        )
        return [_decoder.decode(body) for (body,) in rows]


def _add(
    row: tuple[int, bytes], kept_from: int, connection: sqlite3.Connection
) -> None:
    connection.execute("DELETE FROM series_samples WHERE at < ?", (kept_from,))
    connection.execute("DELETE FROM series_samples WHERE at >= ?", (row[0],))
    connection.execute("INSERT INTO series_samples VALUES (?, ?)", row)
