"""`storage.contract.ClaimStore` on SQLite, where one node claims all there is."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from storage.records import WorkKind
from storage.sqlite.columns import pack_ids, to_milliseconds
from storage.sqlite.writer import Writer

FORGOTTEN_AFTER: Final = 3_600_000
"""Milliseconds after its end in which whoever held a claim may still come back."""

OTHER_VERIFICATIONS: Final = (
    "v.key_hash NOT IN (SELECT o.key_hash FROM claims c"
    " CROSS JOIN verifications o ON o.id = c.item"
    " WHERE c.kind = 'verifications' AND c.until > :now)"
)
"""That no verification ``v`` of its key is claimed at ``:now``."""
OLDEST_OF_KEY: Final = (
    "NOT EXISTS (SELECT 1 FROM verifications earlier WHERE"
    " earlier.key_hash = v.key_hash AND earlier.id < v.id AND earlier.due IS NOT NULL)"
)

_IDS: Final = "(SELECT value FROM json_each(:ids))"
_DUE: Final[Mapping[WorkKind, str]] = {
    WorkKind.VERIFICATIONS: f"SELECT v.id FROM verifications v WHERE v.id IN {_IDS}"
    f" AND v.due <= :now AND {OLDEST_OF_KEY} AND {OTHER_VERIFICATIONS}",
    WorkKind.DIGESTS: "SELECT d.subscription_id FROM digests d"
    " CROSS JOIN subscriptions s ON s.id = d.subscription_id"
    f" WHERE d.subscription_id IN {_IDS} AND d.due <= :now AND s.paused_at IS NULL",
    WorkKind.DENIALS: f"SELECT id FROM subscriptions WHERE id IN {_IDS}"
    " AND state = 'ending'",
    WorkKind.STATISTICS: f"SELECT feed_id FROM standings WHERE feed_id IN {_IDS}"
    " AND due <= :now",
    WorkKind.PUSHES: f"SELECT feed_id FROM pushes WHERE feed_id IN {_IDS}"
    " AND due <= :now",
}
"""Which of these are still due."""


def unclaimed(kind: WorkKind, column: str) -> str:
    """A condition: that nobody holds what the column names; its parameter is the
    time."""
    return (
        f"{column} NOT IN (SELECT item FROM claims WHERE kind = '{kind}' AND until > ?)"
    )


def holds_claim(
    kind: WorkKind, item: int, lease_id: int, connection: sqlite3.Connection
) -> bool:
    found = connection.execute(
        "SELECT 1 FROM claims WHERE kind = ? AND item = ? AND lease_id = ?",
        (kind, item, lease_id),
    )
    return found.fetchone() is not None


def end_claims(
    kind: WorkKind, ids: Sequence[int], lease_id: int, connection: sqlite3.Connection
) -> list[int]:
    """End those claims that are held under this lease; returns which they are."""
    found = connection.execute(
        "DELETE FROM claims WHERE kind = ? AND lease_id = ?"
        " AND item IN (SELECT value FROM json_each(?)) RETURNING item",
        (kind, lease_id, pack_ids(ids)),
    )
    return [item for (item,) in found.fetchall()]


class SqliteClaims:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def claim(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        until = now + timedelta(seconds=seconds)
        unit = partial(
            _claim,
            *(kind, pack_ids(ids), lease_id),
            *(to_milliseconds(until), to_milliseconds(now)),
        )
        return frozenset(await self._writer.submit(unit))

    async def renew(
        self,
        kind: WorkKind,
        ids: Collection[int],
        *,
        lease_id: int,
        seconds: float,
        now: datetime,
    ) -> frozenset[int]:
        until = now + timedelta(seconds=seconds)
        unit = partial(
            _renew,
            *(kind, pack_ids(ids), lease_id),
            *(to_milliseconds(until), to_milliseconds(now)),
        )
        return frozenset(await self._writer.submit(unit, is_single=True))

    async def release(
        self, kind: WorkKind, ids: Sequence[int], *, lease_id: int
    ) -> None:
        unit = partial(end_claims, kind, ids, lease_id)
        await self._writer.submit(unit, is_single=True)


def _claim(
    kind: WorkKind,
    ids: str,
    lease_id: int,
    until: int,
    now: int,
    connection: sqlite3.Connection,
) -> list[int]:
    connection.execute(
        "DELETE FROM claims WHERE kind = ? AND until <= ?",
        (kind, now - FORGOTTEN_AFTER),
    )
    held = connection.execute(
        "SELECT item FROM claims WHERE kind = ? AND until > ?", (kind, now)
    )
    taken = {item for (item,) in held.fetchall()}
    due = connection.execute(_DUE[kind], {"ids": ids, "now": now}).fetchall()
    claimed = [item for (item,) in due if item not in taken]
    connection.executemany(
        "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)",
        [(kind, item, lease_id, until) for item in claimed],
    )
    return claimed


def _renew(
    kind: WorkKind,
    ids: str,
    lease_id: int,
    until: int,
    now: int,
    connection: sqlite3.Connection,
) -> list[int]:
    renewed = connection.execute(
        "UPDATE claims SET until = ? WHERE kind = ? AND lease_id = ? AND until > ?"
        " AND item IN (SELECT value FROM json_each(?)) RETURNING item",
        (until, kind, lease_id, now, ids),
    )
    return [item for (item,) in renewed.fetchall()]
