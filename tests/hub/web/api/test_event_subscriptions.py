"""Subscriptions to operational events: making them, and what may be done to them."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx2
import pytest

from protocols.operational_events import EventType
from storage.records import OPERATOR, FeedId, OperationalEvent, TokenScope
from tests.support.fake_network import answered
from tests.support.services import Hub
from tests.support.standard_webhooks import Received, verifies
from tests.support.storage_scene import Scene, fetch
from tests.support.waiting import eventually, in_background

PATH = "/api/events/subscriptions"
HOOK = "https://you.example/hook"
ASKED = {"callback": HOOK, "types": ["hub.disk", "feed.*", "feed.gone"]}


async def subscribe(client: httpx2.AsyncClient, **changes: Any) -> dict[str, Any]:
    answer = await client.post(PATH, json={**ASKED, **changes})
    assert answer.status_code in (200, 201), answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_callback_is_subscribed_with_a_secret_that_is_shown_once(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    answer = await client.post(PATH, json=ASKED)
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    made = answer.json()
    assert (made["topic"], made["events"]) == (
        "events:feed.*,hub.disk",
        ["feed.*", "hub.disk"],
    )
    prefix, _, key = made["secret"].partition("_")
    assert (prefix, len(base64.b64decode(key))) == ("whsec", 32)

    stored = await hub.storage.subscriptions.get(made["id"])
    assert stored is not None
    assert (stored.account, stored.secret) == (OPERATOR, made["secret"])
    shown = await client.get(f"/api/subscriptions/{made['id']}")
    assert shown.json()["has_secret"]
    assert made["secret"] not in shown.text


async def test_all_events_are_told_unless_types_are_named(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.post(PATH, json={"callback": HOOK})
    assert answer.json()["events"] == ["*"]


async def test_asking_again_keeps_the_secret_unless_another_is_given(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    first = await subscribe(client)
    again = await subscribe(client, types=["feed.*", "hub.disk"])
    assert (again["id"], again["secret"]) == (first["id"], "")
    other = await subscribe(client, secret="given")
    assert (other["id"], other["secret"]) == (first["id"], "")

    stored = await hub.storage.subscriptions.get(first["id"])
    assert stored is not None
    assert (stored.secret, stored.former_secret) == ("given", first["secret"])


async def test_one_that_has_ended_begins_anew_with_a_new_secret(
    client: httpx2.AsyncClient,
) -> None:
    first = await subscribe(client)
    await client.delete(f"/api/subscriptions/{first['id']}?tell=false")
    again = await subscribe(client)
    assert again["secret"] not in ("", first["secret"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"types": []}, "types"),
        ({"types": ["feed"]}, "types"),
        ({"types": ["hub.test"]}, "types"),
        ({"types": "feed.*"}, "types"),
        ({"callback": "nowhere"}, "callback"),
        ({"callback": "http://127.0.0.1/hook"}, "callback"),
        ({"callback": "http://hub.example/hub"}, "callback"),
        ({"secret": "s" * 200}, "secret"),
        ({"format": "atom"}, "format"),
    ],
)
async def test_a_bad_value_is_refused_by_its_field(
    client: httpx2.AsyncClient, change: dict[str, object], field: str
) -> None:
    answer = await client.post(PATH, json={**ASKED, **change})
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    page = (await client.get("/api/subscriptions")).json()
    assert page["subscriptions"] == []


@pytest.mark.parametrize("scope", [each for each in TokenScope if each != "admin"])
async def test_it_takes_the_scope_admin(
    client: httpx2.AsyncClient, scope: TokenScope
) -> None:
    body = {"account": "operator", "scopes": [scope.value]}
    token = (await client.post("/api/tokens", json=body)).json()["token"]
    client.headers["Authorization"] = f"Bearer {token}"
    assert (await client.post(PATH, json=ASKED)).status_code == 403


@pytest.mark.parametrize(
    "where",
    [
        ("/api/subscriptions", {"callback": HOOK, "topic": "events:feed.*"}),
        ("/api/deliveries/test", {"callback": HOOK, "topic": "events:feed.*"}),
        ("/api/feeds", {"url": "events:feed.*"}),
    ],
)
async def test_no_other_door_takes_the_topic(
    client: httpx2.AsyncClient, where: tuple[str, dict[str, str]]
) -> None:
    await subscribe(client, types=["feed.*"])
    answer = await client.post(where[0], json=where[1])
    assert answer.status_code == 422


async def test_strangers_and_listeners_do_not_find_it(
    client: httpx2.AsyncClient,
) -> None:
    made = await subscribe(client, types=["feed.*"])
    form = f"hub.mode=subscribe&hub.callback={HOOK}&hub.topic="
    of_form = {"Content-Type": "application/x-www-form-urlencoded"}
    page = f"http://hub.example/topics/{made['feed']}.atom"

    asked = await client.post("/hub", content=f"{form}events:feed.*", headers=of_form)
    assert asked.status_code == 400
    for topic in ("events:feed.*", page):
        live = await client.get("/stream", params={"topic": topic})
        assert live.status_code in (404, 422), live.text
    assert (await client.get(page)).status_code == 404


@pytest.mark.parametrize(
    "change", [{"format": "atom"}, {"updates": "all"}, {"batch": True}]
)
async def test_of_how_it_is_told_the_secret_alone_can_change(
    client: httpx2.AsyncClient, change: dict[str, object]
) -> None:
    made = await subscribe(client)
    path = f"/api/subscriptions/{made['id']}"
    refused = await client.patch(path, json=change)
    assert (refused.status_code, refused.json()["field"]) == (422, next(iter(change)))
    assert (await client.patch(path, json={"secret": "new"})).status_code == 200


async def test_what_stands_for_its_topic_is_no_feed(
    client: httpx2.AsyncClient,
) -> None:
    made = await subscribe(client)
    path = f"/api/feeds/{made['feed']}"
    assert (await client.get("/api/feeds")).json()["feeds"] == []
    for verb in ("pause", "resume", "fetch"):
        assert (await client.post(f"{path}/{verb}")).status_code == 409
    assert (await client.patch(path, json={"private": False})).status_code == 409


async def test_a_test_delivery_is_a_message_of_its_own(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = await subscribe(client)
    hub.network.answer_with(answered(204))

    trial = (await client.post(f"/api/subscriptions/{made['id']}/test")).json()

    (sent,) = hub.network.requests
    assert trial["delivered"]
    assert sent.headers["Fanfare-Test"] == "true"
    assert json.loads(sent.body or b"") == {
        "type": "hub.test",
        "timestamp": "2026-01-01T00:00:00Z",
        "data": {
            "subscription": made["id"],
            "types": ["feed.*", "hub.disk"],
            "link": f"http://hub.example/api/subscriptions/{made['id']}",
        },
    }


async def test_an_event_is_delivered_as_a_signed_standard_webhook(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = await subscribe(client)
    feed = await Scene(hub.storage).add_feed()
    event = OperationalEvent(
        type=EventType.FEED_FAILING,
        at=hub.clock.now(),
        subject=FeedId(feed.id),
        url=feed.url,
        reason="answered 503",
        code=503,
    )
    await hub.storage.log.commit(fetch(feed, events=(event,)))

    async with (
        in_background(hub.built.background["event publisher"]),
        in_background(hub.built.background["dispatcher"]),
    ):
        await eventually(lambda: bool(hub.network.requests))

    (sent,) = hub.network.requests
    assert sent.url == HOOK
    assert sent.headers["Content-Type"] == "application/json; charset=utf-8"
    now = round(hub.clock.now().timestamp())
    headers = {name.lower(): value for name, value in sent.headers.items()}
    received = Received(headers=headers, body=sent.body or b"", now=now)
    assert verifies(received, made["secret"])
    message = json.loads(sent.body or b"")
    assert message["type"] == "feed.failing"
    assert message["data"]["link"] == f"http://hub.example/api/feeds/{feed.id}"
