"""The audit trail: what people and programs did to the hub."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import AuditFilter, AuditPage, AuditRecord


class AuditStore(Protocol):
    async def add(self, records: Sequence[AuditRecord]) -> None:
        """Append records in one transaction; the engine gives them their ids."""
        ...

    async def page(
        self, wanted: AuditFilter, *, before: tuple[datetime, int] | None, limit: int
    ) -> AuditPage:
        """Records by time and id, the latest first; ``before``: a time and an id.

        The cost does not depend on how many records there are.
        """
        ...

    async def trim(self, *, before: datetime, kept: int, limit: int) -> int:
        """Delete records from before that time, and all but the last ``kept`` records
        of administrators, and of everybody else. Returns how many were deleted, at most
        ``limit``.

        The two are counted apart so that nobody without the scope `admin` can push out
        what administrators did.
        """
        ...
