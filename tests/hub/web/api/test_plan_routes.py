"""``/api/plans``: who may plan what, and what a plan says of itself."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from storage.records import SubscriptionId, SubscriptionState, TokenId
from tests.support.failures import details, failed
from tests.support.services import Hub
from tests.support.storage_scene import Scene
from tests.support.waiting import eventually, in_background

PLANS = "/api/plans"
PAUSE_ALL = {"action": "pause", "feeds": {}}


@pytest.fixture
def scene(hub: Hub) -> Scene:
    hub.clock.advance(60)
    return Scene(hub.storage)


async def make(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post(PLANS, json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def token_of(
    client: httpx2.AsyncClient, account: str, *scopes: str
) -> dict[str, str]:
    body = {"account": account, "scopes": scopes}
    made = (await client.post("/api/tokens", json=body)).json()
    return {"Authorization": f"Bearer {made['token']}"}


async def test_a_plan_is_made_confirmed_once_and_carried_out(
    client: httpx2.AsyncClient, hub: Hub, scene: Scene
) -> None:
    await scene.add_feed("a", category="news")
    await scene.add_feed("b")

    made = await make(client, action="pause", feeds={"category": "news"})

    item = {
        "id": 1,
        "name": "https://a.example/feed",
        "note": "ok",
        "subscription": None,
    }
    assert (made["state"], made["count"], made["sample"]) == ("planned", 1, [item])
    assert (made["kind"], made["action"], made["category"]) == ("feeds", "pause", None)
    assert (made["made_by"], made["left_out"]) == ("operator", None)
    assert made["created_at"] == "2026-01-01T00:01:00Z"
    assert made["expires_at"] == "2026-01-01T01:01:00Z"

    url = f"{PLANS}/{made['id']}"
    confirmed = (await client.post(f"{url}/confirm")).json()
    assert (confirmed["state"], confirmed["done"]) == ("running", 0)
    again = await client.post(f"{url}/confirm")
    assert again.status_code == 409
    assert again.json()["detail"].startswith("plan 1 was confirmed already")

    async def is_done() -> bool:
        return bool((await client.get(url)).json()["state"] == "done")

    async with in_background(hub.built.background["plans"]):
        await eventually(is_done)
    shown = (await client.get(url)).json()
    assert (shown["done"], shown["failed"], shown["left_out"]) == (1, 0, 0)
    paused = (await client.get("/api/feeds?state=paused")).json()["feeds"]
    assert [each["id"] for each in paused] == [1]


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            {
                "feeds": {
                    "failing": True,
                    "state": ["gone"],
                    "category": "",
                    "since": "7d",
                }
            },
            {
                "state": ["gone", "failing"],
                "category": "",
                "since": "2025-12-25T00:01:00Z",
            },
        ),
        (
            {"feeds": {"host": "A.example", "format": "rss"}},
            {"host": "a.example", "format": "rss"},
        ),
        (
            {"feeds": {"search": "blog", "within": "1h"}},
            {"search": "blog", "within": "2025-12-31T23:01:00Z"},
        ),
        (
            {"subscriptions": {"topic": "https://a/", "callback": "https://b/"}},
            {"topic": "https://a/", "callback": "https://b/"},
        ),
        (
            {"subscriptions": {"state": ["slow"], "account": "operator"}},
            {"state": ["slow"], "account": 2},
        ),
        (
            {"deliveries": {"status": "5XX", "host": "A.example", "since": "60s"}},
            {"status": "5xx", "host": "a.example", "since": "2026-01-01T00:00:00Z"},
        ),
        ({"deliveries": {"status": "404"}}, {"status": "404"}),
        ({"deliveries": {"outcome": "given-up"}}, {"outcome": "given-up"}),
        ({"deliveries": {"status": "none", "subscription": 4}}, None),
        ({"deliveries": {}}, {}),
    ],
)
async def test_a_plan_says_what_it_is_for(
    client: httpx2.AsyncClient,
    scene: Scene,
    body: dict[str, Any],
    shown: dict[str, Any] | None,
) -> None:
    action = "discard" if "deliveries" in body else "remove"
    made = await make(client, action=action, **body)
    given = {name: each for name, each in made["filter"].items() if each is not None}
    assert given == ({"status": "none", "subscription": 4} if shown is None else shown)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "pause"}, "feeds"),
        ({"action": "pause", "feeds": {}, "deliveries": {}}, "feeds"),
        ({"action": "stop", "feeds": {}}, "action"),
        ({"action": "retry", "feeds": {}}, "action"),
        ({"action": "pause", "feeds": {"health": "ok"}}, "feeds"),
        ({"action": "pause", "feeds": {"state": ["odd"]}}, "state"),
        ({"action": "pause", "feeds": {"since": "soon"}}, "since"),
        ({"action": "pause", "feeds": {"search": "x"}}, "search"),
        ({"action": "pause", "feeds": {}, "category": "x"}, "category"),
        ({"action": "set_category", "feeds": {}}, "category"),
        ({"action": "set_category", "feeds": {}, "category": "\n"}, "category"),
        ({"action": "retry", "deliveries": {"status": "6"}}, "status"),
        ({"action": "retry", "deliveries": {"subscription": 0}}, "deliveries"),
        ({"action": "remove", "subscriptions": {"account": "nobody"}}, "account"),
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused_by_its_field(
    client: httpx2.AsyncClient, body: dict[str, Any], field: str
) -> None:
    answer = await client.post(PLANS, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"].startswith(field)
    assert (await client.get(PLANS)).json() == {"plans": [], "next": None}


async def test_a_plan_that_was_not_confirmed_in_time_has_expired(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    url = f"{PLANS}/{(await make(client, **PAUSE_ALL))['id']}"
    hub.clock.advance(3_600)
    assert (await client.get(url)).json()["state"] == "expired"
    [listed] = (await client.get(PLANS)).json()["plans"]
    assert listed["state"] == "expired"
    for verb in ("confirm", "cancel"):
        answer = await client.post(f"{url}/{verb}")
        assert answer.status_code == 409
        assert "was not confirmed in time" in answer.json()["detail"]


async def test_pages_of_plans_follow_each_other(client: httpx2.AsyncClient) -> None:
    for _ in range(3):
        await make(client, **PAUSE_ALL)
    first = (await client.get(f"{PLANS}?limit=2")).json()
    second = (await client.get(f"{PLANS}?limit=2&after={first['next']}")).json()
    pages = [[each["id"] for each in page["plans"]] for page in (first, second)]
    assert (pages, second["next"]) == ([[1, 2], [3]], None)


# --- whose, and with what scope ---


@pytest.mark.parametrize(
    ("scopes", "body", "status"),
    [
        (("list", "unsubscribe"), {"action": "remove", "subscriptions": {}}, 201),
        (("unsubscribe",), {"action": "remove", "subscriptions": {}}, 403),
        (("list", "subscribe"), {"action": "remove", "subscriptions": {}}, 403),
        (("list", "unsubscribe"), {"action": "pause", "subscriptions": {}}, 201),
        (("list", "unsubscribe"), {"action": "resume", "subscriptions": {}}, 403),
        (("list", "subscribe"), {"action": "resume", "subscriptions": {}}, 201),
        (("list", "unsubscribe"), PAUSE_ALL, 403),
        (("list", "unsubscribe"), {"action": "retry", "deliveries": {}}, 403),
        (
            ("list", "unsubscribe"),
            {"action": "remove", "subscriptions": {"account": "operator"}},
            403,
        ),
        (("admin",), {"action": "retry", "deliveries": {}}, 201),
    ],
)
async def test_a_token_plans_what_it_may_do_one_by_one(
    client: httpx2.AsyncClient,
    scopes: tuple[str, ...],
    body: dict[str, Any],
    status: int,
) -> None:
    headers = await token_of(client, "alice", *scopes)
    answer = await client.post(PLANS, json=body, headers=headers)
    assert answer.status_code == status


async def test_an_account_plans_for_its_own_subscriptions_and_sees_its_own_plans(
    client: httpx2.AsyncClient, hub: Hub, scene: Scene
) -> None:
    both, reads = [
        await token_of(client, "alice", *scopes)
        for scopes in (("list", "unsubscribe"), ("list",))
    ]
    other = await token_of(client, "bob", "list", "unsubscribe")
    (alice, *_) = await hub.storage.tokens.page(after=TokenId(0), limit=9)
    feed = await scene.add_feed()
    own = await scene.subscribe(feed, "own", account=alice.account.id)
    await scene.subscribe(feed, "foreign")
    body = {"action": "remove", "subscriptions": {}}

    made = (await client.post(PLANS, json=body, headers=both)).json()

    assert (made["made_by"], made["count"]) == ("alice", 1)
    assert [each["id"] for each in made["sample"]] == [own.id]
    url = f"{PLANS}/{made['id']}"
    for headers, status in ((other, 404), (reads, 403), (both, 200)):
        answer = await client.post(f"{url}/confirm", headers=headers)
        assert answer.status_code == status
    for headers, number in ((other, 0), (both, 1)):
        listed = (await client.get(PLANS, headers=headers)).json()
        assert len(listed["plans"]) == number
    assert (await client.get(url, headers=other)).status_code == 404
    assert (await client.post(f"{url}/cancel", headers=other)).status_code == 404

    admin = await token_of(client, "alice", "admin")
    everywhere = (await client.post(PLANS, json=body, headers=admin)).json()
    assert everywhere["count"] == 2
    of_admin = f"{PLANS}/{everywhere['id']}"
    assert (await client.get(of_admin, headers=both)).status_code == 404
    for verb in ("confirm", "cancel"):
        answer = await client.post(f"{of_admin}/{verb}", headers=both)
        assert answer.status_code == 404
    listed = (await client.get(PLANS, headers=both)).json()
    assert [each["id"] for each in listed["plans"]] == [made["id"]]

    async def is_over() -> bool:
        return not await hub.storage.plans.running()

    async with in_background(hub.built.background["plans"]):
        await eventually(is_over)
    subscriptions = hub.storage.subscriptions
    ended, kept = [await subscriptions.get(SubscriptionId(each)) for each in (1, 2)]
    assert ended is not None
    assert kept is not None
    assert (ended.state, kept.state) == (
        SubscriptionState.ENDING,
        SubscriptionState.ACTIVE,
    )


# --- single deliveries ---


async def test_what_is_undelivered_is_listed_by_the_requests_that_failed(
    client: httpx2.AsyncClient, scene: Scene
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    attempt = failed(late, status=503, kept=details("a.example"))
    await scene.flush(attempts=(attempt,))
    for query, number in (("", 1), ("?status=503", 1), ("?host=b.example", 0)):
        found = (await client.get(f"/api/deliveries{query}")).json()
        assert len(found["retrying"]) == number


async def test_a_retrying_subscription_is_discarded_once(
    client: httpx2.AsyncClient, scene: Scene
) -> None:
    late = await scene.subscribe_retrying(await scene.add_feed())
    for status in (200, 404):
        body = {"subscription": late.id}
        answer = await client.post("/api/deliveries/discard", json=body)
        assert answer.status_code == status
    for body in ({}, {"subscription": 1, "dead_letter": 1}):
        answer = await client.post("/api/deliveries/discard", json=body)
        assert (answer.status_code, answer.json()["field"]) == (422, "subscription")
