"""`storage.contract.ControlStore` on PostgreSQL.

One node has the database at a time (see `storage.postgres.membership`), and hears of
its own writes.
"""

from __future__ import annotations

from storage.records import EpochBegan
from storage.sqlite.control import SqliteControl


class PostgresControl(SqliteControl):
    """Stores tell it what has become durable."""

    def began(self, epoch: str) -> None:
        self._tell(EpochBegan(epoch))
