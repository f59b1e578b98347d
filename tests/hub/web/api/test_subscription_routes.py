from __future__ import annotations

from dataclasses import replace

import httpx2
import pytest

from hub.core.delivery.delivery_outcome import GONE
from hub.services.account_subscriptions import SubscriptionRequest
from hub.web.api.delivery_routes import RetryingSubscriptionJson
from hub.web.api.openapi import openapi_document
from protocols.protocol_errors import InvalidValue
from storage.records import (
    ANONYMOUS,
    OPERATOR,
    AccountId,
    Attempt,
    DeliveryFlush,
    FeedId,
    FeedState,
    Position,
    RetryOpened,
    SubscriptionId,
)
from tests.support.services import Hub
from tests.support.storage_scene import START, Scene

URL = "https://example.org/feed.xml"
HOOK = "https://you.example/hook"
ASKED = {"callback": HOOK, "topic": URL}


async def test_an_unknown_topic_becomes_a_private_feed_fetched_before(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    answer = await client.post("/api/subscriptions", json={**ASKED, "secret": "geheim"})
    assert answer.status_code == 201
    made = answer.json()
    assert made["state"] == "active"
    assert made["topic"] == URL
    assert made["has_secret"]
    assert "geheim" not in answer.text
    assert made["feed_status"]["private"]
    assert hub.poller.fetched == [made["feed"]]


async def test_a_known_topic_stays_as_public_as_it_was(
    client: httpx2.AsyncClient,
) -> None:
    await client.post("/api/feeds", json={"url": URL})
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    assert not made["feed_status"]["private"]


async def test_asking_again_changes_the_subscription(
    client: httpx2.AsyncClient,
) -> None:
    first = (await client.post("/api/subscriptions", json=ASKED)).json()
    answer = await client.post("/api/subscriptions", json={**ASKED, "format": "atom"})
    assert answer.status_code == 200
    assert answer.json()["id"] == first["id"]
    assert answer.json()["format"] == "atom"


@pytest.mark.parametrize(
    ("given", "kept"), [({}, "old"), ({"secret": ""}, ""), ({"secret": "new"}, "new")]
)
async def test_asking_again_without_a_secret_keeps_the_one_that_is_there(
    client: httpx2.AsyncClient, hub: Hub, given: dict[str, str], kept: str
) -> None:
    made = await client.post("/api/subscriptions", json={**ASKED, "secret": "old"})
    asked = {name: value for name, value in ASKED.items() if name != "secret"}
    await client.post("/api/subscriptions", json={**asked, **given})
    found = await hub.storage.subscriptions.get(SubscriptionId(made.json()["id"]))
    assert found is not None
    assert found.secret == kept


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"callback": "nowhere"}, "callback"),
        ({"callback": "http://127.0.0.1/hook"}, "callback"),
        ({"topic": "nothing"}, "topic"),
        ({"topic": "http://127.0.0.1/feed"}, "topic"),
        ({"format": "xml"}, "format"),
        ({"updates": "some"}, "updates"),
        ({"algorithm": "md5"}, "algorithm"),
        ({"secret": "s" * 200}, "secret"),
        ({"lease": 3}, "lease"),
    ],
)
async def test_a_bad_value_is_refused_by_its_field(
    client: httpx2.AsyncClient, change: dict[str, object], field: str
) -> None:
    answer = await client.post("/api/subscriptions", json={**ASKED, **change})
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    page = (await client.get("/api/subscriptions")).json()
    assert page["subscriptions"] == []


async def test_the_list_can_be_of_one_topic_or_callback(
    client: httpx2.AsyncClient,
) -> None:
    await client.post("/api/subscriptions", json=ASKED)
    for query, count in (("", 1), (f"?topic={URL}", 1), ("?callback=x", 0)):
        page = (await client.get(f"/api/subscriptions{query}")).json()
        assert len(page["subscriptions"]) == count


async def test_one_is_shown_with_its_lateness_and_last_attempts(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    number, now = SubscriptionId(made["id"]), hub.clock.now()
    await hub.storage.deliveries.flush(
        DeliveryFlush(
            at=now,
            opened=(
                RetryOpened(
                    subscription_id=number,
                    position=Position(0),
                    attempts=1,
                    next_try=now,
                    failing_since=now,
                    last_status=503,
                    last_error="HTTP 503",
                ),
            ),
            attempts=(
                Attempt(
                    subscription_id=number,
                    position=Position(1),
                    at=now,
                    status=503,
                    milliseconds=12,
                    error="HTTP 503",
                ),
            ),
        )
    )
    shown = (await client.get(f"/api/subscriptions/{number}")).json()
    assert shown["retrying"]["last_status"] == 503
    assert shown["retrying"]["under_way"] is False
    assert tuple(shown["retrying"]) == RetryingSubscriptionJson.__struct_fields__
    assert shown["attempts"] == [
        {
            "at": now.isoformat().replace("+00:00", "Z"),
            "exact": True,
            "position": 1,
            "status": 503,
            "milliseconds": 12,
            "error": "HTTP 503",
            "reason": "new_record",
            "id": 1,
            "failed_at": None,
            "answer": None,
            "answer_withheld": False,
        }
    ]
    listed = (await client.get("/api/deliveries")).json()
    assert [each["subscription"] for each in listed["retrying"]] == [number]
    answer = await client.post("/api/deliveries/retry", json={"subscription": number})
    assert answer.status_code == 202


@pytest.mark.parametrize(("query", "state"), [("", "ending"), ("?tell=false", "ended")])
async def test_ending_one_tells_its_callback_unless_asked_not_to(
    client: httpx2.AsyncClient, query: str, state: str
) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    answer = await client.delete(f"/api/subscriptions/{made['id']}{query}")
    assert answer.json()["state"] == state


async def test_an_administrator_subscribes_for_another_account(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    token = {"account": "Alice", "scopes": ["subscribe", "list"]}
    await client.post("/api/tokens", json=token)
    made = await client.post("/api/subscriptions", json={**ASKED, "account": "alice"})
    assert made.status_code == 201
    stored = await hub.storage.subscriptions.get(SubscriptionId(made.json()["id"]))
    assert stored is not None
    assert stored.account not in (OPERATOR, ANONYMOUS)

    async def listed(account: str) -> list[int]:
        answer = await client.get(f"/api/subscriptions?account={account}")
        return [each["id"] for each in answer.json()["subscriptions"]]

    assert await listed("ALICE") == [made.json()["id"]]
    assert await listed("operator") == []


async def test_nobody_else_names_another_account(
    client: httpx2.AsyncClient, anybody: httpx2.AsyncClient
) -> None:
    scopes = {"scopes": ["subscribe", "list"]}
    await client.post("/api/tokens", json={"account": "bob", **scopes})
    answer = await client.post("/api/tokens", json={"account": "alice", **scopes})
    alice = httpx2.BasicAuth("ALICE", answer.json()["token"])
    body = {**ASKED, "account": "bob"}
    refused = await anybody.post("/api/subscriptions", json=body, auth=alice)
    assert refused.status_code == 403
    refused = await anybody.get("/api/subscriptions?account=bob", auth=alice)
    assert refused.status_code == 403
    own = {**ASKED, "account": "Alice"}
    made = await anybody.post("/api/subscriptions", json=own, auth=alice)
    assert made.status_code == 201


async def test_an_account_that_is_none_is_named(client: httpx2.AsyncClient) -> None:
    body = {**ASKED, "account": "nobody"}
    answer = await client.post("/api/subscriptions", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "account")


async def test_a_flag_is_true_or_false(client: httpx2.AsyncClient) -> None:
    answer = await client.delete("/api/subscriptions/1?tell=maybe")
    assert (answer.status_code, answer.json()["field"]) == (422, "tell")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_an_unknown_one_is_not_found(
    client: httpx2.AsyncClient, method: str
) -> None:
    answer = await client.request(method, "/api/subscriptions/9")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "no subscription 9"


@pytest.mark.parametrize("body", [{}, {"subscription": 1, "dead_letter": 1}])
async def test_a_retry_names_one_of_the_two(
    client: httpx2.AsyncClient, body: dict[str, int]
) -> None:
    assert (await client.post("/api/deliveries/retry", json=body)).status_code == 422


@pytest.mark.parametrize("what", ["subscription", "dead_letter"])
@pytest.mark.parametrize("number", [-(2**70), -1, 0, 2**63, 2**64, 2**70])
async def test_a_retry_of_what_cannot_be_an_id_is_refused_by_its_field(
    client: httpx2.AsyncClient, what: str, number: int
) -> None:
    answer = await client.post("/api/deliveries/retry", json={what: number})
    assert (answer.status_code, answer.json()["field"]) == (422, what)


@pytest.mark.parametrize("what", ["subscription", "dead_letter"])
async def test_a_retry_of_what_is_not_there_is_not_found(
    client: httpx2.AsyncClient, what: str
) -> None:
    answer = await client.post("/api/deliveries/retry", json={what: 9})
    assert answer.status_code == 404


async def test_a_topic_that_was_given_up_is_polled_again_when_it_is_subscribed_to(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    feed = (await client.post("/api/feeds", json={"url": URL})).json()
    now = hub.clock.now()
    await hub.storage.feeds.set_state(feed["id"], FeedState.DEAD, now)
    dead = (await client.get("/api/feeds?state=dead")).json()["feeds"]
    assert [(each["id"], each["state"]) for each in dead] == [(feed["id"], "dead")]
    woken = hub.poller.woken

    made = (await client.post("/api/subscriptions", json=ASKED)).json()

    assert made["feed_status"]["state"] == "active"
    assert hub.poller.woken == woken + 1


async def test_topics_of_one_feed_are_kept_as_each_was_spelled(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    topics = [URL, "HTTPS://Example.org/feed.xml#a", "https://example.org:443/feed.xml"]
    made = [
        (
            await client.post(
                "/api/subscriptions",
                json={"callback": f"{HOOK}/{number}", "topic": topic},
            )
        ).json()
        for number, topic in enumerate(topics)
    ]
    assert [each["topic"] for each in made] == topics
    assert len({each["feed"] for each in made}) == 1
    assert len(hub.poller.fetched) == 1


async def test_an_account_gets_a_topic_as_anybody_does_under_another_spelling(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    secret = await client.post("/api/feeds", json={"url": f"{URL}#u", "basic": "u:p"})
    subscriptions = hub.services.subscriptions
    request = SubscriptionRequest(callback=HOOK, topic=URL, account=AccountId(7))

    plain = await subscriptions.add(request)
    operators = await subscriptions.add(
        replace(request, account=OPERATOR, topic="HTTPS://example.org/feed.xml#u")
    )

    assert plain.feed.id != secret.json()["id"]
    assert not plain.feed.has_credentials
    assert operators.feed.id == plain.feed.id
    again = await subscriptions.add(replace(request, topic=f"{URL}#u"))
    assert again.feed.id == plain.feed.id


@pytest.mark.parametrize("state", [FeedState.GONE, FeedState.REMOVED])
async def test_who_may_not_subscribe_to_a_feed_does_not_bring_it_back(
    client: httpx2.AsyncClient, hub: Hub, state: FeedState
) -> None:
    closed = await client.post("/api/feeds", json={"url": URL, "basic": "u:p"})
    feed_id = closed.json()["id"]
    await hub.storage.feeds.set_state(feed_id, state, hub.clock.now())
    made = await hub.services.subscriptions.add(
        SubscriptionRequest(callback=HOOK, topic=URL, account=AccountId(7))
    )
    assert made.feed.id != feed_id
    assert not made.feed.has_credentials
    found = await hub.storage.feeds.get(feed_id)
    assert found is not None
    assert found.state is state


async def test_who_may_not_subscribe_with_credentials_adds_no_feed(hub: Hub) -> None:
    topic = URL.replace("//", "//u:p@")
    with pytest.raises(InvalidValue, match="a URL without credentials"):
        await hub.services.subscriptions.add(
            SubscriptionRequest(callback=HOOK, topic=topic, account=AccountId(7))
        )
    assert await hub.storage.feeds.find(URL) is None


async def test_one_is_paused_and_resumed(client: httpx2.AsyncClient, hub: Hub) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    path = f"/api/subscriptions/{made['id']}"

    answer = await client.post(f"{path}/pause")
    assert answer.status_code == 200
    paused = answer.json()
    since = hub.clock.now().isoformat().replace("+00:00", "Z")
    health = {"state": "paused", "since": since, "reason": ""}
    assert paused["health"] == {**health, "last_milliseconds": None}
    assert (await client.post(f"{path}/pause")).json() == paused
    listed = (await client.get("/api/subscriptions?state=paused")).json()
    assert listed["subscriptions"] == [paused]

    answer = await client.post(f"{path}/resume")
    assert answer.json() == {**paused, "health": {**paused["health"], "state": "ok"}}
    assert (await client.post(f"{path}/resume")).json() == answer.json()


@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_one_that_has_ended_is_neither_paused_nor_resumed(
    client: httpx2.AsyncClient, verb: str
) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    await client.delete(f"/api/subscriptions/{made['id']}")
    answer = await client.post(f"/api/subscriptions/{made['id']}/{verb}")
    assert answer.status_code == 409
    assert "subscribe again" in answer.json()["detail"]
    answer = await client.post(f"/api/subscriptions/9/{verb}")
    assert answer.status_code == 404


async def test_one_that_is_over_begins_anew_as_it_was(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    kept = {"secret": "geheim", "algorithm": "sha512", "format": "atom"}
    asked = {**ASKED, **kept, "updates": "all", "batch": True}
    made = (await client.post("/api/subscriptions", json=asked)).json()
    path, scene = f"/api/subscriptions/{made['id']}", Scene(hub.storage)
    feed = await hub.storage.feeds.get(made["feed"])
    assert feed is not None
    answer = await client.post(f"{path}/resubscribe")
    assert (answer.status_code, "has not ended" in answer.text) == (409, True)
    await scene.publish(feed, "taken", when=hub.clock.now())
    await scene.deliver(hub.clock.now())
    for key in ("refused", "later"):
        await scene.publish(feed, key, when=hub.clock.now())
    await scene.flush(when=hub.clock.now(), ended=((made["id"], GONE),))
    shown = (await client.get(path)).json()
    assert "; it did not get 2 records from 2026-" in shown["explanation"]
    assert shown["advice"] == ["subscribe again: fanfare subs resubscribe 1"]

    answer = await client.post(f"{path}/resubscribe")

    assert answer.status_code == 200
    anew = answer.json()
    assert anew["health"]["state"] == "ok"
    told = ("id", "callback", "topic", "format", "updates", "batch", "algorithm")
    assert [anew[name] for name in told] == [made[name] for name in told]
    assert anew["from_position"] == (await hub.storage.log.end()).position
    stored = await hub.storage.subscriptions.get(made["id"])
    assert stored is not None
    assert stored.secret == "geheim"


async def test_what_an_ended_one_did_not_get_is_not_said_if_nothing_was_accepted(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    feed = await hub.storage.feeds.get(made["feed"])
    assert feed is not None
    await Scene(hub.storage).publish(feed, "refused")
    await client.delete(f"/api/subscriptions/{made['id']}")
    shown = (await client.get(f"/api/subscriptions/{made['id']}")).json()
    assert shown["explanation"] == "it has ended: nothing is sent"


async def test_one_of_the_open_hub_begins_anew_only_if_its_subscriber_asks(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    made = await scene.subscribe(await scene.add_feed(), account=ANONYMOUS)
    await client.delete(f"/api/subscriptions/{made.id}")
    answer = await client.post(f"/api/subscriptions/{made.id}/resubscribe")
    assert answer.status_code == 409
    assert "its subscriber has to ask for it" in answer.json()["detail"]


async def test_one_whose_callback_is_refused_now_does_not_begin_anew(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene, callback = Scene(hub.storage), "ftp://subscriber.example/"
    feed = await scene.add_feed()
    made = await scene.subscribe(feed, account=OPERATOR, callback=callback)
    await client.delete(f"/api/subscriptions/{made.id}")
    answer = await client.post(f"/api/subscriptions/{made.id}/resubscribe")
    assert answer.status_code == 422
    path = openapi_document()["paths"]["/api/subscriptions/{id}/resubscribe"]
    assert "422" in path["post"]["responses"]


async def test_one_of_events_begins_anew_elsewhere(client: httpx2.AsyncClient) -> None:
    body = {"callback": ASKED["callback"]}
    made = (await client.post("/api/events/subscriptions", json=body)).json()
    await client.delete(f"/api/subscriptions/{made['id']}")
    answer = await client.post(f"/api/subscriptions/{made['id']}/resubscribe")
    assert (answer.status_code, "it is of events" in answer.text) == (409, True)


async def test_one_that_is_paused_is_not_retried_by_hand(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    scene = Scene(hub.storage)
    await client.post(f"/api/subscriptions/{made['id']}/pause")
    feed = await hub.storage.feeds.get(FeedId(made["feed"]))
    assert feed is not None
    await scene.publish(feed, "a")
    await scene.deliver(hub.clock.now())

    [late] = (await client.get("/api/deliveries")).json()["retrying"]
    assert late["paused"]
    shown = (await client.get(f"/api/subscriptions/{made['id']}")).json()
    seconds = (hub.clock.now() - START).total_seconds()
    assert shown["lag"] == {"records": 1, "has_more": False, "seconds": seconds}
    assert shown["explanation"] == "nothing is sent until it is resumed"
    assert shown["advice"] == [f"resume it: fanfare subs resume {made['id']}"]
    body = {"subscription": made["id"]}
    answer = await client.post("/api/deliveries/retry", json=body)
    assert answer.status_code == 409
    assert "is paused" in answer.json()["detail"]


async def test_an_account_pauses_its_own_as_its_token_allows(
    client: httpx2.AsyncClient, anybody: httpx2.AsyncClient
) -> None:
    tokens = {}
    for account, scope in (
        ("alice", "subscribe"),
        ("alice", "unsubscribe"),
        ("bob", "unsubscribe"),
    ):
        body = {"account": account, "scopes": [scope]}
        made = (await client.post("/api/tokens", json=body)).json()
        tokens[account, scope] = {"Authorization": f"Bearer {made['token']}"}
    body = {**ASKED, "account": "alice"}
    made = (await client.post("/api/subscriptions", json=body)).json()
    path = f"/api/subscriptions/{made['id']}"

    async def status(verb: str, account: str, scope: str) -> int:
        headers = tokens[account, scope]
        return (await anybody.post(f"{path}/{verb}", headers=headers)).status_code

    assert await status("pause", "bob", "unsubscribe") == 404
    assert await status("pause", "alice", "subscribe") == 403
    assert await status("pause", "alice", "unsubscribe") == 200
    assert await status("resume", "alice", "unsubscribe") == 403
    assert await status("resume", "alice", "subscribe") == 200


async def test_an_edit_changes_what_is_named_and_keeps_the_place(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    asked = {**ASKED, "secret": "one", "updates": "all"}
    made = (await client.post("/api/subscriptions", json=asked)).json()
    path = f"/api/subscriptions/{made['id']}"
    edited = (await client.patch(path, json={"format": "atom", "batch": True})).json()
    changed = {name for name in edited if edited[name] != made[name]}
    assert changed == {"format", "batch"}
    edited = (await client.patch(path, json={"secret": "two"})).json()
    assert (edited["format"], edited["updates"]) == ("atom", "all")
    assert edited["former_secret_until"] is not None
    assert not (await client.patch(path, json={"secret": ""})).json()["has_secret"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({"algorithm": "md5"}, "algorithm"), ({"secret": "s" * 200}, "secret")],
)
async def test_an_edit_that_cannot_be_is_refused(
    client: httpx2.AsyncClient, body: dict[str, str], field: str
) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    answer = await client.patch(f"/api/subscriptions/{made['id']}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_one_that_has_ended_is_not_edited(client: httpx2.AsyncClient) -> None:
    made = (await client.post("/api/subscriptions", json=ASKED)).json()
    path = f"/api/subscriptions/{made['id']}"
    await client.delete(path)
    assert (await client.patch(path, json={"batch": True})).status_code in (404, 409)
