"""One line for each turn of a callback, by a dispatcher and a receiver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hub.core.delivery.delivery_outcome import CallbackResponse, DeliveryOutcome
from hub.delivery.callback_events import CallbackEvents
from hub.runtime.event_log import EventLog
from storage.records import NewDeadLetter, Position
from tests.support.clock import ManualClock
from tests.support.delivery_scene import DeliveryScene, delivery_scene
from tests.support.http_server import ServerAnswer
from tests.support.subscriptions import START, a_subscription
from tests.support.waiting import eventually


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[DeliveryScene]:
    async with delivery_scene(tmp_path) as scene:
        yield scene


def sentences(lines: list[dict[str, object]]) -> list[str]:
    return [str(line["event"]) for line in lines if "kind" in line]


async def test_a_callback_that_fails_and_recovers_is_two_lines(
    scene: DeliveryScene,
) -> None:
    feed = await scene.add_feed()
    late = await scene.subscribe(feed, "secret/hook")
    fails, works = ServerAnswer(status=500), ServerAnswer()
    scene.subscribers["secret/hook"].answer(fails, fails, fails, works)
    with capture_logs() as lines:
        await scene.publish(feed, "News")
        async with scene.dispatching():
            for count in (1, 2, 3):
                await scene.subscribers.until_count("secret/hook", count)
                await eventually(lambda: _is_retried(scene, late.id))
            await scene.subscribers.until_count("secret/hook", 4)
            await eventually(lambda: _is_recovered(scene))
    began, ended = sentences(lines)
    name = "the callback of subscription 1 at 127.0.0.1"
    assert began.startswith(f"{name} began to fail: answered 500 (answered);")
    assert "tried again in" in began
    assert ended.startswith(f"{name} works again after")
    assert "secret" not in repr(lines)


async def _is_retried(scene: DeliveryScene, id: int) -> bool:
    deliveries = scene.storage.deliveries
    found = await deliveries.retrying_subscription(id)  # type: ignore[arg-type]
    if found is not None and not found.lease_id and found.attempts:
        await deliveries.retry_now(id, scene.clock.now())  # type: ignore[arg-type]
        return True
    return False


async def _is_recovered(scene: DeliveryScene) -> bool:
    return await scene.is_settled()


async def test_a_callback_that_is_gone_is_one_line(scene: DeliveryScene) -> None:
    feed = await scene.add_feed()
    await scene.subscribe(feed, "hook")
    scene.subscribers["hook"].answer(ServerAnswer(status=410))
    with capture_logs() as lines:
        await scene.publish(feed, "News")
        async with scene.dispatching():
            await eventually(scene.is_settled)
    assert sentences(lines) == [
        "the callback of subscription 1 at 127.0.0.1 answered 410 Gone:"
        " the subscription has ended"
    ]


LOST = NewDeadLetter(
    subscription_id=a_subscription().id,
    lease_id=1,
    first=Position(3),
    last=Position(9),
    reason="answered 500 (after 11 tries)",
    at=START,
)
REFUSED = CallbackResponse(status=500, milliseconds=1, error="answered 500")


def test_what_is_given_up_is_one_line_and_each_probe_after_it_none() -> None:
    events = CallbackEvents(EventLog(), ManualClock())
    outcome = DeliveryOutcome(given_up=LOST)
    with capture_logs() as lines:
        events.failed(a_subscription(), outcome, REFUSED, was_failing=True)
        probed = a_subscription(exhausted=True)
        events.failed(probed, outcome, REFUSED, was_failing=True)
    (line,) = sentences(lines)
    assert line.endswith(
        "was given up: records 3 to 9 are a dead letter, answered 500 (after 11 tries)"
    )
