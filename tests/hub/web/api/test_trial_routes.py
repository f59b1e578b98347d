"""Test deliveries, to a subscription's callback or to any."""

from __future__ import annotations

import asyncio
import json

import httpx2
import pytest
from msgspec.structs import replace

from hub.http.network_errors import TimedOut
from hub.services.callback_trials import AT_ONCE
from protocols.websub.signatures import verify
from storage.records import Format, RecordKind, StoredFeed, SubscriptionId
from tests.support.fake_network import answered
from tests.support.services import Hub
from tests.support.storage_scene import Scene
from tests.support.waiting import eventually

HOOK = "https://you.example/hook"
TRIAL = "/api/deliveries/test"
OF_SUBSCRIPTION = "/api/subscriptions/1/test"


@pytest.fixture
async def feed(hub: Hub) -> StoredFeed:
    """A feed with one entry, and a subscription to it."""
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.publish(feed, "The news")
    await scene.subscribe(feed, callback=HOOK, secret="geheim", format=Format.JSON)
    return feed


async def test_a_subscription_gets_its_newest_entry_signed_and_marked_as_a_test(
    client: httpx2.AsyncClient, hub: Hub, feed: StoredFeed
) -> None:
    hub.network.answer_with(answered(204, headers={"X-Powered-By": "You"}))
    trial = (await client.post(OF_SUBSCRIPTION)).json()

    (sent,) = hub.network.requests
    assert sent.url == HOOK
    assert sent.headers["Fanfare-Test"] == "true"
    assert sent.headers["webhook-id"].startswith("test-")
    assert verify(sent.headers["X-Hub-Signature"], "geheim", sent.body or b"")
    notification = json.loads(sent.body or b"")
    assert notification["status"]["test"] is True
    assert [each["title"] for each in notification["items"]] == ["The news"]
    assert (trial["delivered"], trial["status"], trial["error"]) == (True, 204, "")
    assert trial["answer"]["headers"] == [{"name": "x-powered-by", "value": "You"}]
    assert trial["request"]["body"] == (sent.body or b"").decode()
    assert "geheim" not in json.dumps(trial)


async def test_it_changes_nothing_of_the_subscription(
    client: httpx2.AsyncClient, hub: Hub, feed: StoredFeed
) -> None:
    hub.network.answer_with(answered(410))
    before = (await client.get("/api/subscriptions/1")).json()
    trial = (await client.post(OF_SUBSCRIPTION)).json()
    assert (trial["delivered"], trial["error"]) == (False, "answered 410")
    assert (await client.get("/api/subscriptions/1")).json() == before


async def test_where_it_failed_is_said(
    client: httpx2.AsyncClient, hub: Hub, feed: StoredFeed
) -> None:
    hub.network.answer_with(TimedOut("no answer in time"))
    trial = (await client.post(OF_SUBSCRIPTION)).json()
    assert (trial["status"], trial["error"]) == (0, "no answer in time")
    assert (trial["failed_at"], trial["answer"]) == ("queued", None)


async def test_nothing_is_shown_of_a_network_that_is_exempt(
    client: httpx2.AsyncClient, hub: Hub, feed: StoredFeed
) -> None:
    inside = answered(500, b"internal", {"X-Internal": "1"})
    hub.network.answer_with(replace(inside, is_exempt=True))
    answer = await client.post(OF_SUBSCRIPTION)
    trial = answer.json()
    assert (trial["status"], trial["answer_withheld"]) == (500, True)
    assert "nternal" not in answer.text


async def test_a_callback_without_a_subscription_gets_what_one_would(
    client: httpx2.AsyncClient, hub: Hub, feed: StoredFeed
) -> None:
    body = {"callback": HOOK, "topic": feed.url, "format": "atom", "secret": "s"}
    trial = (await client.post(TRIAL, json=body)).json()
    assert trial["subscription"] is None
    assert 'test="true"' in trial["request"]["body"]
    assert "The news" in trial["request"]["body"]
    assert await hub.storage.subscriptions.count(feed.id) == 1


async def test_a_topic_that_nobody_knows_has_an_entry_that_is_made_up(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    body = {"callback": HOOK, "topic": "https://example.org/new"}
    trial = (await client.post(TRIAL, json=body)).json()
    (item,) = json.loads(trial["request"]["body"])["items"]
    assert item["title"] == "A test entry"
    assert item["permalinkUrl"] == "https://example.org/new"
    assert await hub.storage.feeds.page(after=0, limit=9) == []


async def test_a_feed_without_entries_has_one_made_up_under_its_own_title(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = await Scene(hub.storage).add_feed()
    body = {"callback": HOOK, "topic": feed.url}
    trial = (await client.post(TRIAL, json=body)).json()
    (item,) = json.loads(trial["request"]["body"])["items"]
    assert item["title"] == "A test entry"


async def test_an_as_is_subscription_gets_the_document_where_it_is_kept(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed, callback=HOOK, format=Format.AS_IS)
    trial = (await client.post(OF_SUBSCRIPTION)).json()
    assert "A test entry" in trial["request"]["body"]
    await scene.publish(feed, kind=RecordKind.CONTENT)
    trial = (await client.post(OF_SUBSCRIPTION)).json()
    assert trial["request"]["body"] == "as it came"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"callback": "nowhere"}, "callback"),
        ({"callback": "http://127.0.0.1/hook"}, "callback"),
        ({"callback": "https://inside.example/hook"}, "callback"),
        ({"callback": "http://hub.example/hub"}, "callback"),
        ({"topic": "nothing"}, "topic"),
        ({"algorithm": "md5"}, "algorithm"),
        ({"format": "xml"}, "format"),
    ],
)
async def test_what_no_subscription_may_have_is_refused_before_anything_is_sent(
    client: httpx2.AsyncClient, hub: Hub, change: dict[str, str], field: str
) -> None:
    body = {"callback": HOOK, "topic": "https://example.org/new", **change}
    answer = await client.post(TRIAL, json=body)
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert hub.network.requests == []


async def test_an_ended_subscription_and_one_that_is_not_there_are_refused(
    client: httpx2.AsyncClient, hub: Hub, feed: StoredFeed
) -> None:
    await hub.storage.subscriptions.end(
        SubscriptionId(1), "over", hub.clock.now(), tell=False
    )
    assert (await client.post(OF_SUBSCRIPTION)).status_code == 409
    assert (await client.post("/api/subscriptions/9/test")).status_code == 404


async def test_a_bounded_number_is_under_way_at_once(
    client: httpx2.AsyncClient, hub: Hub, feed: StoredFeed
) -> None:
    hub.network.gate.clear()
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(client.post(OF_SUBSCRIPTION))
        await eventually(lambda: len(hub.network.requests) == AT_ONCE)
        assert (await client.post(OF_SUBSCRIPTION)).status_code == 503
        hub.network.gate.set()
