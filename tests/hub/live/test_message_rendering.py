"""What is kept of messages, and what may not be shown any more."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import orjson
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from hub.delivery.notifications import Notifications
from hub.live.live_connections import ChannelKey
from hub.live.message_rendering import KEPT_LONG, KEPT_SECONDS, MessageRendering
from protocols.live.live_messages import NotificationMessage
from storage.contract import LogStore
from storage.records import (
    FeedId,
    Format,
    Position,
    Record,
    StoredEntry,
    Updates,
)
from tests.support.clock import ManualClock
from tests.support.live_scene import FakeLog
from tests.support.subscriptions import a_record

KEY = ChannelKey(
    feed_id=FeedId(1),
    topic="https://feeds.example/1",
    format=Format.JSON,
    updates=Updates.FRESH,
)
NEVER = Position(0)


class HeldLog(FakeLog):
    """Whoever reads entries has to wait while ``gate`` is closed."""

    def __init__(self, *records: Record) -> None:
        super().__init__(*records)
        self.gate = asyncio.Event()
        self.gate.set()

    async def entries(self, ids: Any) -> list[StoredEntry]:
        found = await super().entries(ids)
        await self.gate.wait()
        return found


def rendering_of(log: FakeLog, clock: ManualClock | None = None) -> MessageRendering:
    notifications = Notifications(cast("LogStore", log), "https://hub.example/hub")
    return MessageRendering(notifications, "e", clock or ManualClock())


async def titles(rendering: MessageRendering, record: Record) -> list[str]:
    prepared = await rendering.message(record, KEY, NEVER)
    if prepared is None:
        return []
    assert isinstance(prepared.message, NotificationMessage)
    return [each["title"] for each in orjson.loads(prepared.message.body)["items"]]


@pytest.fixture
def records() -> tuple[Record, Record]:
    """Two that tell of the same entry."""
    first = a_record(1)
    return first, replace(first, position=Position(2))


async def test_a_message_is_kept_for_those_who_resume(
    records: tuple[Record, Record],
) -> None:
    rendering = rendering_of(log := FakeLog(*records))
    first = await rendering.message(records[0], KEY, NEVER)
    log.states.clear()
    assert await rendering.message(records[0], KEY, NEVER) is first


async def test_many_messages_are_kept_for_a_minute_and_the_last_ones_for_longer() -> (
    None
):
    records = [a_record(number) for number in range(1, KEPT_LONG + 102)]
    clock = ManualClock()
    rendering = rendering_of(log := FakeLog(*records), clock)
    kept = [await rendering.message(each, KEY, NEVER) for each in records[:-1]]
    assert await rendering.message(records[0], KEY, NEVER) is kept[0]

    clock.advance(KEPT_SECONDS)
    await rendering.message(records[-1], KEY, NEVER)
    log.states.clear()
    last = [await rendering.message(each, KEY, NEVER) for each in records[102:-1]]
    assert last == kept[102:]
    assert await rendering.message(records[1], KEY, NEVER) is None, "it is forgotten"


async def test_a_large_message_has_its_encodings_before_it_is_written() -> None:
    rendering = rendering_of(log := FakeLog(record := a_record(1)))
    log.put_entry(10, "A long title. " * 30_000)
    message = await rendering.message(record, KEY, NEVER)
    assert message is not None
    made = vars(message)
    assert made["payload"] in made["frame"]
    assert made["deflated_frame"]
    assert made["event"] in made["event_chunk"]


async def test_nobody_is_shown_an_older_state_after_a_newer_one(
    records: tuple[Record, Record],
) -> None:
    rendering = rendering_of(log := FakeLog(*records))
    earlier, later = records
    log.put_entry(10, "As it was", revision=1)
    assert await titles(rendering, later) == ["As it was"]

    log.put_entry(10, "As it is", revision=2)

    assert await titles(rendering, earlier) == ["As it is"]
    assert await titles(rendering, later) == ["As it is"]


async def test_what_was_rendered_while_a_newer_state_was_shown_is_not_kept(
    records: tuple[Record, Record],
) -> None:
    rendering = rendering_of(log := HeldLog(*records))
    earlier, later = records
    log.put_entry(10, "As it was", revision=1)
    log.gate.clear()
    slow = asyncio.create_task(titles(rendering, later))
    await asyncio.sleep(0)
    held, log.gate = log.gate, asyncio.Event()
    log.gate.set()
    log.put_entry(10, "As it is", revision=2)
    assert await titles(rendering, earlier) == ["As it is"]
    held.set()
    assert await slow == ["As it was"]

    assert await titles(rendering, later) == ["As it is"]


async def test_other_entries_make_no_difference() -> None:
    one, other = a_record(1), a_record(2)
    rendering = rendering_of(log := FakeLog(one, other))
    first = await rendering.message(one, KEY, NEVER)
    log.put_entry(20, "As it is", revision=9)
    await rendering.message(other, KEY, NEVER)
    assert await rendering.message(one, KEY, NEVER) is first


async def test_a_record_that_cannot_be_rendered_is_passed_over_and_logged() -> None:
    log = FakeLog(record := a_record(1))
    for entry_id, stored in log.states.items():
        log.states[entry_id] = replace(stored, body=b"no packed entry")

    with capture_logs() as lines:
        assert await rendering_of(log).message(record, KEY, NEVER) is None

    assert [(each["event"], each["position"]) for each in lines] == [
        ("record_not_rendered", 1)
    ]
