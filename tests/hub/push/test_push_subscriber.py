"""What hubs of others are asked, over days that pass in a moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from hub.core.host_set import HostSet
from hub.core.push.hub_subscription import LEASE
from hub.core.push.used_hubs import UsedHubs
from hub.core.schedule.poll_period import Plan, PollingRules, plan
from hub.http import Purpose, Request
from hub.http.network_errors import Unreachable
from hub.limits.host_limiter import HostLimiter
from hub.limits.push_hub_limiter import FIRST_PAUSE, LONGEST_PAUSE, HubLimiter, Turn
from hub.push.push_subscriber import (
    NOT_CONFIRMED,
    HubRequests,
    PollResumer,
    PushSubscriber,
)
from hub.push.received_pushes import BodyReservation, ReceivedPush
from hub.runtime.work_leases import WORK_SECONDS, WorkClaims
from hub.services.push_callbacks import PushCallbackService
from hub.services.service_errors import Gone
from protocols.websub.subscribing import HubQuestion
from storage.contract import Storage
from storage.errors import NotFound, WriteFailed
from storage.records import (
    FeedPush,
    FeedState,
    NewFeed,
    Polling,
    Push,
    PushOffer,
    PushRecord,
    PushWay,
    PushWrite,
    StoredFeed,
    WorkKind,
)
from tests.support.chosen_engine import open_chosen
from tests.support.clock import ManualClock
from tests.support.fake_network import FakeNetwork, answered
from tests.support.storage_scene import fetch
from tests.support.waiting import eventually
from tests.support.work_claims import HOLD, LongWork, claims_of, hold

HUB = "https://hub.exempt/"
PACED = "https://hub.example/"
OUR_URL = "https://us.example"
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


class NoDeliveries:
    def is_known(self, delivery: ReceivedPush) -> bool:
        raise NotImplementedError

    def has_place(self, delivery: ReceivedPush) -> bool:
        raise NotImplementedError

    def put(self, delivery: ReceivedPush) -> None:
        raise NotImplementedError

    def reading(self) -> BodyReservation:
        raise NotImplementedError


def normal_plan(feed: StoredFeed) -> Plan:
    at = feed.polling.last_fetch
    assert at is not None
    return plan(feed.polling, 1, PollingRules(), at)


@dataclass
class Scene:
    storage: Storage
    clock: ManualClock
    hub: FakeNetwork
    hosts: HubLimiter
    subscriber: PushSubscriber
    service: PushCallbackService
    woken: list[bool]  # the poller, each time

    async def add_feed(
        self, name: str = "a", *, hub: str = HUB, way: PushWay = PushWay.WEBSUB
    ) -> StoredFeed:
        new = NewFeed(url=f"https://{name}.example/feed")
        feed, _ = await self.storage.feeds.add(new, self.clock.now())
        await self.offer(feed, PushOffer(way=way, hub=hub, topic=feed.url))
        return feed

    async def offer(
        self, feed: StoredFeed, offer: PushOffer | None, *, proofs: int = 2
    ) -> None:
        """Its document names a hub; and it is polled rarely from then on."""
        polling = Polling(last_fetch=self.clock.now(), code=200, subscribers=1)
        push = Push(offer=offer, record=PushRecord(proofs=proofs))
        await self.storage.log.commit(
            replace(
                fetch(feed, polling=polling),
                next_fetch=self.clock.now() + 30 * DAY,
                push=PushWrite(push=push, is_turned=True),
            )
        )

    async def settle(self) -> None:
        """Do all that is due now, as the subscriber does in its rounds."""
        for upstream in await self.storage.pushes.due(self.clock.now(), limit=99):
            await self.subscriber.settle(upstream)

    async def confirm(
        self, feed: StoredFeed, *, mode: str = "subscribe", lease: timedelta = LEASE
    ) -> None:
        """The last request, as its hub would."""
        token = self.hub.forms[-1]["hub.callback"].rpartition("/")[2]
        question = HubQuestion(
            mode=mode,
            topic=feed.url,
            challenge="c",
            lease_seconds=int(lease.total_seconds()),
        )
        assert await self.service.answer(token, question) == "c"
        await self.settle()

    async def upstream(self, feed: StoredFeed) -> FeedPush:
        found = await self.storage.pushes.get(feed.id)
        assert found is not None
        return found

    async def is_overdue(self, feed: StoredFeed) -> bool:
        found = await self.storage.feeds.get(feed.id)
        assert found is not None
        return found.next_fetch <= self.clock.now()

    async def pause(self, feed: StoredFeed) -> None:
        feeds = self.storage.feeds
        await feeds.set_state(feed.id, FeedState.PAUSED, self.clock.now())
        await self.settle()

    def switched(self, *, is_on: bool, unused: Sequence[str] = ()) -> Scene:
        """Started anew, with the same storage, by somebody who has switched it."""
        return build_scene(
            self.storage, self.clock, self.hub, is_on=is_on, unused=unused
        )

    async def pass_time(self, span: timedelta, step: timedelta = HOUR) -> None:
        end = self.clock.now() + span
        while self.clock.now() < end:
            self.clock.advance(min(step, end - self.clock.now()).total_seconds())
            await self.settle()


class TroubledAtFirst:
    """The pushes of a storage that does not take the first switch."""

    def __init__(self, storage: Storage) -> None:
        self.feeds = storage.feeds
        self.claims = storage.claims
        self.pushes = self
        self._real = storage.pushes
        self.is_well = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def switch(self, *, is_on: bool, unused: Sequence[str]) -> None:
        if not self.is_well:
            self.is_well = True
            raise WriteFailed("the disk is full")
        await self._real.switch(is_on=is_on, unused=unused)


def build_scene(
    storage: Storage,
    clock: ManualClock,
    hub: FakeNetwork,
    *,
    is_on: bool,
    claims: WorkClaims | None = None,
    unused: Sequence[str] = (),
) -> Scene:
    woken: list[bool] = []
    hosts = HubLimiter(partial(hub.is_exempt, purpose=Purpose.HUB))
    subscriber = PushSubscriber(
        storage,
        HubRequests(
            hub,
            clock,
            OUR_URL,
            "Fanfare",
            HostSet(["no.exempt"]),
            HostLimiter(clock),
        ),
        hosts,
        PollResumer(storage, normal_plan, lambda: woken.append(True)),
        clock,
        Random(1),
        claims or claims_of(storage, clock),
        UsedHubs(is_on, HostSet(unused)),
    )
    service = PushCallbackService(
        storage, NoDeliveries(), clock, subscriber.wake, is_on=is_on
    )
    return Scene(storage, clock, hub, hosts, subscriber, service, woken)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    storage = await open_chosen(tmp_path / "hub.db")
    try:
        yield build_scene(storage, ManualClock(), FakeNetwork(202), is_on=True)
    finally:
        await storage.close()


async def test_it_renews_before_the_lease_ends_under_another_callback_and_secret(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    scene.woken.clear()
    await scene.pass_time(LEASE * 0.79, step=DAY)
    assert scene.hub.modes == ["subscribe"]
    await scene.pass_time(3 * HOUR)
    assert scene.hub.modes == ["subscribe"] * 2
    first, second = scene.hub.forms
    assert first["hub.callback"] != second["hub.callback"]
    assert first["hub.secret"] != second["hub.secret"]
    assert len((await scene.upstream(feed)).callbacks) == 2  # both are good until then

    await scene.confirm(feed)
    confirmed_at = scene.clock.now()
    assert scene.hub.modes == ["subscribe", "subscribe", "unsubscribe"]
    assert scene.hub.forms[-1]["hub.callback"] == first["hub.callback"]
    await scene.confirm(feed, mode="unsubscribe")
    [callback] = (await scene.upstream(feed)).callbacks
    assert callback.until == confirmed_at + LEASE
    with pytest.raises(Gone):
        await scene.service.open(first["hub.callback"].rpartition("/")[2])
    assert scene.woken == []


async def test_a_hub_that_vanishes_has_its_feeds_polled_when_the_lease_ends(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.offer(feed, (await scene.upstream(feed)).push.offer)
    await scene.confirm(feed)
    scene.woken.clear()
    scene.hub.answer_with(Unreachable("connection refused"))
    await scene.pass_time(LEASE - HOUR)
    assert not await scene.is_overdue(feed)
    await scene.pass_time(2 * HOUR)
    assert await scene.is_overdue(feed)
    assert scene.woken
    upstream = await scene.upstream(feed)
    assert (upstream.push.until, upstream.callbacks) == (None, ())
    assert upstream.error == "connection refused"


async def test_a_feed_that_was_never_believed_to_be_pushed_keeps_its_polls(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.offer(feed, (await scene.upstream(feed)).push.offer, proofs=1)
    scene.hub.answer_with(Unreachable("connection refused"))
    await scene.pass_time(DAY)
    assert scene.woken == []


async def test_a_feed_that_is_resumed_is_polled_though_it_is_pushed_again(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    feeds = scene.storage.feeds
    await feeds.set_state(feed.id, FeedState.PAUSED, scene.clock.now())
    await scene.settle()
    await scene.confirm(feed, mode="unsubscribe")
    await scene.pass_time(2 * DAY, step=DAY)
    await feeds.defer([(feed.id, scene.clock.now() + 30 * DAY)])
    await feeds.set_state(feed.id, FeedState.ACTIVE, scene.clock.now())
    await scene.settle()
    await scene.confirm(feed)
    assert await scene.is_overdue(feed)


async def test_what_turns_up_just_before_it_rests_is_not_overlooked(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    before = await scene.upstream(feed)
    await scene.offer(feed, None)
    await scene.subscriber.settle(before)  # as it was read
    assert scene.hub.modes == ["subscribe", "unsubscribe"]


async def test_one_that_fails_is_asked_ever_less_often(scene: Scene) -> None:
    feed = await scene.add_feed()
    scene.hub.at[HUB] = 500
    await scene.settle()
    await scene.pass_time(timedelta(days=60), step=3 * HOUR)
    assert (await scene.upstream(feed)).error == "the hub answered 500"
    assert 10 < len(scene.hub.requests) < 30


async def test_one_that_never_confirms_is_asked_ever_less_often_too(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.pass_time(timedelta(days=60), step=3 * HOUR)
    assert (await scene.upstream(feed)).error == NOT_CONFIRMED
    assert 10 < len(scene.hub.requests) < 30


async def test_one_that_asks_for_patience_gets_it(scene: Scene) -> None:
    await scene.add_feed()
    scene.hub.answer_with(answered(429, headers={"Retry-After": str(3 * 86_400)}))
    await scene.settle()
    await scene.pass_time(timedelta(days=2.9))
    assert len(scene.hub.requests) == 1
    await scene.pass_time(DAY)
    assert len(scene.hub.requests) == 2


async def test_many_feeds_of_a_dead_hub_are_few_requests(scene: Scene) -> None:
    for number in range(20):
        await scene.add_feed(f"f{number}")
    scene.hub.answer_with(Unreachable("connection refused"))
    await scene.settle()
    assert len(scene.hub.requests) == 1
    await scene.pass_time(timedelta(minutes=30), step=timedelta(minutes=1))
    assert len(scene.hub.requests) < 8


async def test_a_hub_is_asked_for_one_feed_a_second_and_for_each_in_the_end(
    scene: Scene,
) -> None:
    """Those that would wait for long are put off, in nobody's way."""
    hosts, now = HubLimiter(partial(scene.hub.is_exempt, purpose=Purpose.HUB)), 0.0
    waiting = {number: now for number in range(100)}
    asked: list[float] = []
    while waiting and now < 1_000:
        for number in [each for each, due in waiting.items() if due <= now]:
            turn = hosts.turn(PACED, now)
            if turn.is_taken:
                asked.append(turn.at)
                del waiting[number]
            else:
                waiting[number] = turn.at
        now += 0.5
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert len(asked) == 100
    assert min(gaps) >= 1.0
    assert asked[-1] < 110


async def test_who_is_put_off_for_its_hub_is_asked_for_later(scene: Scene) -> None:
    feeds = [await scene.add_feed(f"f{number}") for number in range(3)]
    scene.hub.answer_with(Unreachable("connection refused"))
    await scene.settle()
    scene.hub.answer_with(202)
    await scene.pass_time(timedelta(seconds=59), step=timedelta(seconds=1))
    assert len(scene.hub.requests) == 1
    await scene.pass_time(3 * HOUR, step=timedelta(minutes=1))
    topics = {each["hub.topic"] for each in scene.hub.forms}
    assert topics == {feed.url for feed in feeds}


async def test_a_listed_host_is_not_asked(scene: Scene) -> None:
    feed = await scene.add_feed(hub="https://hub.no.exempt/")
    await scene.settle()
    assert scene.hub.requests == []
    assert "blocks this host" in (await scene.upstream(feed)).error


@pytest.mark.parametrize(
    ("location", "trouble"),
    [
        (HUB, "the hub redirects too often"),
        ("ftp://elsewhere.example/", "the hub redirects to an invalid URL"),
        ("", "the hub redirects to an invalid URL"),
    ],
)
async def test_redirects_have_an_end(scene: Scene, location: str, trouble: str) -> None:
    feed = await scene.add_feed()
    scene.hub.answer_with(
        answered(308, headers={"Location": location} if location else {})
    )
    await scene.settle()
    assert (await scene.upstream(feed)).error == trouble
    assert len(scene.hub.requests) <= 3


async def test_a_cloud_is_registered_with_each_day(scene: Scene) -> None:
    feed = await scene.add_feed(hub="http://cloud.exempt:5337/x", way=PushWay.CLOUD)
    scene.hub.answer_with(answered(202, b'<notifyResult success="true"/>'))
    await scene.settle()
    upstream = await scene.upstream(feed)
    assert upstream.push.until == scene.clock.now() + timedelta(hours=25)
    await scene.pass_time(timedelta(hours=23.9))
    assert len(scene.hub.requests) == 1
    await scene.pass_time(HOUR)
    assert len(scene.hub.requests) == 2
    callback = (await scene.upstream(feed)).callbacks[-1]
    assert callback.until == callback.asked_at + timedelta(hours=25)
    await scene.storage.feeds.set_state(feed.id, FeedState.PAUSED, scene.clock.now())
    await scene.settle()
    assert len(scene.hub.requests) == 2  # a cloud cannot be told


async def test_another_hub_takes_over_and_the_former_is_left(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    moved = PushOffer(way=PushWay.WEBSUB, hub="https://new.exempt/", topic=feed.url)
    await scene.offer(feed, moved)
    await scene.settle()
    assert [each.url for each in scene.hub.requests] == [HUB, HUB]
    await scene.pass_time(HOUR)
    assert scene.hub.requests[-1].url == "https://new.exempt/"
    await scene.confirm(feed)
    assert (await scene.upstream(feed)).push.until is not None


async def test_a_feed_that_names_no_hub_any_more_is_forgotten(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    await scene.offer(feed, None)
    await scene.settle()
    assert scene.hub.modes == ["subscribe", "unsubscribe"]
    await scene.pass_time(3 * HOUR)
    assert await scene.storage.pushes.get(feed.id) is None


async def test_it_works_by_itself_and_one_fault_harms_no_other(scene: Scene) -> None:
    url = "https://broken.exempt/"
    scene.hub.at[url] = RuntimeError("a fault of the hub")
    broken = await scene.add_feed("broken", hub=url)
    await scene.add_feed("good", hub="https://good.exempt/")
    running = asyncio.create_task(scene.subscriber.run())

    async def is_put_off() -> bool:
        due = await scene.storage.pushes.due(scene.clock.now(), limit=9)
        return broken.id not in [each.feed_id for each in due]

    await eventually(lambda: "https://good.exempt/" in scene.hub.urls)
    await eventually(is_put_off)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def test_a_host_that_fails_is_left_alone_for_longer_each_time() -> None:
    hosts = HubLimiter(partial(FakeNetwork().is_exempt, purpose=Purpose.HUB))
    assert hosts.turn(HUB, 0.0) == Turn(0.0, is_taken=True)
    for expected in (FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE):
        hosts.failed(HUB, 0.0)
        assert hosts.turn(f"{HUB}x", 0.0).at >= expected
    for _ in range(20):
        hosts.failed(HUB, 0.0)
    assert hosts.turn(HUB, 0.0).at == LONGEST_PAUSE
    assert hosts.turn("https://b.exempt/", 0.0).at == 0.0
    assert hosts.turn("https://hub.exempt:8443/", 0.0).at == 0.0  # another server
    hosts.answered(HUB, 0.0)
    assert hosts.turn(HUB, 0.0).at == 0.0
    hosts.failed(HUB, 0.0, patience=9_999_999.0)
    assert hosts.turn(HUB, 0.0).at == LONGEST_PAUSE


async def test_a_hub_is_left_no_faster_than_it_is_asked(scene: Scene) -> None:
    feed = await scene.add_feed(hub=PACED)
    await scene.settle()
    await scene.confirm(feed)
    for _ in range(4):  # others ask it
        scene.hosts.turn(PACED, scene.clock.monotonic())
    await scene.pause(feed)
    assert scene.hub.modes == ["subscribe"]
    await scene.pass_time(timedelta(seconds=5), step=timedelta(seconds=1))
    assert scene.hub.modes == ["subscribe", "unsubscribe"]


async def test_a_hub_in_trouble_is_not_told_that_feeds_are_not_wanted(
    scene: Scene,
) -> None:
    feeds = []
    for number in range(3):
        feeds.append(await scene.add_feed(f"f{number}"))
        await scene.settle()
        await scene.confirm(feeds[-1])
    scene.hub.answer_with(Unreachable("connection refused"))
    for feed in feeds:
        await scene.pause(feed)
    assert scene.hub.modes == ["subscribe"] * 3 + ["unsubscribe"]
    for feed in feeds:
        assert (await scene.upstream(feed)).push.until is None


async def test_switched_off_it_leaves_its_hubs_and_feeds_are_polled(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    off = scene.switched(is_on=False)
    await off.storage.pushes.switch(is_on=False)
    assert not await off.is_overdue(feed)
    off.clock.advance(DAY.total_seconds())
    await off.settle()
    assert await off.is_overdue(feed)
    assert off.hub.modes == ["subscribe", "unsubscribe"]
    await off.confirm(feed, mode="unsubscribe")
    upstream = await off.upstream(feed)
    assert (upstream.push.until, upstream.callbacks) == (None, ())
    await off.pass_time(3 * DAY, step=DAY)
    assert off.hub.modes == ["subscribe", "unsubscribe"]


async def test_a_hub_that_is_not_used_is_left_until_it_is_used_again(
    scene: Scene,
) -> None:
    feed = await scene.add_feed(hub="https://push.bad.example/")
    await scene.settle()
    await scene.confirm(feed)
    other = await scene.add_feed("other", hub=PACED)
    await scene.settle()
    await scene.confirm(other)
    without = scene.switched(is_on=True, unused=["bad.example"])
    await without.subscriber.switch()
    await without.settle()
    assert without.hub.modes == ["subscribe", "subscribe", "unsubscribe"]
    await without.confirm(feed, mode="unsubscribe")
    await without.pass_time(3 * DAY, step=DAY)
    assert await without.is_overdue(feed)
    assert (await without.upstream(feed)).push.until is None
    assert (await without.upstream(other)).push.until is not None
    assert without.hub.modes[3:] == []
    await without.switched(is_on=True, unused=["bad.example"]).subscriber.switch()
    due = await scene.storage.pushes.due(scene.clock.now(), limit=9)
    assert feed.id not in [each.feed_id for each in due]
    again = without.switched(is_on=True)
    await again.subscriber.switch()
    await again.settle()
    assert again.hub.modes[3:] == ["subscribe"]


async def test_it_is_switched_as_soon_as_storage_works(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    storage = TroubledAtFirst(scene.storage)
    off = build_scene(storage, scene.clock, scene.hub, is_on=False)
    running = asyncio.create_task(off.subscriber.run())
    await eventually(lambda: scene.hub.modes == ["subscribe", "unsubscribe"])
    running.cancel()
    assert storage.is_well


async def test_switched_off_nothing_but_the_end_is_confirmed(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    off = scene.switched(is_on=False)
    with pytest.raises(NotFound):
        await off.confirm(feed)
    token = scene.hub.forms[-1]["hub.callback"].rpartition("/")[2]
    with pytest.raises(Gone):
        await off.service.open(token)


async def test_switched_on_again_it_asks_for_all_anew(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    off = scene.switched(is_on=False)
    await off.storage.pushes.switch(is_on=False)
    await off.settle()
    await off.confirm(feed, mode="unsubscribe")
    scene.clock.advance(DAY.total_seconds())
    await scene.storage.pushes.switch(is_on=True)
    await scene.settle()
    await scene.confirm(feed)
    assert scene.hub.modes == ["subscribe", "unsubscribe", "subscribe"]
    assert (await scene.upstream(feed)).push.until is not None


async def test_a_start_alone_asks_nobody(scene: Scene) -> None:
    feed = await scene.add_feed()
    await scene.settle()
    await scene.confirm(feed)
    await scene.storage.pushes.switch(is_on=True)
    assert await scene.storage.pushes.due(scene.clock.now(), limit=9) == []


async def test_a_hub_that_another_node_is_asking_is_asked_by_that_one_alone(
    scene: Scene,
) -> None:
    feed = await scene.add_feed()
    (listed,) = await scene.storage.pushes.due(scene.clock.now(), limit=9)
    await hold(scene.storage, WorkKind.PUSHES, feed.id, now=scene.clock.now())

    await scene.subscriber.settle(listed)

    assert scene.hub.requests == []
    await scene.storage.claims.release(WorkKind.PUSHES, [feed.id], lease_id=HOLD)
    await scene.settle()
    assert scene.hub.modes == ["subscribe"]
    await scene.subscriber.settle(listed)  # as it was, and is not any more
    assert scene.hub.modes == ["subscribe"]


async def test_who_has_lost_a_push_takes_no_further_step(scene: Scene) -> None:
    """Its lease was over while it asked, and another node has taken the push."""
    feed = await scene.add_feed()

    async def answer(request: Request) -> int:
        late = scene.clock.now() + timedelta(seconds=WORK_SECONDS)
        await hold(scene.storage, WorkKind.PUSHES, feed.id, now=late)
        return 500

    scene.hub.answer_with(answer)
    await scene.settle()

    assert len(scene.hub.requests) == 1
    found = await scene.upstream(feed)
    assert (found.failures, len(found.callbacks)) == (0, 1)


async def test_the_claim_of_a_push_whose_hub_is_slow_is_renewed(scene: Scene) -> None:
    feed = await scene.add_feed()
    work = LongWork(scene.storage.claims, scene.clock)
    scene = build_scene(
        scene.storage, scene.clock, scene.hub, is_on=True, claims=work.claims
    )

    async def answer(request: Request) -> int:
        await work.go_on()
        return 202

    scene.hub.answer_with(answer)
    await scene.settle()
    assert work.renewed == [(WorkKind.PUSHES, {feed.id})]
