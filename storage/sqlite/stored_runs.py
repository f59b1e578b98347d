"""`storage.contract.PlaygroundStore` on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial

from storage.errors import StorageError
from storage.records import StoredRun
from storage.secrets import SecretBox
from storage.sqlite.columns import from_milliseconds, to_milliseconds
from storage.sqlite.readers import Readers, Row
from storage.sqlite.writer import Writer


class SqlitePlayground:
    def __init__(self, writer: Writer, readers: Readers, box: SecretBox) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box

    async def save(self, runs: Collection[StoredRun]) -> None:
        rows = [
            (each.id, to_milliseconds(each.used_at), self._box.seal(each.body))
            for each in runs
        ]
        await self._writer.submit(partial(_save, rows))

    async def remove(self, id: str) -> None:
        await self._writer.submit(partial(_remove, [id]))

    async def since(self, used_from: datetime) -> list[StoredRun]:
        rows = await self._readers.all(
            "SELECT id, used_at, body FROM playground_runs ORDER BY used_at DESC"
        )
        kept, gone = read_runs(rows, self._box, used_from)
        if gone:
            await self._writer.submit(partial(_remove, gone))
        return kept


def read_runs(
    rows: Iterable[Row], box: SecretBox, used_from: datetime
) -> tuple[list[StoredRun], list[str]]:
    """The readable runs that were used since ``used_from``, and the ids of the
    others."""
    kept, gone = list[StoredRun](), list[str]()
    for id, used_at, sealed in rows:
        try:
            body = box.unseal(sealed)
        except StorageError:
            gone.append(id)
            continue
        run = StoredRun(id=id, used_at=from_milliseconds(used_at), body=body)
        if run.used_at < used_from:
            gone.append(id)
        else:
            kept.append(run)
    return kept, gone


def _save(
    rows: Sequence[tuple[str, int, bytes]], connection: sqlite3.Connection
) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO playground_runs VALUES (?, ?, ?)", rows
    )


def _remove(ids: Sequence[str], connection: sqlite3.Connection) -> None:
    connection.executemany(
        "DELETE FROM playground_runs WHERE id = ?", [(each,) for each in ids]
    )
