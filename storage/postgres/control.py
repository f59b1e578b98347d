"""`storage.contract.ControlStore` on PostgreSQL.

One node has the database at a time (see `storage.postgres.membership`), and is told of
its own writes.
"""

from __future__ import annotations

from storage.records import EpochBegan
from storage.sqlite.control import SqliteControl


class PostgresControl(SqliteControl):
    """Stores report what has become durable; this passes it to the watchers."""

    def began(self, epoch: str) -> None:
        self._tell(EpochBegan(epoch))
