"""Conditions of the hub, as its operator's webhooks are told of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs

from hub.services.hub_conditions import (
    OVER_AFTER,
    ConditionEvents,
    HubCondition,
)
from protocols.operational_events import EventType
from storage.contract import EventStore
from storage.errors import WriteFailed
from storage.records import OPERATOR, OperationalEvent
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.memory.storage import MemoryStorage
from tests.support.storage_scene import Scene

LATE = "deliveries"


class Teller:
    """The events of a hub, and what its operator was told by them."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clock = ManualClock()
        self.events = ConditionEvents(scene.storage.events, self.clock)

    async def look(self, *names: str, after: float = 60.0) -> None:
        """Some time later these conditions hold."""
        self.clock.advance(after)
        await self.events.tell({name: self.condition(name) for name in names})

    def condition(self, name: str) -> HubCondition:
        return HubCondition(
            what=f"{name} is wrong",
            since=self.clock.now(),
            advice="mend it",
            is_error=False,
        )

    async def told(self) -> list[tuple[str, bool]]:
        """Each condition, and whether it is over."""
        while await self.scene.storage.events.publish(self.clock.now(), 9):
            pass
        records = await self.scene.storage.log.records(after=0, limit=99)
        found = [each.event for each in records if each.event is not None]
        return [(each.condition, each.is_over) for each in found]


@pytest.fixture(params=["sqlite", "memory"])
async def teller(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Teller]:
    if request.param == "memory":
        yield await subscribed(Scene(MemoryStorage()))
        return
    storage = await open_chosen(tmp_path / "hub.db")
    try:
        yield await subscribed(Scene(storage))
    finally:
        await storage.close()


async def subscribed(scene: Scene) -> Teller:
    teller = Teller(scene)
    feed = await scene.storage.events.topic("events:hub.*", teller.clock.now())
    await scene.subscribe(feed, topic=feed.url, account=OPERATOR)
    return teller


async def test_one_is_told_when_it_begins_and_once_it_is_over_for_a_while(
    teller: Teller,
) -> None:
    await teller.look(LATE)
    await teller.look(LATE)
    assert await teller.told() == [(LATE, False)]
    await teller.look(after=OVER_AFTER - 1)
    assert await teller.told() == [(LATE, False)]
    await teller.look(after=1)
    await teller.look()
    assert await teller.told() == [(LATE, False), (LATE, True)]


async def test_one_that_comes_and_goes_is_told_once(teller: Teller) -> None:
    for _ in range(9):
        await teller.look(LATE)
        await teller.look(after=OVER_AFTER / 2)
    assert await teller.told() == [(LATE, False)]


async def test_each_is_told_by_itself_and_others_are_not(teller: Teller) -> None:
    await teller.look("disk", "disk_filling", "polls", LATE, "unwritable", "warned 0")
    told = ["deliveries", "disk", "disk_filling", "polls"]
    assert sorted(await teller.told()) == [(name, False) for name in told]


async def test_what_began_before_a_restart_is_over_without_being_told_anew(
    teller: Teller,
) -> None:
    await teller.look("disk", LATE)
    teller.events = ConditionEvents(teller.scene.storage.events, teller.clock)

    await teller.look("disk")

    begun = [("deliveries", False), ("disk", False)]
    assert await teller.told() == [*begun, (LATE, True)]


async def test_it_says_what_is_wrong_since_when_and_what_to_do(teller: Teller) -> None:
    await teller.look("disk")
    since = teller.clock.now()
    while await teller.scene.storage.events.publish(since, 9):
        pass
    (record,) = await teller.scene.storage.log.records(after=0, limit=9)
    assert record.event == OperationalEvent(
        type=EventType.HUB_DISK,
        at=since,
        condition="disk",
        since=since,
        reason="disk is wrong",
        advice="mend it",
    )


class FullDisk:
    """Takes no events ``failures`` times; ``told`` is what it took."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.told: list[Sequence[OperationalEvent]] = []

    async def note_conditions(
        self, holding: Sequence[OperationalEvent], now: datetime
    ) -> None:
        if self.failures:
            self.failures -= 1
            raise WriteFailed("the disk is full")
        self.told.append(holding)


async def test_what_cannot_be_written_is_told_when_it_can_though_it_is_over() -> None:
    """As of when it began, and that it is over only then; the log says it once."""
    storage, clock = FullDisk(failures=9), ManualClock()
    events = ConditionEvents(cast("EventStore", storage), clock)
    began = clock.now()
    condition = HubCondition(what="full", since=began, advice="", is_error=True)

    with capture_logs() as lines:
        for holding in ({"disk": condition}, {}, {}):
            for _ in range(3):
                assert not await events.tell(holding)
                clock.advance(OVER_AFTER)
    assert [line["event"] for line in lines] == ["conditions_not_told"]
    assert await events.tell({})
    assert await events.tell({})

    (told,), over = storage.told
    assert (told.condition, told.at, over) == ("disk", began, [])
