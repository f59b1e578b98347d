"""What is due is done by who has claimed it, and by nobody else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import pytest
from msgspec.structs import replace

from storage.contract import Storage
from storage.records import (
    ANONYMOUS,
    FeedId,
    FeedStatistics,
    FeedStatisticsWrite,
    NewNode,
    NewPushCallback,
    NewVerification,
    Push,
    PushOffer,
    PushWay,
    PushWrite,
    VerificationMode,
    VerificationState,
    VerificationTry,
    WorkKind,
)
from tests.support.storage_scene import START, Scene, at, fetch
from tests.support.work_claims import ask_hub, hold

IS_MODELLED = False
NODE = NewNode(name="node")
LATE = START + timedelta(days=1)
"""When all of it is due, for whoever claims it first."""
OVER = LATE + timedelta(seconds=60)
"""When its lease is over."""
NEXT = LATE + timedelta(days=9)


@dataclass
class Work:
    """One piece: ``due`` lists what is, ``settle`` stores what came of it."""

    id: int
    due: Callable[[datetime], Awaitable[list[int]]]
    settle: Callable[[int], Awaitable[bool]]


async def a_verification(storage: Storage) -> Work:
    store = storage.verifications
    new = NewVerification(
        account=ANONYMOUS,
        mode=VerificationMode.SUBSCRIBE,
        topic="https://a.example/feed",
        callback="https://you.example/hook",
        token="token",
    )
    await store.add(new, START, most=9, most_of_host=9)
    tried = VerificationTry(at=LATE, status=500)

    async def due(now: datetime) -> list[int]:
        return [each.id for each in await store.due(now, per_host=9, limit=9)]

    async def settle(lease_id: int) -> bool:
        return await store.finish(
            id, VerificationState.FAILED, tried, kept_until=NEXT, lease_id=lease_id
        )

    (id,) = await due(LATE)
    return Work(id, due, settle)


async def a_digest(storage: Storage) -> Work:
    store, scene = storage.digests, Scene(storage)
    subscription = await scene.subscribe(await scene.add_feed())
    await store.set(subscription.id, START)

    async def due(now: datetime) -> list[int]:
        return [each.id for each in await store.due(now, 9)]

    async def settle(lease_id: int) -> bool:
        return await store.settle(subscription.id, NEXT, lease_id=lease_id)

    return Work(subscription.id, due, settle)


async def a_denial(storage: Storage) -> Work:
    store, scene = storage.subscriptions, Scene(storage)
    id = (await scene.subscribe(await scene.add_feed())).id
    await store.end(id, "ended", START, tell=True)

    async def due(now: datetime) -> list[int]:
        return [each.id for each in await store.ending(now, 9)]

    async def settle(lease_id: int) -> bool:
        return await store.mark_denied([id], lease_id=lease_id) == {id}

    return Work(id, due, settle)


async def some_statistics(storage: Storage) -> Work:
    store = storage.feed_statistics
    feed = await Scene(storage).add_feed()
    write = FeedStatisticsWrite(
        feed_id=feed.id,
        statistics=FeedStatistics(maintained_at=LATE),
        site="",
        places=frozenset(),
        due=NEXT,
    )

    async def due(now: datetime) -> list[int]:
        return [*await store.due(now, 9)]

    async def settle(lease_id: int) -> bool:
        return await store.save([write], lease_id=lease_id) == {feed.id}

    return Work(feed.id, due, settle)


async def a_push(storage: Storage) -> Work:
    store = storage.pushes
    feed = await Scene(storage).add_feed()
    offer = PushOffer(way=PushWay.WEBSUB, hub="https://h.example/", topic=feed.url)
    write = PushWrite(push=Push(offer=offer), is_turned=True)
    await storage.log.commit(replace(fetch(feed), push=write))

    async def due(now: datetime) -> list[int]:
        return [each.feed_id for each in await store.due(now, limit=9)]

    async def settle(lease_id: int) -> bool:
        is_held = await store.postpone(feed.id, NEXT, lease_id=lease_id)
        await storage.claims.release(WorkKind.PUSHES, [feed.id], lease_id=lease_id)
        return is_held

    return Work(feed.id, due, settle)


KINDS = {
    WorkKind.VERIFICATIONS: a_verification,
    WorkKind.DIGESTS: a_digest,
    WorkKind.DENIALS: a_denial,
    WorkKind.STATISTICS: some_statistics,
    WorkKind.PUSHES: a_push,
}
each_kind = pytest.mark.parametrize("kind", WorkKind)


async def claim(
    storage: Storage, kind: WorkKind, id: int, lease_id: int, now: datetime = LATE
) -> bool:
    held = await storage.claims.claim(
        kind, [id, 99], lease_id=lease_id, seconds=60, now=now
    )
    return held == {id}


@each_kind
async def test_one_holds_it_until_the_lease_is_over_and_then_another(
    storage: Storage, kind: WorkKind
) -> None:
    work = await KINDS[kind](storage)
    assert await work.due(LATE) == [work.id]

    assert await claim(storage, kind, work.id, 1)
    assert await work.due(LATE) == []
    assert not await claim(storage, kind, work.id, 2)
    assert await work.due(OVER) == [work.id]
    assert await claim(storage, kind, work.id, 2, OVER)

    assert not await work.settle(1), "of whom the lease is over, nothing is stored"
    assert await work.due(OVER + timedelta(seconds=60)) == [work.id]
    assert await work.settle(2)
    assert await work.due(OVER) == []


@each_kind
async def test_what_is_stored_is_no_longer_due_to_who_listed_it_before(
    storage: Storage, kind: WorkKind
) -> None:
    work = await KINDS[kind](storage)
    assert await claim(storage, kind, work.id, 1)
    assert await work.settle(1)

    assert not await claim(storage, kind, work.id, 2)
    assert not await work.settle(1), "nor is it stored twice"


@each_kind
async def test_who_comes_back_late_stores_it_if_nobody_else_has_claimed_it(
    storage: Storage, kind: WorkKind
) -> None:
    work = await KINDS[kind](storage)
    assert await claim(storage, kind, work.id, 1)
    assert await work.due(OVER) == [work.id]

    assert await work.settle(1)

    assert await work.due(OVER) == []


@each_kind
async def test_a_lease_that_is_renewed_lasts_as_long_from_then_on(
    storage: Storage, kind: WorkKind
) -> None:
    work = await KINDS[kind](storage)
    assert await claim(storage, kind, work.id, 1)
    halfway = LATE + timedelta(seconds=30)
    renew = partial(storage.claims.renew, kind, [work.id, 99], seconds=60)

    assert await renew(lease_id=1, now=halfway) == {work.id}
    assert await renew(lease_id=2, now=halfway) == frozenset(), "nor any other"

    assert await work.due(OVER) == []
    assert not await claim(storage, kind, work.id, 2, OVER)
    over = halfway + timedelta(seconds=60)
    assert await work.due(over) == [work.id]
    assert await renew(lease_id=1, now=over) == frozenset(), "it is over"
    assert await claim(storage, kind, work.id, 2, over)
    assert await renew(lease_id=1, now=over) == frozenset()
    assert await work.settle(2)
    assert await renew(lease_id=2, now=over) == frozenset()


@each_kind
async def test_what_is_released_or_held_by_who_has_left_is_free(
    storage: Storage, kind: WorkKind
) -> None:
    work = await KINDS[kind](storage)
    await storage.membership.join(NODE)
    assert await claim(storage, kind, work.id, 1)
    await storage.claims.release(kind, [work.id], lease_id=9)  # not under this one
    assert await work.due(LATE) == []
    await storage.claims.release(kind, [work.id], lease_id=1)
    assert await work.due(LATE) == [work.id]

    assert await claim(storage, kind, work.id, 2)
    await storage.membership.join(NODE)  # started anew
    assert await work.due(LATE) == [work.id]
    assert not await work.settle(2)
    assert await claim(storage, kind, work.id, 3)


@each_kind
async def test_claims_of_one_kind_say_nothing_of_another(
    storage: Storage, kind: WorkKind
) -> None:
    work = await KINDS[kind](storage)
    for other in WorkKind:
        if other is not kind:
            await claim(storage, other, work.id, 1)
    assert await work.due(LATE) == [work.id]
    assert not await work.settle(1)
    assert await claim(storage, kind, work.id, 2)


async def test_no_two_verifications_with_one_key_are_held(storage: Storage) -> None:
    """One that was replaced while its callback was asked may still be confirmed."""
    work = await a_verification(storage)
    await hold(storage, WorkKind.VERIFICATIONS, work.id, now=START)
    again = NewVerification(
        account=ANONYMOUS,
        mode=VerificationMode.SUBSCRIBE,
        topic="https://a.example/feed",
        callback="https://you.example/hook",
        token="again",
    )
    await storage.verifications.add(again, START, most=9, most_of_host=9)
    replacing = await storage.verifications.find("again")
    assert replacing is not None

    kind = WorkKind.VERIFICATIONS
    assert not await claim(storage, kind, replacing.id, 2, START)
    await storage.claims.release(kind, [work.id], lease_id=77)
    assert await claim(storage, kind, replacing.id, 2, START)


async def test_a_paused_subscription_gets_no_digest(storage: Storage) -> None:
    work = await a_digest(storage)
    await storage.subscriptions.pause(work.id, at(1))
    assert not await claim(storage, WorkKind.DIGESTS, work.id, 1)


async def test_what_a_hub_says_itself_needs_no_claim(storage: Storage) -> None:
    work = await a_push(storage)
    asked = NewPushCallback(
        feed_id=FeedId(work.id),
        way=PushWay.WEBSUB,
        hub="https://h.example/",
        topic="https://a.example/feed",
        token="t",
        secret="a secret",
        asked_at=START,
        until=LATE,
    )
    await ask_hub(storage, asked)
    callback = await storage.pushes.find("t")
    assert callback is not None
    assert await claim(storage, WorkKind.PUSHES, work.id, 1)

    assert await storage.pushes.confirm(callback, LATE)
    assert not await storage.pushes.drop(callback, lease_id=2)
    assert await storage.pushes.find("t") is not None
    assert await storage.pushes.drop(callback)
    assert await storage.pushes.find("t") is None
