"""`storage.contract.AuditStore` as a simple model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from storage.records import (
    AuditFilter,
    AuditId,
    AuditOutcome,
    AuditPage,
    AuditRecord,
)


class MemoryAudit:
    def __init__(self) -> None:
        self._records: list[AuditRecord] = []
        self._last = 0

    async def add(self, records: Sequence[AuditRecord]) -> None:
        for each in records:
            self._last += 1
            self._records.append(replace(each, id=AuditId(self._last)))

    async def page(
        self, wanted: AuditFilter, *, before: tuple[datetime, int] | None, limit: int
    ) -> AuditPage:
        found = sorted(
            (
                each
                for each in self._records
                if (before is None or (each.at, each.id) < before)
                and _is_wanted(each, wanted)
            ),
            key=lambda each: (each.at, each.id),
            reverse=True,
        )
        shown = tuple(found[:limit])
        next = (shown[-1].at, shown[-1].id) if len(found) > limit else None
        return AuditPage(records=shown, next=next)

    async def trim(self, *, before: datetime, kept: int, limit: int) -> int:
        old = [each.id for each in self._records if each.at < before]
        for is_admin in (False, True):
            of_rank = [each.id for each in self._records if each.is_admin is is_admin]
            old += sorted(of_rank, reverse=True)[kept:]
        gone = set(sorted(set(old))[:limit])
        self._records = [each for each in self._records if each.id not in gone]
        return len(gone)


def _is_wanted(record: AuditRecord, wanted: AuditFilter) -> bool:
    given = (
        (wanted.account, record.account.id),
        (wanted.token, record.token),
        (wanted.session, record.session),
        (wanted.source, record.source),
        (wanted.operation, record.operation),
        (wanted.target, record.target),
        (wanted.target_id, record.target_id),
        (wanted.outcome, AuditOutcome.of_status(record.status)),
    )
    return (
        record.operation != wanted.without
        and all(asked is None or asked == found for asked, found in given)
        and (wanted.since is None or record.at >= wanted.since)
        and (wanted.until is None or record.at < wanted.until)
    )
