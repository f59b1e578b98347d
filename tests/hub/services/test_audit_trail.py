"""The audit trail beside the requests: what is noted is written, later if need be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest
from msgspec.structs import replace

from hub.services.audit_trail import AuditTrail
from storage.contract import Storage
from storage.errors import WriteFailed
from storage.records import (
    OPERATOR,
    Account,
    AuditFilter,
    AuditRecord,
    AuditSource,
    AuditTarget,
)
from tests.support.clock import ManualClock
from tests.support.memory.audit import MemoryAudit
from tests.support.memory.storage import MemoryStorage
from tests.support.storage_scene import START
from tests.support.waiting import eventually

RECORD = AuditRecord(
    at=START,
    account=Account(id=OPERATOR, name="operator"),
    source=AuditSource.API,
    operation="pause_feed",
    target=AuditTarget.FEED,
    target_id=7,
    status=200,
)


class FailingAudit(MemoryAudit):
    """Takes no records while it ``fails``."""

    fails = True

    async def add(self, records: Sequence[AuditRecord]) -> None:
        if self.fails:
            raise WriteFailed("the disk is full")
        await super().add(records)


class FailingStorage(MemoryStorage):
    audit: FailingAudit

    def __init__(self) -> None:
        super().__init__()
        self.audit = FailingAudit()


@pytest.fixture
def storage() -> FailingStorage:
    return FailingStorage()


def trail_of(storage: MemoryStorage, most_waiting: int = 9) -> AuditTrail:
    return AuditTrail(
        cast("Storage", storage), ManualClock(), most_waiting=most_waiting
    )


async def names(storage: MemoryStorage) -> list[str]:
    page = await storage.audit.page(AuditFilter(), before=None, limit=99)
    return [each.operation for each in reversed(page.records)]


async def test_what_storage_did_not_take_is_written_later_in_order(
    storage: FailingStorage,
) -> None:
    trail = trail_of(storage)
    for name in ("one", "two"):
        trail.note(replace(RECORD, operation=name))
        assert not await trail.write()
    assert await names(storage) == []
    storage.audit.fails = False
    trail.note(replace(RECORD, operation="three"))
    assert await trail.write()
    assert await names(storage) == ["one", "two", "three"]


async def test_of_too_many_that_wait_the_oldest_are_lost(
    storage: FailingStorage,
) -> None:
    trail = trail_of(storage, most_waiting=2)
    for name in ("one", "two", "three"):
        trail.note(replace(RECORD, operation=name))
    storage.audit.fails = False
    await trail.write()
    assert await names(storage) == ["two", "three"]


async def test_records_are_written_without_being_asked_for_and_at_the_end(
    storage: FailingStorage,
) -> None:
    storage.audit.fails = False
    trail = trail_of(storage)
    running = asyncio.create_task(trail.run())
    trail.note(RECORD)
    await eventually(lambda: not trail.waiting)
    assert await names(storage) == ["pause_feed"]
    trail.note(RECORD)
    running.cancel()
    await asyncio.wait([running])
    assert await names(storage) == ["pause_feed"] * 2


async def test_records_are_written_although_who_reads_them_goes_away(
    storage: FailingStorage,
) -> None:
    storage.audit.fails = False
    trail, reading = trail_of(storage), AuditFilter()
    trail.note(RECORD)
    page = asyncio.create_task(trail.page(reading, before=None, limit=9))
    await asyncio.sleep(0)
    page.cancel()
    await asyncio.wait([page])
    await eventually(lambda: not trail.waiting)
    assert page.cancelled()
    assert await names(storage) == ["pause_feed"]
