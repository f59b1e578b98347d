from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import cast
from urllib.parse import parse_qs, urlsplit

import pytest

from hub.delivery import denials
from hub.delivery.denials import Denials
from hub.http import Purpose, Request
from hub.http.network_errors import NetworkError, Unreachable
from hub.limits.host_limiter import HostLimiter, RequestKind
from storage.contract import Storage
from storage.errors import StorageError, StorageFull
from storage.records import (
    Subscription,
    SubscriptionId,
    SubscriptionState,
    WorkKind,
)
from tests.support.clock import ManualClock
from tests.support.fake_network import FakeNetwork
from tests.support.subscriptions import a_subscription
from tests.support.waiting import eventually
from tests.support.work_claims import LongWork


class EndingSubscriptions:
    """The methods of two stores that are used."""

    def __init__(self) -> None:
        self.to_tell: dict[SubscriptionId, Subscription] = {}
        self.failure: Exception | None = None
        self.read_failures: list[StorageError] = []
        self.of_others: set[SubscriptionId] = set()
        self.released: set[SubscriptionId] = set()

    def end(self, number: int, host: str = "a.example") -> None:
        subscription = a_subscription(
            id=SubscriptionId(number),
            callback=f"https://{host}/{number}?k=v",
            state=SubscriptionState.ENDING,
            ended_reason="the feed was removed",
        )
        self.to_tell[subscription.id] = subscription

    async def ending(self, now: datetime, limit: int) -> list[Subscription]:
        if self.read_failures:
            raise self.read_failures.pop()
        return list(self.to_tell.values())[:limit]

    async def mark_denied(
        self, ids: Sequence[SubscriptionId], *, lease_id: int
    ) -> frozenset[SubscriptionId]:
        if self.failure is not None:
            raise self.failure
        for each in ids:
            del self.to_tell[each]
        return frozenset(ids)

    async def claim(
        self, kind: WorkKind, ids: Sequence[SubscriptionId], **terms: object
    ) -> frozenset[SubscriptionId]:
        return frozenset(ids).difference(self.of_others)

    async def renew(
        self, kind: WorkKind, ids: Collection[SubscriptionId], **terms: object
    ) -> frozenset[SubscriptionId]:
        return frozenset(ids)

    async def release(
        self, kind: WorkKind, ids: Sequence[SubscriptionId], *, lease_id: int
    ) -> None:
        self.released.update(ids)


class Scene:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = EndingSubscriptions()
        self.callbacks = FakeNetwork()
        stores = {"subscriptions": self.store, "claims": self.store}
        storage = cast("Storage", type("OnlyThese", (), stores)())
        self.work = LongWork(storage.claims, self.clock)
        self.waits: list[float] = []
        self.limiter = HostLimiter(
            self.clock, lambda host: host == "127.0.0.1", sleep=self.sleep
        )
        self.denials = Denials(
            storage,
            self.callbacks,
            self.clock,
            self.limiter,
            self.work.claims,
        )

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    @property
    def count(self) -> int:
        return len(self.callbacks.requests)

    async def after(self, seconds: float) -> int:
        """Let time pass and go round; how many requests there have been by then."""
        self.clock.advance(seconds)
        await self.denials.tell()
        return self.count


async def test_the_subscriber_is_told_mode_topic_and_reason() -> None:
    scene = Scene()
    scene.store.end(1)
    await scene.denials.tell()
    (request,) = scene.callbacks.requests
    assert request.method == "GET"
    assert request.purpose is Purpose.CALLBACK
    assert request.url.startswith("https://a.example/1?k=v&")
    query = parse_qs(urlsplit(request.url).query)
    assert query["hub.mode"] == ["denied"]
    assert query["hub.topic"] == ["https://feeds.example/1"]
    assert query["hub.reason"] == ["the feed was removed"]
    assert scene.store.to_tell == {}


async def test_one_host_hears_one_denial_a_second() -> None:
    scene = Scene()
    for number in range(3):
        scene.store.end(number)
    scene.store.end(9, host="b.example")
    assert [await scene.after(seconds) for seconds in (0, 0.5, 0.5, 1.0)] == [
        2,
        2,
        3,
        4,
    ]
    assert scene.store.to_tell == {}


async def test_an_exempt_host_is_not_paced() -> None:
    scene = Scene()
    for number in range(100):
        scene.store.end(number, host="127.0.0.1")
    assert await scene.after(0) == 100


@pytest.mark.parametrize("answer", [Unreachable("no connection"), 500, 503, 429])
async def test_it_is_tried_three_times_and_then_left(
    answer: int | NetworkError,
) -> None:
    scene = Scene()
    scene.callbacks.answer_with(answer)
    scene.store.end(1)
    counts = [await scene.after(seconds) for seconds in (0, 9, 1, 59)]
    assert counts == [1, 1, 2, 2]
    assert scene.store.to_tell
    assert await scene.after(1) == 3
    assert scene.store.to_tell == {}


@pytest.mark.parametrize("status", [204, 302, 404, 410])
async def test_any_answer_of_a_working_callback_is_enough(status: int) -> None:
    scene = Scene()
    scene.callbacks.answer_with(status)
    scene.store.end(1)
    assert await scene.after(0) == 1
    assert scene.store.to_tell == {}


async def test_a_full_disk_means_that_it_is_said_again() -> None:
    scene = Scene()
    scene.store.failure = StorageFull("disk full")
    scene.store.end(1)
    assert await scene.after(0) == 1
    scene.store.failure = None
    assert await scene.after(1) == 2
    assert scene.store.to_tell == {}


async def test_a_failed_read_means_that_they_are_told_later() -> None:
    scene = Scene()
    scene.store.read_failures.append(StorageError("disk I/O error"))
    scene.store.end(1)
    assert [await scene.after(seconds) for seconds in (0, 1)] == [0, 1]
    assert scene.store.to_tell == {}


async def test_a_host_with_very_many_does_not_hide_the_others() -> None:
    scene = Scene()
    for number in range(denials.PAGE + 10):
        scene.store.end(number)
    scene.store.end(9_999, host="b.example")
    scene.callbacks.answer_with(500)
    for _ in range(5):
        await scene.after(0.1)
    assert any("b.example" in each.url for each in scene.callbacks.requests)


async def test_it_runs_until_it_is_cancelled() -> None:
    scene = Scene()
    scene.store.end(1)
    task = asyncio.create_task(scene.denials.run())
    await eventually(lambda: not scene.store.to_tell)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_denial_waits_for_its_turn_behind_a_question() -> None:
    scene = Scene()
    await scene.limiter.wait("a.example", RequestKind.QUESTION)
    scene.store.end(1)
    await scene.denials.tell()
    assert scene.waits == [1.0]
    assert len(scene.callbacks.requests) == 1


async def test_what_another_node_is_at_is_said_by_that_one_alone() -> None:
    scene = Scene()
    scene.store.end(1)
    scene.store.end(2, host="b.example")
    scene.store.of_others = {SubscriptionId(1)}

    assert await scene.after(0) == 1

    assert [*scene.store.to_tell] == [1]
    assert scene.store.released == set()


async def test_what_is_to_be_said_again_is_given_back_until_then() -> None:
    scene = Scene()
    scene.callbacks.answer_with(500)
    scene.store.end(1)

    assert await scene.after(0) == 1

    assert scene.store.released == {1}


async def test_the_claims_of_a_round_that_takes_long_are_renewed() -> None:
    scene = Scene()
    scene.store.end(1)
    scene.store.end(2, host="b.example")

    async def answer(request: Request) -> int:
        if request.url.startswith("https://a.example/"):
            await scene.work.go_on()
        return 200

    scene.callbacks.answer_with(answer)
    await scene.denials.tell()
    assert scene.work.renewed == [(WorkKind.DENIALS, {1, 2})]
