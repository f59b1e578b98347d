"""Whatever hubs ask and push, in any order, only what was wanted is confirmed."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hub.core.push.hub_subscription import CONFIRMED_WITHIN
from hub.push.received_pushes import BodyReservation, ReceivedPush
from hub.services.push_callbacks import SHORTEST_LEASE, PushCallbackService
from hub.services.service_errors import Gone
from protocols.websub.signatures import sign
from protocols.websub.subscribing import HubDenial, HubQuestion
from storage.contract import Storage
from storage.errors import NotFound
from storage.records import (
    CallbackState,
    NewFeed,
    NewPushCallback,
    Push,
    PushOffer,
    PushWay,
    PushWrite,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.storage_scene import fetch
from tests.support.work_claims import ask_hub, leave_hub

TOPIC, OTHER = "https://feed.example/", "https://other.example/"
SECRET = "the secret"
TOKENS = ("a", "b")


@dataclass
class Queue:
    taken: list[ReceivedPush] = field(default_factory=list)

    def is_known(self, delivery: ReceivedPush) -> bool:
        return False

    def has_place(self, delivery: ReceivedPush) -> bool:
        return True

    def put(self, delivery: ReceivedPush) -> None:
        self.taken.append(delivery)

    def reading(self) -> BodyReservation:
        raise NotImplementedError


TOKEN = st.sampled_from([*TOKENS, "guessed"])
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(TOKENS)),
        st.tuples(st.just("leave"), st.sampled_from(TOKENS)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
        st.tuples(
            st.just("question"),
            TOKEN,
            st.sampled_from(["subscribe", "unsubscribe"]),
            st.sampled_from([TOPIC, OTHER]),
            st.integers(0, 20 * 86_400),
        ),
        st.tuples(st.just("deny"), TOKEN, st.sampled_from([TOPIC, OTHER])),
        st.tuples(st.just("push"), TOKEN, st.booleans()),
    ),
    max_size=25,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EVENTS)
def test_only_what_was_asked_for_is_confirmed_and_only_what_is_signed_is_taken(
    events: list[tuple[object, ...]],
) -> None:
    asyncio.run(_play(events))


async def _play(events: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        storage = await open_chosen(Path(directory) / "hub.db")
        try:
            await Game(storage).play(events)
        finally:
            await storage.close()


class Game:
    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.clock = ManualClock()
        self.queue = Queue()
        self.service = PushCallbackService(
            storage, self.queue, self.clock, lambda: None, is_on=True
        )

    async def play(self, events: list[tuple[object, ...]]) -> None:
        now = self.clock.now()
        self.feed, _ = await self.storage.feeds.add(NewFeed(url=TOPIC), now)
        offer = PushOffer(way=PushWay.WEBSUB, hub="https://hub.example/", topic=TOPIC)
        push = PushWrite(push=Push(offer=offer))
        await self.storage.log.commit(replace(fetch(self.feed), push=push))
        for kind, *more in events:
            await getattr(self, str(kind))(*more)

    async def ask(self, name: str) -> None:
        if await self.storage.pushes.find(name) is not None:
            return
        now = self.clock.now()
        await ask_hub(
            self.storage,
            NewPushCallback(
                feed_id=self.feed.id,
                way=PushWay.WEBSUB,
                hub="https://hub.example/",
                topic=TOPIC,
                token=name,
                secret=SECRET,
                asked_at=now,
                until=now + CONFIRMED_WITHIN,
            ),
        )

    async def leave(self, name: str) -> None:
        callback = await self.storage.pushes.find(name)
        if callback is not None:
            until = self.clock.now() + CONFIRMED_WITHIN
            await leave_hub(self.storage, callback, until)

    async def wait(self, hours: int) -> None:
        self.clock.advance(hours * 900.0)

    async def question(self, name: str, mode: str, topic: str, lease: int) -> None:
        before = await self.storage.pushes.find(name)
        now = self.clock.now()
        asked = HubQuestion(mode=mode, topic=topic, challenge="c", lease_seconds=lease)
        try:
            await self.service.answer(name, asked)
        except NotFound:
            return
        assert before is not None
        assert topic == TOPIC
        assert now < before.until
        if mode == "unsubscribe":
            assert before.state is CallbackState.ENDING
        else:
            assert before.state is not CallbackState.ENDING
            assert now < before.asked_at + CONFIRMED_WITHIN
            assert timedelta(seconds=lease) >= SHORTEST_LEASE

    async def deny(self, name: str, topic: str) -> None:
        with suppress(NotFound):
            await self.service.answer(name, HubDenial(topic=topic))
            assert topic == TOPIC
            assert await self.storage.pushes.find(name) is None

    async def push(self, name: str, is_signed: bool) -> None:
        before = await self.storage.pushes.find(name)
        taken = len(self.queue.taken)
        signature = sign("sha256", SECRET if is_signed else "guessed", b"news")
        try:
            callback = await self.service.open(name)
        except Gone:
            return
        assert before is not None
        assert before.state is not CallbackState.ASKED
        await self.service.take(callback, b"news", "", signature)
        is_taken = is_signed and before.state is CallbackState.ACTIVE
        assert len(self.queue.taken) == taken + is_taken
