"""What is pushed waits in bounds, and is worked off one by one of each feed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace

from hub.core.fetched import Fetched
from hub.ingest.prefetched_responses import PushedContent
from hub.push.received_pushes import (
    MOST_BYTES,
    MOST_OF_FEED,
    MOST_WAITING,
    ReceivedPush,
    ReceivedPushes,
)
from hub.websub.ping_queue import PingQueue
from storage.contract import Storage
from storage.errors import WriteFailed
from storage.records import (
    CallbackState,
    FeedId,
    FeedState,
    NewFeed,
    PollReason,
    Push,
    PushCallback,
    PushOffer,
    PushWay,
    PushWrite,
    StoredFeed,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.services import FakePoller
from tests.support.storage_scene import START, fetch
from tests.support.waiting import eventually


@dataclass
class Brought:
    """Takes what is brought, unless it ``refuses``."""

    refuses: bool = False
    failure: Exception | None = None
    next_failure: Callable[[], Exception | None] = lambda: None
    taken: list[Fetched] = field(default_factory=list)

    @contextmanager
    def provide_pushed(
        self, url: str, fetched: Fetched
    ) -> Iterator[Callable[[], bool]]:
        if failure := self.failure or self.next_failure():
            raise failure
        if not self.refuses:
            self.taken.append(fetched)
        yield lambda: not self.refuses


@dataclass
class Scene:
    storage: Storage
    poller: FakePoller
    brought: Brought
    deliveries: ReceivedPushes
    feed: StoredFeed

    def delivery(
        self, body: bytes = b"news", feed_id: int | None = None
    ) -> ReceivedPush:
        return ReceivedPush(
            callback=PushCallback(
                id=1,
                feed_id=FeedId(feed_id or self.feed.id),
                way=PushWay.WEBSUB,
                hub="https://hub.example/",
                topic="https://a.example/feed",
                token="a token",
                secret="a secret",
                state=CallbackState.ACTIVE,
                asked_at=START,
                until=START + timedelta(days=1),
            ),
            at=START,
            body=body,
            content_type="application/atom+xml",
        )

    def put(self, body: bytes = b"news", feed_id: int | None = None) -> None:
        delivery = self.delivery(body, feed_id)
        assert self.deliveries.has_place(delivery)
        self.deliveries.put(delivery)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_chosen(tmp_path / "hub.db")
    try:
        clock, brought = ManualClock(), Brought()
        poller = FakePoller(storage, clock)
        feed, _ = await storage.feeds.add(NewFeed(url="https://a.example/feed"), START)
        offer = PushOffer(way=PushWay.WEBSUB, hub="https://h.example/", topic=feed.url)
        push = PushWrite(push=Push(offer=offer))
        await storage.log.commit(replace(fetch(feed), push=push))
        content = PushedContent(poller, brought.provide_pushed, clock)
        deliveries = ReceivedPushes(
            storage, content, PingQueue(poller, clock), clock, pauses=(0.0, 0.01)
        )
        yield Scene(storage, poller, brought, deliveries, feed)
    finally:
        await storage.close()


async def test_content_is_taken_as_what_the_feed_answered(scene: Scene) -> None:
    await scene.deliveries.take(scene.delivery())
    [fetched] = scene.brought.taken
    assert (fetched.body, fetched.status) == (b"news", 200)
    assert fetched.is_partial
    assert fetched.is_pushed
    assert fetched.content_type == "application/atom+xml"
    assert scene.poller.asked == []


async def test_what_cannot_be_taken_has_the_feed_asked(scene: Scene) -> None:
    scene.brought.refuses = True
    await scene.deliveries.take(scene.delivery())
    assert scene.poller.asked == [scene.feed.id]


async def test_a_notice_without_content_has_the_feed_asked(scene: Scene) -> None:
    await scene.deliveries.take(scene.delivery(b""))
    assert scene.poller.asked == [scene.feed.id]
    assert scene.poller.reasons == [PollReason.WOKEN_BY_PUSH]


async def test_a_feed_that_is_not_polled_is_not_pushed(scene: Scene) -> None:
    await scene.storage.feeds.set_state(scene.feed.id, FeedState.PAUSED, START)
    await scene.deliveries.take(scene.delivery())
    await scene.deliveries.take(scene.delivery(feed_id=99))
    assert scene.brought.taken == []
    assert scene.poller.asked == []


async def test_too_many_of_one_feed_are_refused_and_others_taken(scene: Scene) -> None:
    for number in range(MOST_OF_FEED):
        scene.put(b"%d" % number)
    assert not scene.deliveries.has_place(scene.delivery(b"one more"))
    assert scene.deliveries.has_place(scene.delivery(feed_id=2))


async def test_too_many_are_refused(scene: Scene) -> None:
    for number in range(MOST_WAITING):
        scene.put(feed_id=number + 1)
    assert not scene.deliveries.has_place(scene.delivery(feed_id=MOST_WAITING + 1))


async def test_bodies_that_are_read_or_wait_have_so_much_room(scene: Scene) -> None:
    half = MOST_BYTES // 2
    with scene.deliveries.reading() as first, scene.deliveries.reading() as second:
        assert first.take(half)
        assert second.take(half)
        assert not second.take(1)
        assert not scene.deliveries.has_place(scene.delivery(b"x"))
        assert scene.deliveries.has_place(scene.delivery(b""))
    assert scene.deliveries.has_place(scene.delivery(b"x"))


async def test_all_of_them_are_worked_off_and_one_fault_harms_no_other(
    scene: Scene,
) -> None:
    running = asyncio.create_task(scene.deliveries.run())
    for failure in (RuntimeError("a fault"), WriteFailed("no room")):
        scene.brought.failure = failure
        scene.put(b"lost")
        await eventually(lambda: not scene.deliveries.held)
    scene.brought.failure = None
    scene.put(b"found")
    await eventually(lambda: not scene.deliveries.held)
    assert [each.body for each in scene.brought.taken] == [b"found"]
    assert scene.deliveries.is_known(scene.delivery(b"found"))
    assert not scene.deliveries.is_known(scene.delivery(b"lost"))
    assert not scene.deliveries.is_known(scene.delivery(b""))
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_what_cannot_be_stored_at_first_is_tried_again(scene: Scene) -> None:
    tries = 0

    def fail_at_first() -> Exception | None:
        nonlocal tries
        tries += 1
        return WriteFailed("no room") if tries < 3 else None

    scene.brought.next_failure = fail_at_first
    running = asyncio.create_task(scene.deliveries.run())
    scene.put(b"found")
    await eventually(lambda: not scene.deliveries.held)
    assert [each.body for each in scene.brought.taken] == [b"found"]
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_push_takes_back_its_own_note_and_none_of_what_came_before(
    scene: Scene,
) -> None:
    """Else nobody would ask for what could not be stored, or is not yet."""
    scene.put(b"first")
    second = scene.delivery(b"second")
    await scene.deliveries.take(second)
    assert scene.brought.taken[-1].heeds_until is None

    running = asyncio.create_task(scene.deliveries.run())
    await eventually(lambda: not scene.deliveries.held)
    assert scene.brought.taken[-1].heeds_until == START

    scene.brought.failure = WriteFailed("no room")
    scene.put(b"lost")
    await eventually(lambda: not scene.deliveries.held)
    scene.brought.failure = None
    await scene.deliveries.take(second)
    assert scene.brought.taken[-1].heeds_until is None
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


class SlowHints:
    """The storage, whose hints are none, and are read when they `may_be`."""

    def __init__(self, storage: Storage) -> None:
        self.feeds, self.pushes = storage.feeds, self
        self.may_be, self.were = asyncio.Event(), asyncio.Event()

    async def hinted(self, *, after: FeedId, limit: int) -> list[FeedId]:
        await self.may_be.wait()
        asyncio.get_running_loop().call_soon(self.were.set)
        return []


async def test_what_is_given_up_while_hints_are_read_is_kept_in_mind(
    scene: Scene,
) -> None:
    hints, clock = SlowHints(scene.storage), ManualClock()
    deliveries = ReceivedPushes(
        cast(Storage, hints),
        PushedContent(scene.poller, scene.brought.provide_pushed, clock),
        PingQueue(scene.poller, clock),
        clock,
    )
    running = asyncio.create_task(deliveries.run())
    await asyncio.sleep(0)  # it asks for them
    await asyncio.sleep(0)
    await deliveries.take(replace(scene.delivery(), body=b""))
    hints.may_be.set()
    await hints.were.wait()
    await deliveries.take(scene.delivery(b"later"))
    assert scene.brought.taken[-1].heeds_until is None
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_feeds_that_hubs_told_of_before_a_restart_are_asked(
    scene: Scene,
) -> None:
    await scene.storage.pushes.hint(scene.delivery().callback, START)
    running = asyncio.create_task(scene.deliveries.run())
    await eventually(lambda: scene.poller.asked == [scene.feed.id])
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
