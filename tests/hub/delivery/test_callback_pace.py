from __future__ import annotations

import asyncio

import pytest

from hub.delivery.callback_pace import CallbackPace, Kind
from hub.http import Answer, Purpose, Request
from tests.support.clock import ManualClock

CALLBACK = "https://a.example/1"
NEIGHBOUR = "https://A.example:8443/2"
ELSEWHERE = "https://b.example/1"
EXEMPT = "http://127.0.0.1/"


class OnlyExemptions:
    async def send(self, request: Request) -> Answer:
        raise NotImplementedError

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return host == "127.0.0.1" and purpose is Purpose.CALLBACK


class Scene:
    """The pace, and how long it made whom wait; time stands still meanwhile."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.waits: list[float] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.pace = CallbackPace(OnlyExemptions(), self.clock, self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await self.gate.wait()


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_questions_and_denials_share_one_a_second_for_each_host(
    scene: Scene,
) -> None:
    await scene.pace.wait(CALLBACK, Kind.QUESTION)
    await scene.pace.wait(NEIGHBOUR, Kind.DENIAL)
    await scene.pace.wait(CALLBACK, Kind.QUESTION)
    await scene.pace.wait(ELSEWHERE, Kind.DENIAL)
    assert scene.waits == [0.0, 1.0, 2.0, 0.0]
    scene.clock.advance(3)
    await scene.pace.wait(CALLBACK, Kind.DENIAL)
    assert scene.waits[-1] == 0.0


async def test_however_many_names_one_zone_has_it_is_asked_ten_times_a_second(
    scene: Scene,
) -> None:
    for number in range(30):
        await scene.pace.wait(f"https://{number}.names.example/", Kind.QUESTION)
    assert scene.waits == pytest.approx([number / 10 for number in range(30)])
    await scene.pace.wait("https://of.others.example/", Kind.QUESTION)
    assert scene.waits[-1] == 0.0


async def test_whoever_has_agreed_is_told_the_end_by_host_alone(scene: Scene) -> None:
    for number in range(3):
        await scene.pace.wait(f"https://{number}.names.example/", Kind.DENIAL)
    assert scene.waits == [0.0] * 3


async def test_an_exempt_host_is_not_waited_for(scene: Scene) -> None:
    for kind in (*Kind, *Kind):
        await scene.pace.wait(EXEMPT, kind)
    assert scene.waits == []
    assert scene.pace.is_exempt(EXEMPT)
    assert not scene.pace.is_exempt(CALLBACK)


async def test_it_is_known_who_waits_for_a_host(scene: Scene) -> None:
    scene.gate.clear()
    waiting = [
        asyncio.create_task(scene.pace.wait(CALLBACK, Kind.QUESTION)) for _ in range(2)
    ]
    await asyncio.sleep(0)
    assert scene.pace.is_waited_for(NEIGHBOUR, Kind.QUESTION)
    assert not scene.pace.is_waited_for(NEIGHBOUR, Kind.DENIAL)
    waiting[0].cancel()
    scene.gate.set()
    await asyncio.wait(waiting)
    assert not scene.pace.is_waited_for(NEIGHBOUR, Kind.QUESTION)
