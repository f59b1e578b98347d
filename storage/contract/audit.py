"""The audit trail: what people and programs did to the hub."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from storage.records import AuditFilter, AuditPage, AuditRecord


class AuditStore(Protocol):
    async def add(self, records: Sequence[AuditRecord]) -> None:
        """Append them in one transaction; the engine gives them their ids."""
        ...

    async def page(
        self, wanted: AuditFilter, *, before: tuple[datetime, int] | None, limit: int
    ) -> AuditPage:
        """By time and id, the latest first; ``before``: a time and an id.

        What it costs does not depend on how much there is.
        """
        ...

    async def trim(self, *, before: datetime, kept: int, limit: int) -> int:
        """Forget records of before that time, and all but the last ``kept`` of
        administrators, and of everybody else; how many they were, at most ``limit``.

        So nobody without the scope `admin` can push out what administrators did.
        """
        ...
