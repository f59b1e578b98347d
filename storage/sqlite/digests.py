"""`storage.interface.DigestStore` on SQLite."""

from __future__ import annotations

from datetime import datetime

from storage.records import Subscription, SubscriptionId
from storage.secrets import SecretBox
from storage.sqlite.readers import Readers
from storage.sqlite.subscription_rows import read_subscription
from storage.sqlite.times import to_milliseconds
from storage.sqlite.writer import Writer


class SqliteDigests:
    def __init__(self, writer: Writer, readers: Readers, box: SecretBox) -> None:
        self._writer = writer
        self._readers = readers
        self._box = box

    async def set(self, subscription_id: SubscriptionId, due: datetime | None) -> None:
        if due is None:
            await self._writer.execute(
                "DELETE FROM digests WHERE subscription_id = ?", (subscription_id,)
            )
            return
        await self._writer.execute(
            "INSERT INTO digests SELECT id, ? FROM subscriptions"
            " WHERE id = ? AND state = 'active'"
            " ON CONFLICT (subscription_id) DO UPDATE SET due = excluded.due",
            (to_milliseconds(due), subscription_id),
        )

    async def due(self, now: datetime, limit: int) -> list[Subscription]:
        rows = await self._readers.all(
            "SELECT v.* FROM digests d"
            " CROSS JOIN stored_subscriptions v ON v.id = d.subscription_id"
            " WHERE d.due <= ? ORDER BY d.due LIMIT ?",
            (to_milliseconds(now), limit),
        )
        return [read_subscription(row, self._box) for row in rows]
