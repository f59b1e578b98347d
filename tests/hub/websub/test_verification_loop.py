from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from hub.http import Request
from hub.http.network_errors import Unreachable
from hub.websub.intent_verification import IntentVerification
from hub.websub.topic_admission import TopicBusy
from hub.websub.verification_loop import OF_ZONE_AT_ONCE, PAGE, VerificationLoop
from storage.contract import Storage
from storage.errors import StorageError, StorageFull, WriteFailed
from storage.records import Verification, VerificationState, WorkKind
from tests.support.fake_network import Scripted, agree
from tests.support.open_hub import OpenHubScene, a_subscription_request
from tests.support.waiting import eventually, in_background
from tests.support.work_claims import LongWork, hold


@asynccontextmanager
async def running(scene: OpenHubScene) -> AsyncIterator[None]:
    async with in_background(scene.verifier.run):
        yield


class Looks:
    """The store of requests, and how often it was asked for what is due."""

    def __init__(self, scene: OpenHubScene) -> None:
        self._scene = scene
        self.count = 0
        self.failures: list[StorageError] = []
        self.is_late = False
        """Whether another node claims what was listed, before this one can."""

    async def due(self, now: datetime, **bounds: Any) -> list[Verification]:
        self.count += 1
        if self.failures:
            raise self.failures.pop()
        store = self._scene.storage
        found = await store.verifications.due(now, **bounds)
        if self.is_late and found:
            ids = [each.id for each in found]
            await hold(store, WorkKind.VERIFICATIONS, *ids, now=now)
        return found

    async def go_on(self, verifier: VerificationLoop) -> None:
        """Return when it was asked twice more: what it said before is begun."""
        for _ in range(2):
            count = self.count
            verifier.wake()
            await eventually(lambda before=count: self.count > before)  # type: ignore[misc]

    def verifier(self, intents: IntentVerification | None = None) -> VerificationLoop:
        scene = self._scene
        stores = cast("Storage", SimpleNamespace(verifications=self))
        intents = intents or scene.intents
        return VerificationLoop(
            stores, intents, scene.questions, scene.clock, scene.claims
        )


async def state(scene: OpenHubScene, token: str) -> VerificationState:
    found = await scene.storage.verifications.find(token)
    assert found is not None
    return found.state


async def request(scene: OpenHubScene, number: int, host: str = "r.example") -> str:
    callback = f"https://{host}/{number}"
    return await scene.request(a_subscription_request(callback=callback))


async def test_a_request_is_verified_at_once(scene: OpenHubScene) -> None:
    async with running(scene):
        token = await request(scene, 1)

        async def is_verified() -> bool:
            return await state(scene, token) is VerificationState.VERIFIED

        await eventually(is_verified)


async def test_one_host_is_asked_one_question_a_second(scene: OpenHubScene) -> None:
    for number in range(3):
        await request(scene, number)
    await request(scene, 9, "other.example")
    asked, looks = scene.callbacks.requests, Looks(scene)
    verifier = looks.verifier()
    async with in_background(verifier.run):
        await eventually(lambda: len(asked) == 2)  # one of each host
        await looks.go_on(verifier)
        assert len(asked) == 2
        scene.clock.advance(1)
        await looks.go_on(verifier)
        await eventually(lambda: len(asked) == 3)
        await looks.go_on(verifier)
        assert len(asked) == 3


async def test_no_owner_of_many_names_keeps_others_waiting(scene: OpenHubScene) -> None:
    """More than are read at once came first, and none of them answers."""

    async def answer(request: Request) -> Scripted:
        if "names.example" in request.url:
            await asyncio.Event().wait()
        return agree(request)

    scene.callbacks.answer_with(answer)
    many = PAGE * 2
    await asyncio.gather(
        *(request(scene, number, f"{number}.names.example") for number in range(many))
    )
    await asyncio.gather(
        *(request(scene, number, f"reader{number}.example") for number in range(20))
    )
    async with running(scene):

        def asked(zone: str) -> int:
            return sum(zone in each.url for each in scene.callbacks.requests)

        await eventually(lambda: asked("//reader") == 20)
        assert asked("names.example") <= OF_ZONE_AT_ONCE


async def test_a_crowd_of_one_owner_goes_on_as_soon_as_there_is_room(
    scene: OpenHubScene,
) -> None:
    many = OF_ZONE_AT_ONCE + 4
    for number in range(many):
        await request(scene, number, f"{number}.names.example")
    async with running(scene):
        await eventually(lambda: len(scene.callbacks.requests) == many)


async def test_an_exempt_host_is_not_paced(scene: OpenHubScene) -> None:
    for number in range(20):
        await request(scene, number, "reader.exempt")
    async with running(scene):
        await eventually(lambda: len(scene.callbacks.requests) == 20)


@pytest.mark.parametrize(
    ("failure", "pause"),
    [(StorageFull("full"), 10), (RuntimeError("a fault"), 10), (TopicBusy(), 1)],
)
async def test_a_request_that_could_not_be_worked_on_waits_and_stays_due(
    scene: OpenHubScene,
    failure: Exception,
    pause: int,
) -> None:
    tried: list[int] = []

    class FailingIntents:
        admit = scene.intents.admit

        async def verify(self, verification: Verification, admission: object) -> None:
            tried.append(verification.id)
            raise failure

    token = await request(scene, 1, "reader.exempt")
    looks = Looks(scene)
    verifier = looks.verifier(cast("IntentVerification", FailingIntents()))
    async with in_background(verifier.run):
        await eventually(lambda: len(tried) == 1)
        await looks.go_on(verifier)
        assert len(tried) == 1
        scene.clock.advance(pause)
        verifier.wake()
        await eventually(lambda: len(tried) == 2)
    assert await state(scene, token) is VerificationState.PENDING


async def test_a_database_that_cannot_be_read_does_not_end_it(
    scene: OpenHubScene,
) -> None:
    looks = Looks(scene)
    looks.failures = [WriteFailed("broken")]
    await request(scene, 1)
    verifier = looks.verifier()
    async with in_background(verifier.run):
        await looks.go_on(verifier)
        await eventually(lambda: bool(scene.callbacks.requests))


async def test_a_retry_comes_when_it_is_due(scene: OpenHubScene) -> None:
    scene.callbacks.answer_with(Unreachable("cannot connect"))
    token = await request(scene, 1)

    async def has_failed() -> bool:
        found = await scene.storage.verifications.find(token)
        return found is not None and found.attempts == 1

    async with running(scene):
        await eventually(has_failed)
        scene.clock.advance(10)
        scene.verifier.wake()
        await eventually(lambda: len(scene.callbacks.requests) == 2)


async def test_a_request_that_another_node_is_at_is_asked_by_that_one_alone(
    scene: OpenHubScene,
) -> None:
    token = await request(scene, 1, "reader.exempt")
    looks = Looks(scene)
    looks.is_late = True
    verifier = looks.verifier()
    async with in_background(verifier.run):
        await looks.go_on(verifier)
        assert scene.callbacks.requests == []
    found = await scene.storage.verifications.find(token)
    assert found is not None
    assert found.attempts == 0


async def test_claims_are_renewed_while_callbacks_are_asked_and_others_wait(
    scene: OpenHubScene,
) -> None:
    work = LongWork(scene.storage.claims, scene.clock)
    verifier = VerificationLoop(
        *(scene.storage, scene.intents, scene.questions, scene.clock, work.claims),
        at_once=1,
    )
    tokens = [await request(scene, number, f"{number}.example") for number in (1, 2)]

    is_over = asyncio.Event()

    async def answer(request: Request) -> Scripted:
        await is_over.wait()
        return agree(request)

    scene.callbacks.answer_with(answer)

    async def are_verified() -> bool:
        states = {await state(scene, token) for token in tokens}
        return states == {VerificationState.VERIFIED}

    async with in_background(verifier.run):
        await eventually(lambda: len(scene.callbacks.requests) == 1)
        await work.go_on()
        await eventually(lambda: len(work.renewed) == 2, seconds=9)
        is_over.set()
        await eventually(are_verified)
    (asked,), both = sorted((ids for _, ids in work.renewed), key=len)
    assert asked in both
    assert len(both) == 2


async def test_what_took_longer_than_its_lease_is_told_as_lost(
    scene: OpenHubScene,
) -> None:
    token = await request(scene, 1)
    (asked,) = await scene.storage.verifications.due(
        scene.clock.now(), per_host=1, limit=1
    )
    with capture_logs() as lines:
        await scene.intents.verify(asked)  # which nobody has claimed
    assert [each["event"] for each in lines] == ["verification_lost"]
    assert await state(scene, token) is VerificationState.PENDING
