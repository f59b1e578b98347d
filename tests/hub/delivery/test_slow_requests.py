from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from hub.delivery.webhook import SlowRequests
from hub.http import Answer, Purpose, Request
from hub.http.network_errors import TimedOut
from tests.support.clock import ManualClock

REQUEST = Request(method="POST", url="https://a.example/", purpose=Purpose.CALLBACK)
ANSWER = Answer(
    url=REQUEST.url, status=200, headers={}, body=b"", complete=True, milliseconds=1
)


class HeldNetwork:
    """Answers when told to."""

    def __init__(self) -> None:
        self.answers: list[asyncio.Future[Answer]] = []

    async def send(self, request: Request) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        return await answer

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return True


class Scene:
    def __init__(self, *, slow_limit: int) -> None:
        self.clock = ManualClock()
        self.network = HeldNetwork()
        self.slow_requests = SlowRequests(
            self.network, self.clock, slow_limit=slow_limit
        )
        self.aside: list[str] = []

    async def send(
        self, name: str, *, is_doubtful: bool = False
    ) -> asyncio.Task[Answer]:
        def on_slow() -> None:
            self.aside.append(name)

        task = asyncio.create_task(self._send(on_slow, is_doubtful))
        await asyncio.sleep(0)
        return task

    async def _send(self, on_slow: Callable[[], None], is_doubtful: bool) -> Answer:
        return await self.slow_requests.send(REQUEST, on_slow, is_doubtful=is_doubtful)

    def pass_time(self, seconds: float) -> None:
        """Of which the second sweep takes account."""
        self.clock.advance(seconds)
        self.slow_requests.sweep()
        self.slow_requests.sweep()


async def test_an_answer_within_a_second_moves_nobody_aside() -> None:
    scene = Scene(slow_limit=1)
    sending = await scene.send("quick")
    scene.pass_time(0.9)
    scene.network.answers[0].set_result(ANSWER)
    assert await sending == ANSWER
    scene.pass_time(5.0)
    assert scene.aside == []


async def test_what_was_answered_while_the_hub_stood_still_is_not_slow() -> None:
    scene = Scene(slow_limit=0)
    sending = await scene.send("quick")
    scene.clock.advance(30.0)
    scene.network.answers[0].set_result(ANSWER)
    scene.slow_requests.sweep()
    assert await sending == ANSWER
    assert scene.aside == []


async def test_without_an_answer_for_a_second_it_moves_aside_once_and_goes_on() -> None:
    scene = Scene(slow_limit=1)
    sending = await scene.send("slow")
    scene.pass_time(1.0)
    scene.pass_time(1.0)
    assert scene.aside == ["slow"]
    scene.network.answers[0].set_result(ANSWER)
    assert await sending == ANSWER


async def test_only_those_who_waited_a_second_move_aside() -> None:
    scene = Scene(slow_limit=5)
    first = await scene.send("first")
    scene.clock.advance(0.6)
    second = await scene.send("second")
    scene.pass_time(0.6)
    assert scene.aside == ["first"]
    for answer in scene.network.answers:
        answer.set_result(ANSWER)
    await asyncio.gather(first, second)


async def test_one_too_many_is_cut_short() -> None:
    scene = Scene(slow_limit=1)
    first = await scene.send("first")
    second = await scene.send("second")
    scene.pass_time(1.0)
    assert scene.aside == ["first"]
    with pytest.raises(TimedOut):
        await second
    scene.network.answers[0].set_result(ANSWER)
    await first


async def test_one_that_failed_before_makes_way_for_one_that_did_not() -> None:
    scene = Scene(slow_limit=3)
    good = await scene.send("good")
    dead = await scene.send("dead", is_doubtful=True)
    dead_too = await scene.send("dead too", is_doubtful=True)
    scene.pass_time(1.0)
    slow = await scene.send("slow")
    scene.pass_time(1.0)
    assert scene.aside == ["good", "dead", "dead too", "slow"]
    with pytest.raises(TimedOut, match="too many other requests hang"):
        await dead  # which hung longest of the two
    for number in (0, 2, 3):
        scene.network.answers[number].set_result(ANSWER)
    await asyncio.gather(good, dead_too, slow)


@pytest.mark.parametrize("is_doubtful", [False, True])
async def test_one_that_failed_before_takes_nobodys_place(is_doubtful: bool) -> None:
    scene = Scene(slow_limit=1)
    first = await scene.send("first", is_doubtful=is_doubtful)
    dead = await scene.send("dead", is_doubtful=True)
    scene.pass_time(1.0)
    assert scene.aside == ["first"]
    with pytest.raises(TimedOut):
        await dead
    scene.network.answers[0].set_result(ANSWER)
    await first


async def test_a_place_aside_is_free_again_after_the_answer() -> None:
    scene = Scene(slow_limit=1)
    first = await scene.send("first")
    scene.pass_time(1.0)
    scene.network.answers[0].set_result(ANSWER)
    await first
    second = await scene.send("second")
    scene.pass_time(1.0)
    assert scene.aside == ["first", "second"]
    scene.network.answers[1].set_result(ANSWER)
    await second


async def test_a_cancelled_request_is_cancelled_and_not_timed_out() -> None:
    scene = Scene(slow_limit=0)
    sending = await scene.send("stopped")
    sending.cancel()
    scene.pass_time(1.0)  # at the same moment it is cut short
    with pytest.raises(asyncio.CancelledError):
        await sending
