"""Several nodes around one database: what none of them may leave to luck."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from hub.core.delivery.delivery_outcome import DeliveryOutcome
from hub.delivery.acknowledgements import Acknowledgements
from hub.delivery.notification_counter import NotificationCounter
from hub.live.live_connections import ChannelKey, Interest
from hub.live.replays import LogPages, ResumePoint, find_resume_points
from hub.runtime.clock import SystemClock
from hub.runtime.metrics import Metrics
from storage.contract import LogStore, Storage
from storage.errors import OutcomeUnknown
from storage.postgres import open_database as open_postgres
from storage.records import (
    OPERATOR,
    Attempt,
    Format,
    NotStored,
    Position,
    RetryMoved,
    StoredFeed,
    Subscription,
    SubscriptionId,
    Updates,
)
from tests.support.clock import ManualClock
from tests.support.memory.nodes import Cluster, Node
from tests.support.new_database import new_postgres, open_new
from tests.support.storage_scene import START, Scene, all_of, at, fetch, record

LATER = at(120)


class Nodes:
    """Two nodes. What ``late`` begins is committed when the other is done, unless the
    engine has one of them wait."""

    def __init__(self, one: Storage, other: Storage) -> None:
        self.one = Scene(one)
        self.other = Scene(other)

    async def late(
        self, late: Callable[[Scene], Awaitable[Any]], meanwhile: Awaitable[Any]
    ) -> Any:
        """What came of ``meanwhile``."""
        begun, over = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            begun.set()
            await over.wait()

        node = self.one.storage
        if isinstance(node, Node):
            node.before_commit = wait
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(cast("Any", late(self.one)))
            if isinstance(node, Node):
                await begun.wait()
            doing = tasks.create_task(cast("Any", meanwhile))
            await asyncio.wait([doing], timeout=0.05)  # or it waits for the late one
            over.set()
            await writing
        return doing.result()


def of_model(**terms: Any) -> Nodes:
    cluster = Cluster()
    return Nodes(*(cast("Storage", cluster.node(**terms)) for _ in range(2)))


@pytest.fixture(params=["sqlite", "memory", "postgres"])
async def nodes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Nodes]:
    """SQLite is a cluster of one."""
    async with AsyncExitStack() as stack:
        match request.param:
            case "memory":
                yield of_model()
            case "postgres":
                location = await stack.enter_async_context(new_postgres())
                opened = [await open_postgres(location, tmp_path / "key") for _ in "12"]
                for each in opened:
                    stack.push_async_callback(each.close)
                yield Nodes(*opened)
            case _:
                storage = await open_new(tmp_path / "hub.db")
                stack.push_async_callback(storage.close)
                yield Nodes(storage, storage)


# --- who gets a record ---


async def deliver(scene: Scene) -> list[tuple[int, Position]]:
    """Whoever is sent something now, and what."""
    sent = []
    while chunks := await scene.claim(LATER):
        for chunk in chunks:
            position = chunk.record.position
            sent += [(member.id, position) for _, member in chunk.pending]
            await scene.flush(when=LATER, outcomes=all_of(chunk))
    return sent


async def owed(scene: Scene, subscriber: Subscription) -> list[tuple[int, Position]]:
    """What its retry is to bring it."""
    retrying = await scene.storage.deliveries.retrying_subscription(subscriber.id)
    if retrying is None:
        return []
    left = await scene.storage.log.records(after=retrying.position, limit=99)
    return [(subscriber.id, each.position) for each in left]


async def publish_and_deliver(
    scene: Scene, feed: StoredFeed
) -> list[tuple[int, Position]]:
    await scene.publish(feed, "news")
    return await deliver(scene)


async def close_beside_a_record(nodes: Nodes) -> list[tuple[int, Position]]:
    """A retrying subscription has caught up, and is served by fan-out again, while
    another node commits a record."""
    feed = await nodes.one.add_feed()
    late = await nodes.one.subscribe_retrying(feed)
    await nodes.one.subscribe(feed, "punctual")
    (retrying,) = await nodes.one.claim_retrying(at(60))
    caught_up = RetryMoved(
        subscription_id=late.id,
        lease_id=retrying.lease_id,
        position=Position(1),
        attempts=0,
        next_try=START,
        last_status=200,
        finished=True,
    )
    sent = await nodes.late(
        lambda scene: scene.flush(when=at(60), moved=(caught_up,)),
        publish_and_deliver(nodes.other, feed),
    )
    sent += await deliver(nodes.other) + await owed(nodes.other, late)
    return [each for each in sent if each[0] == late.id]


async def subscribe_beside_a_record(nodes: Nodes) -> bool:
    """Whether it gets what lies above where it begins, and nothing else."""
    feed = await nodes.one.add_feed()
    sent = await nodes.late(
        lambda scene: scene.subscribe(feed, "new"),
        publish_and_deliver(nodes.other, feed),
    )
    sent += await deliver(nodes.other)
    (new,) = await nodes.one.storage.subscriptions.page(after=0, limit=9)
    following = await nodes.one.storage.log.records(after=new.from_position, limit=9)
    return sent == [(new.id, each.position) for each in following]


async def test_who_has_caught_up_lacks_no_record_that_another_node_commits(
    nodes: Nodes,
) -> None:
    sent = await close_beside_a_record(nodes)
    assert [position for _, position in sent] == [2]


async def test_who_subscribes_gets_what_follows_from_every_node(nodes: Nodes) -> None:
    assert await subscribe_beside_a_record(nodes)


async def test_an_engine_whose_deliveries_decide_beside_a_commit_is_found() -> None:
    assert await close_beside_a_record(of_model(audience=frozenset())) == []


async def test_an_engine_whose_subscribers_come_beside_a_commit_is_found() -> None:
    assert not await subscribe_beside_a_record(of_model(audience=frozenset()))


# --- where the log ends ---


async def resume_elsewhere(nodes: Nodes) -> ResumePoint:
    """One node has told a client of a record that the other has not read yet."""
    feed = await nodes.one.add_feed()
    behind = nodes.other.storage
    await behind.log.end()
    if isinstance(behind, Node):
        behind.is_behind = True
    await nodes.one.publish(feed, "news")
    shown = str(await nodes.one.storage.log.end())
    pages = LogPages(cast("LogStore", behind.log), Metrics(), SystemClock())
    key = ChannelKey(
        topic=feed.url, feed_id=feed.id, format=Format.JSON, updates=Updates.ALL
    )
    interest = Interest(key=key, cursor=shown)
    end = await behind.log.end()
    (point,) = await find_resume_points(pages, [interest], end)
    return point


async def test_a_cursor_of_one_node_is_known_to_another_that_lags(
    nodes: Nodes,
) -> None:
    point = await resume_elsewhere(nodes)
    assert (point.position, point.is_reset) == (1, False)


async def test_an_engine_that_tells_the_end_it_has_read_last_is_found() -> None:
    point = await resume_elsewhere(of_model(has_true_end=False))
    assert point.is_reset


async def test_who_was_told_the_end_reads_all_up_to_there(nodes: Nodes) -> None:
    feed = await nodes.one.add_feed()
    if isinstance(nodes.other.storage, Node):
        nodes.other.storage.is_behind = True
    await nodes.one.publish(feed, "news")

    end = await nodes.other.storage.log.end()

    records = await nodes.other.storage.log.records(after=0, limit=9)
    assert [each.position for each in records] == [1] == [end.position]


# --- outcomes that are unknown ---


async def test_a_flush_that_was_stored_is_not_stored_again(nodes: Nodes) -> None:
    """By its number; other nodes have numbers of their own."""
    feed = await nodes.one.add_feed()
    late = await nodes.one.subscribe_retrying(feed)
    attempt = Attempt(
        subscription_id=late.id,
        position=Position(1),
        at=START,
        status=500,
        milliseconds=1,
        error="answered 500",
    )
    parts = {"attempts": (attempt,), "notified": ((OPERATOR, 3),)}

    first = await nodes.one.flush(number=7, **parts)
    again = await nodes.one.flush(number=7, **parts)

    assert again == first
    deliveries = nodes.one.storage.deliveries
    assert len(await deliveries.attempts(late.id, 9)) == 2
    assert await deliveries.notified() == {OPERATOR: 3}
    await nodes.one.flush(number=8, **parts)
    assert await deliveries.notified() == {OPERATOR: 6}


@pytest.mark.parametrize("is_stored", [True, False])
async def test_outcomes_are_written_once_whatever_became_of_the_answer(
    is_stored: bool,
) -> None:
    nodes = of_model()
    node = cast("Node", nodes.one.storage)
    node.is_lost_after, node.is_lost_before = is_stored, not is_stored
    counter = NotificationCounter()
    counter.take(OPERATOR)
    writing = Acknowledgements(
        node.deliveries, ManualClock(), counter=counter, retry_seconds=0.01
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writing.run())
        await writing.add(DeliveryOutcome(recovered=SubscriptionId(1)))
        writing.stop()

    notified = await nodes.other.storage.deliveries.notified()
    assert notified == {OPERATOR: 1}


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_fetch_is_decided_anew_upon_what_became_of_its_commit(
    is_stored: bool,
) -> None:
    nodes = of_model()
    node = cast("Node", nodes.one.storage)
    feed = await nodes.one.add_feed()
    (target,) = await node.feeds.targets([feed.id])
    commit = fetch(feed, version=target.version, records=(record(),))
    node.is_lost_after, node.is_lost_before = is_stored, not is_stored

    with pytest.raises(OutcomeUnknown):
        await node.log.commit(commit)

    again = await node.log.commit(commit)
    assert (again is NotStored.STALE) is is_stored
    assert (await nodes.other.storage.log.end()).position == 1
