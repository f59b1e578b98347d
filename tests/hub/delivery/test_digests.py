"""Digests: once a day, whatever came; marked, signed, and tried again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hub.delivery.digests import Digests
from hub.delivery.notification_counter import GIVEN, NotificationCounter
from hub.http import Request
from hub.http.network_errors import TimedOut
from protocols.model import Entry, Status
from protocols.websub.signatures import verify
from storage.contract import DigestStore
from storage.errors import StorageClosed, StorageError
from storage.records import (
    OPERATOR,
    DecisionsMissed,
    FetchCommit,
    Format,
    NewFeed,
    NewSubscription,
    Polling,
    RecordKind,
    RecordWrite,
    Subscription,
    SubscriptionId,
    WorkKind,
)
from storage.sqlite.operations import SqliteStorage
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.fake_network import FakeNetwork
from tests.support.waiting import eventually
from tests.support.work_claims import HOLD, LongWork, claims_of, hold

DAY = timedelta(days=1)


@dataclass
class Scene:
    storage: SqliteStorage
    clock: ManualClock
    callback: FakeNetwork
    digests: Digests
    subscription: Subscription

    async def publish(self, *ages: timedelta) -> None:
        now = self.clock.now()
        entries = [
            Entry(key=str(age), id=str(age), title=str(age), updated=now - age)
            for age in ages
        ] + [Entry(key="undated", id="undated")]
        await self.storage.log.commit(
            FetchCommit(
                feed_id=self.subscription.feed_id,
                at=now,
                next_fetch=now + DAY,
                polling=Polling(code=200),
                entries=tuple(entries),
                records=(
                    RecordWrite(
                        kind=RecordKind.ENTRIES,
                        status=Status(code=200),
                        entries=tuple((e.key, True) for e in entries),
                    ),
                ),
            )
        )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock, callback = ManualClock(), FakeNetwork()
    storage = await open_chosen(tmp_path / "hub.db")
    try:
        new_feed = NewFeed(url="https://a.example/feed")
        feed, _ = await storage.feeds.add(new_feed, clock.now())
        new = NewSubscription(
            account=OPERATOR,
            topic=feed.url,
            feed_id=feed.id,
            callback="https://you.example/cb",
            secret="s3cret",
            algorithm="sha1",
            format=Format.JSON,
        )
        subscription = await storage.subscriptions.add(new, clock.now())
        await storage.digests.set(subscription.id, clock.now())
        digests = Digests(
            storage,
            callback,
            clock,
            "https://hub.example/hub",
            NotificationCounter(),
            claims_of(storage, clock),
        )
        yield Scene(storage, clock, callback, digests, subscription)
    finally:
        await storage.close()


async def test_it_has_the_days_entries_and_says_what_it_is(scene: Scene) -> None:
    await scene.publish(timedelta(hours=1), timedelta(hours=30))
    assert await scene.digests.send_due() == 1
    [request] = scene.callback.requests
    assert request.url == "https://you.example/cb"
    assert request.body is not None
    document = json.loads(request.body)
    assert document["status"]["digest"] is True
    assert [each["title"] for each in document["items"]] == ["1:00:00"]
    assert verify(request.headers["X-Hub-Signature"], "s3cret", request.body)
    assert request.headers["X-Superfeedr-Credits"] == str(GIVEN - 1)
    assert int(request.headers["X-Superfeedr-PubSubHubbub-Expire"]) > 2_000_000_000
    assert "." not in request.headers["webhook-id"]


async def test_without_any_it_comes_all_the_same(scene: Scene) -> None:
    await scene.digests.send_due()
    [request] = scene.callback.requests
    assert json.loads(request.body or b"")["items"] == []


async def test_as_atom_the_feed_is_marked(scene: Scene) -> None:
    new = NewSubscription(
        account=OPERATOR,
        topic=scene.subscription.topic,
        feed_id=scene.subscription.feed_id,
        callback=scene.subscription.callback,
        format=Format.ATOM,
    )
    await scene.storage.subscriptions.add(new, scene.clock.now())
    await scene.digests.send_due()
    assert b'sf:digest="true"' in (scene.callback.requests[0].body or b"")


async def test_the_next_is_a_day_later(scene: Scene) -> None:
    await scene.digests.send_due()
    scene.clock.advance(DAY.total_seconds() - 1)
    assert await scene.digests.send_due() == 0
    scene.clock.advance(1)
    assert await scene.digests.send_due() == 1


@pytest.mark.parametrize("answer", [500, TimedOut("no answer")])
async def test_one_that_fails_is_sent_again_an_hour_later(
    scene: Scene, answer: int | Exception
) -> None:
    scene.callback.answer_with(answer)
    await scene.digests.send_due()
    assert await scene.digests.send_due() == 0
    scene.clock.advance(3_600)
    assert await scene.digests.send_due() == 1


async def test_who_has_ended_gets_none(scene: Scene) -> None:
    storage, now = scene.storage, scene.clock.now()
    await storage.subscriptions.end(scene.subscription.id, "enough", now, tell=False)
    assert await scene.digests.send_due() == 0
    await storage.digests.set(scene.subscription.id, now)
    assert await scene.digests.send_due() == 0


async def test_who_is_paused_gets_one_when_it_is_resumed(scene: Scene) -> None:
    subscriptions, now = scene.storage.subscriptions, scene.clock.now()
    await subscriptions.pause(scene.subscription.id, now)
    scene.clock.advance(2 * DAY.total_seconds())
    assert await scene.digests.send_due() == 0
    await subscriptions.resume(scene.subscription.id, scene.clock.now())
    assert await scene.digests.send_due() == 1
    assert await scene.digests.send_due() == 0


@pytest.mark.parametrize("has_ended", [False, True])
async def test_who_is_paused_or_ends_while_one_is_made_gets_none(
    scene: Scene, has_ended: bool
) -> None:
    subscriptions, now = scene.storage.subscriptions, scene.clock.now()

    async def halt() -> None:
        if has_ended:
            await subscriptions.end(scene.subscription.id, "enough", now, tell=False)
        else:
            await subscriptions.pause(scene.subscription.id, now)

    store = HaltsMeanwhile(scene.storage.digests, halt)
    scene.storage.digests = store  # type: ignore[assignment]

    await scene.digests.send_due()

    assert scene.callback.requests == []
    await subscriptions.resume(scene.subscription.id, now)
    await scene.digests.send_due()
    assert len(scene.callback.requests) == (0 if has_ended else 1)


async def test_a_database_in_trouble_is_asked_again(scene: Scene) -> None:
    class Troubled:
        asked = 0

        async def due(self, now: object, limit: int) -> list[Subscription]:
            self.asked += 1
            raise StorageClosed("the database is closed")

    troubled = Troubled()
    scene.storage.digests = troubled  # type: ignore[assignment]
    working = asyncio.create_task(scene.digests.run())
    await eventually(lambda: troubled.asked > 0)
    assert not working.done()
    working.cancel()
    await asyncio.wait({working})


async def test_a_database_that_fails_for_one_keeps_it_due_and_sends_the_others(
    scene: Scene,
) -> None:
    other = await another_subscription(scene)
    store = FailsFor(scene.storage.digests, other.id)
    scene.storage.digests = store  # type: ignore[assignment]

    with capture_logs() as lines:
        assert await scene.digests.send_due() == 1
    assert len(scene.callback.requests) == 2
    assert [(line["event"], line["subscription"]) for line in lines] == [
        ("digest_not_sent", other.id)
    ]

    store.failing = None
    assert await scene.digests.send_due() == 1
    assert scene.callback.requests[-1].url == other.callback


async def test_a_fault_while_one_is_made_is_logged_and_it_is_sent_an_hour_later(
    scene: Scene,
) -> None:
    scene.callback.answer_with(ValueError("odd"))

    with capture_logs() as lines:
        assert await scene.digests.send_due() == 1
    assert [(line["event"], line["exc_info"]) for line in lines] == [
        ("digest_failed", True)
    ]

    scene.callback.answer_with(200)
    assert await scene.digests.send_due() == 0
    scene.clock.advance(3_600)
    assert await scene.digests.send_due() == 1


async def another_subscription(scene: Scene) -> Subscription:
    new = NewSubscription(
        account=OPERATOR,
        topic=scene.subscription.topic,
        feed_id=scene.subscription.feed_id,
        callback="https://they.example/cb",
        format=Format.JSON,
    )
    added = await scene.storage.subscriptions.add(new, scene.clock.now())
    await scene.storage.digests.set(added.id, scene.clock.now())
    return added


class HaltsMeanwhile:
    """Somebody is paused, or ends, as soon as it has been read who is due."""

    def __init__(
        self, store: DigestStore, halt: Callable[[], Awaitable[None]] | None
    ) -> None:
        self.settle = store.settle
        self._halt = halt
        self._store = store

    async def due(self, now: datetime, limit: int) -> list[Subscription]:
        due = await self._store.due(now, limit)
        halt, self._halt = self._halt, None
        if halt is not None:
            await halt()
        return due


class FailsFor:
    """Cannot write when the next digest of one subscription is due."""

    def __init__(self, store: DigestStore, failing: SubscriptionId | None) -> None:
        self.due = store.due
        self.failing = failing
        self._store = store

    async def settle(
        self, subscription: SubscriptionId, due: datetime, *, lease_id: int
    ) -> bool:
        if subscription == self.failing:
            raise StorageError("the disk is full")
        return await self._store.settle(subscription, due, lease_id=lease_id)


@pytest.mark.parametrize(("tells", "shown"), [(True, ["hidden"]), (False, [])])
async def test_entries_that_are_not_to_be_found_are_in_it_unless_withheld(
    scene: Scene, tells: bool, shown: list[str]
) -> None:
    now = scene.clock.now()
    entry = Entry(key="k", id="k", title="hidden", updated=now, unlisted=True)
    await scene.storage.log.commit(
        FetchCommit(
            feed_id=scene.subscription.feed_id,
            at=now,
            next_fetch=now + DAY,
            polling=Polling(code=200),
            entries=(entry,),
        )
    )
    digests = Digests(
        scene.storage,
        scene.callback,
        scene.clock,
        "https://hub.example/hub",
        NotificationCounter(),
        claims_of(scene.storage, scene.clock),
        tells_unlisted=tells,
    )

    await digests.send_due()

    [request] = scene.callback.requests
    told = json.loads(request.body or b"")["items"]
    assert [each["title"] for each in told] == shown


async def test_the_claim_of_one_whose_callback_is_slow_is_renewed(scene: Scene) -> None:
    work = LongWork(scene.storage.claims, scene.clock)
    digests = Digests(
        scene.storage,
        scene.callback,
        scene.clock,
        "https://hub.example/hub",
        NotificationCounter(),
        work.claims,
    )

    async def answer(request: Request) -> int:
        await work.go_on()
        return 200

    scene.callback.answer_with(answer)
    assert await digests.send_due() == 1
    assert work.renewed == [(WorkKind.DIGESTS, {scene.subscription.id})]


async def test_one_that_another_node_is_at_is_sent_by_that_one_alone(
    scene: Scene,
) -> None:
    id, now = scene.subscription.id, scene.clock.now()

    async def claim_elsewhere() -> None:
        await hold(scene.storage, WorkKind.DIGESTS, id, now=now)

    store = HaltsMeanwhile(scene.storage.digests, claim_elsewhere)
    scene.storage.digests = store  # type: ignore[misc,assignment]

    assert await scene.digests.send_due() == 0

    assert scene.callback.requests == []
    await scene.storage.claims.release(WorkKind.DIGESTS, [id], lease_id=HOLD)
    assert await scene.digests.send_due() == 1


async def test_none_is_sent_while_it_is_unknown_who_is_paused(scene: Scene) -> None:
    async def miss() -> None:
        scene.storage.control._tell(DecisionsMissed("nobody can read it"))

    store = HaltsMeanwhile(scene.storage.digests, miss)
    scene.storage.digests = store  # type: ignore[misc,assignment]

    await scene.digests.send_due()
    assert scene.callback.requests == []
    assert await scene.digests.send_due() == 1
    assert len(scene.callback.requests) == 1
