"""Callbacks that hubs of others know: what they may ask and tell, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import httpx2
import pytest
from msgspec.structs import replace

from hub.core.push.hub_subscription import CONFIRMED_WITHIN, LONGEST_BACKOFF
from hub.web.websub.push_routes import LARGEST_PUSH
from protocols.websub.signatures import sign
from protocols.websub.websub_parameters import LONGEST_LEASE
from storage.records import (
    CallbackState,
    FeedPush,
    NewFeed,
    NewPushCallback,
    Push,
    PushCallback,
    PushCount,
    PushOffer,
    PushWay,
    PushWrite,
    StoredFeed,
)
from tests.support.services import Hub
from tests.support.storage_scene import fetch
from tests.support.work_claims import ask_hub, leave_hub

TOPIC = "https://example.org/feed"
SECRET = "the secret"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TEN_DAYS = 864_000
QUESTION = {
    "hub.mode": "subscribe",
    "hub.topic": TOPIC,
    "hub.challenge": "a-challenge",
    "hub.lease_seconds": str(TEN_DAYS),
}


@dataclass
class Door:
    hub: Hub
    client: httpx2.AsyncClient
    feed: StoredFeed

    async def ask(self, name: str = "t", way: PushWay = PushWay.WEBSUB) -> PushCallback:
        """This hub asks another one to push the feed."""
        now = self.hub.clock.now()
        await ask_hub(
            self.hub.storage,
            NewPushCallback(
                feed_id=self.feed.id,
                way=way,
                hub="https://hub.example.org/",
                topic=TOPIC,
                token=name,
                secret=SECRET,
                asked_at=now,
                until=now + CONFIRMED_WITHIN,
            ),
        )
        return await self.callback(name)

    async def subscribe(
        self, name: str = "t", way: PushWay = PushWay.WEBSUB
    ) -> PushCallback:
        callback = await self.ask(name, way)
        until = self.hub.clock.now() + timedelta(days=10)
        await self.hub.storage.pushes.confirm(callback, until)
        return await self.callback(name)

    async def callback(self, name: str = "t") -> PushCallback:
        found = await self.hub.storage.pushes.find(name)
        assert found is not None
        return found

    async def upstream(self) -> FeedPush:
        found = await self.hub.storage.pushes.get(self.feed.id)
        assert found is not None
        return found

    async def question(self, name: str = "t", **changes: str) -> httpx2.Response:
        named = {f"hub.{key}": value for key, value in changes.items()}
        return await self.client.get(f"/upstream/{name}", params={**QUESTION, **named})

    async def push(
        self, body: bytes = b"news", name: str = "t", signature: str | None = None
    ) -> int:
        signed = sign("sha256", SECRET, body) if signature is None else signature
        headers = {"X-Hub-Signature": signed.encode("latin-1")}
        answer = await self.client.post(
            f"/upstream/{name}", content=body, headers=headers
        )
        return answer.status_code

    async def counted(self, what: PushCount) -> int:
        [all_hubs, *_] = await self.hub.storage.pushes.hubs(9)
        return dict(all_hubs.counts).get(what, 0)


@pytest.fixture
async def door(hub: Hub, anybody: httpx2.AsyncClient) -> Door:
    feed, _ = await hub.storage.feeds.add(NewFeed(url=TOPIC), hub.clock.now())
    offer = PushOffer(way=PushWay.WEBSUB, hub="https://hub.example.org/", topic=TOPIC)
    push = PushWrite(push=Push(offer=offer))
    await hub.storage.log.commit(replace(fetch(feed), push=push))
    return Door(hub, anybody, feed)


async def test_a_question_is_answered_with_its_challenge_and_nothing_else(
    door: Door,
) -> None:
    await door.ask()
    answer = await door.question()
    assert (answer.status_code, answer.content) == (200, b"a-challenge")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    callback = await door.callback()
    assert callback.state is CallbackState.ACTIVE
    assert callback.until == door.hub.clock.now() + timedelta(days=10)


async def test_a_lease_ends_within_a_month_whatever_the_hub_says(door: Door) -> None:
    await door.ask()
    assert (await door.question(lease_seconds="9" * 30)).status_code == 200
    lease = timedelta(seconds=LONGEST_LEASE)
    assert (await door.callback()).until == door.hub.clock.now() + lease


async def test_what_was_not_asked_for_in_the_last_hour_is_not_confirmed(
    door: Door,
) -> None:
    await door.ask()
    door.hub.clock.advance(CONFIRMED_WITHIN.total_seconds())
    assert (await door.question()).status_code == 404
    await door.subscribe("later")
    assert (await door.question("later")).status_code == 200
    door.hub.clock.advance(CONFIRMED_WITHIN.total_seconds())
    assert (await door.question("later")).status_code == 404
    assert await door.push(name="later") == 202


async def test_an_end_is_confirmed_only_if_it_was_asked_for(door: Door) -> None:
    callback = await door.subscribe()
    assert (await door.question(mode="unsubscribe")).status_code == 404
    soon = door.hub.clock.now() + timedelta(hours=1)
    await leave_hub(door.hub.storage, callback, soon)
    assert (await door.question()).status_code == 404
    assert (await door.question(mode="unsubscribe")).content == b"a-challenge"
    assert await door.hub.storage.pushes.find("t") is None
    assert (await door.question(mode="unsubscribe")).status_code == 404


async def test_a_denial_ends_it_for_a_week(door: Door) -> None:
    await door.subscribe()
    answer = await door.question(mode="denied", reason="<b>no</b>")
    assert (answer.status_code, answer.content) == (200, b"")
    upstream = await door.upstream()
    assert (upstream.callbacks, upstream.push.until) == ((), None)
    assert upstream.error == "the hub denied it: <b>no</b>"
    assert upstream.retry_at == door.hub.clock.now() + LONGEST_BACKOFF
    assert (await door.question(mode="denied")).status_code == 404


async def test_a_denial_of_what_is_ending_anyway_is_no_failure(door: Door) -> None:
    callback = await door.subscribe()
    soon = door.hub.clock.now() + timedelta(hours=1)
    await leave_hub(door.hub.storage, callback, soon)
    assert (await door.question(mode="denied")).status_code == 200
    assert (await door.upstream()).failures == 0


async def test_a_push_is_taken_while_the_lease_lasts(door: Door) -> None:
    await door.ask()
    assert await door.push() == 410  # nobody has confirmed it
    await door.subscribe("good")
    assert await door.push(name="good") == 202
    assert await door.counted(PushCount.DELIVERED) == 1
    assert (await door.upstream()).push.hinted_at == door.hub.clock.now()
    door.hub.clock.advance(TEN_DAYS)
    assert await door.push(name="good") == 410


async def test_of_a_callback_that_is_ending_nothing_is_read(door: Door) -> None:
    callback = await door.subscribe()
    soon = door.hub.clock.now() + timedelta(hours=1)
    await leave_hub(door.hub.storage, callback, soon)
    assert await door.push() == 202
    assert (await door.upstream()).push.hinted_at is None
    assert await door.counted(PushCount.DELIVERED) == 0


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "sha256=",
        sign("sha256", "another secret", b"news"),
        sign("sha256", SECRET, b"other news"),
        sign("sha256", SECRET, b"news")[:-1],
        sign("sha256", SECRET, b"news").replace("sha256", "sha512"),
        sign("sha256", SECRET, b"news").removeprefix("sha256="),
        "md5=" + "0" * 32,
        "\xff=\xff",
    ],
)
async def test_a_wrong_signature_is_ignored_like_a_right_one(
    door: Door, signature: str
) -> None:
    await door.subscribe()
    assert await door.push(signature=signature) == 202
    assert await door.counted(PushCount.FORGED) == 1
    assert (await door.upstream()).push.hinted_at is None
    assert door.hub.poller.fetched == door.hub.poller.asked == []


async def test_a_large_push_is_signed_too(door: Door) -> None:
    await door.subscribe()
    assert await door.push(b"x" * 2_000_000) == 202
    assert await door.push(b"x" * 2_000_000, signature="sha256=00") == 202
    assert await door.counted(PushCount.DELIVERED) == 1
    assert await door.counted(PushCount.FORGED) == 1


async def test_too_large_a_push_is_refused(door: Door) -> None:
    await door.subscribe()
    assert await door.push(b"x" * (LARGEST_PUSH + 1)) == 413
    assert await door.push(b"x" * LARGEST_PUSH) == 202
    assert await door.counted(PushCount.REJECTED) == 1


async def test_more_than_waits_of_one_feed_is_to_be_sent_again(door: Door) -> None:
    """Nobody works them off here."""
    await door.subscribe()
    statuses = [await door.push(b"news %d" % number) for number in range(25)]
    assert statuses == [202] * 20 + [503] * 5
    assert await door.counted(PushCount.REJECTED) == 5


async def test_a_cloud_asks_by_url_and_challenge(door: Door) -> None:
    await door.ask("c", PushWay.CLOUD)

    async def asked(url: str = TOPIC, challenge: str = "a b") -> httpx2.Response:
        query = {"url": url, "challenge": challenge}
        return await door.client.get("/upstream/c", params=query)

    assert ((await asked()).status_code, (await asked()).content) == (200, b"a b")
    assert (await asked(url=f"{TOPIC}/x")).status_code == 404
    assert (await asked(challenge="c" * 1_025)).status_code == 404
    assert (await asked(challenge="ü")).status_code == 404
    assert (await asked(challenge="")).status_code == 404
    assert (await door.question("c")).status_code == 404
    await door.ask("w")
    query = {"url": TOPIC, "challenge": "c"}
    assert (await door.client.get("/upstream/w", params=query)).status_code == 404


async def test_a_cloud_s_notice_is_for_its_own_feed(door: Door) -> None:
    await door.subscribe("c", PushWay.CLOUD)

    async def told(url: str) -> int:
        answer = await door.client.post("/upstream/c", data={"url": url}, headers=FORM)
        return answer.status_code

    assert await told(f"{TOPIC}/x") == 202
    assert (await door.upstream()).push.hinted_at is None
    assert await told(TOPIC) == 202
    assert (await door.upstream()).push.hinted_at is not None
