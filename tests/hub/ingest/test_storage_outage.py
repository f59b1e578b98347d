"""An outage of storage, seen from who has to go on after it."""

from __future__ import annotations

from typing import cast

import pytest

from hub.ingest.visit_runner import StorageOutage
from storage.contract import Storage
from storage.errors import StorageFull


class Disk:
    """The `Storage` of which a trial write is made."""

    def __init__(self) -> None:
        self.is_full = False

    async def check(self) -> None:
        if self.is_full:
            raise StorageFull("no space left")


async def test_one_that_ended_before_it_was_waited_for_is_told_all_the_same() -> None:
    """Whoever was cut short by it is to go on."""
    outage = StorageOutage(cast("Storage", Disk()))
    outage.begin(StorageFull("no space left"))
    await outage.probe()
    assert outage.failure is None
    assert outage.is_open
    assert not await outage.wait()
    assert not outage.is_open


async def test_that_all_of_storage_failed_is_not_forgotten_when_it_fails_again() -> (
    None
):
    disk = Disk()
    outage = StorageOutage(cast("Storage", disk))
    disk.is_full = True
    outage.begin(StorageFull("no space left"))
    with pytest.raises(StorageFull):
        await outage.probe()
    disk.is_full = False
    await outage.probe()
    outage.begin(StorageFull("too large"))
    await outage.probe()
    assert await outage.wait()

    outage.begin(StorageFull("too large"))
    await outage.probe()
    assert not await outage.wait()
