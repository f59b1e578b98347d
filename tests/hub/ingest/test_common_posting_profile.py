from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from hub.core.schedule.poll_period import EVEN
from hub.core.schedule.posting_profile import (
    NOTHING_KNOWN,
    count_habits,
    hour_of,
    pack_habits,
)
from hub.ingest.poll_budget import EVERY, CommonProfile
from storage.records import Polling, Posting
from tests.support.clock import ManualClock
from tests.support.polled import PolledStorage, a_feed

EIGHT = 8 * 3_600.0
FIRST_DAY = datetime(1970, 1, 1, tzinfo=UTC)


def storage_of_early_birds() -> PolledStorage:
    storage = PolledStorage()
    habits = pack_habits(count_habits(NOTHING_KNOWN, [EIGHT] * 100))
    posting = Polling(posting=Posting(habits=habits, since=FIRST_DAY))
    for number in range(1, 5):
        storage.put(replace(a_feed(number), polling=posting))
    return storage


async def test_before_the_first_look_all_hours_are_alike() -> None:
    assert CommonProfile(storage_of_early_birds(), ManualClock()).prior == EVEN


async def test_a_look_tells_when_all_feeds_post() -> None:
    common = CommonProfile(storage_of_early_birds(), ManualClock())

    assert await common.look()

    assert common.prior.hours[hour_of(EIGHT)] == max(common.prior.hours)
    assert sum(common.prior.hours) == pytest.approx(sum(EVEN.hours))


async def test_it_looks_now_and_then() -> None:
    clock = ManualClock()
    common = CommonProfile(storage_of_early_birds(), clock)
    await common.look()

    assert not await common.look()
    clock.advance(EVERY)
    assert await common.look()
