"""Names that the API had before: requests may use them, answers still have them."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from hub.web.api.openapi import openapi_document
from storage.records import NewDeadLetter, Position, Subscription
from tests.support.services import Hub
from tests.support.storage_scene import Scene, at


@pytest.fixture
async def retrying(hub: Hub) -> Subscription:
    """A retrying subscription; another has a dead letter, the first of all."""
    scene = Scene(hub.storage)
    given_up = await scene.subscribe_retrying(await scene.add_feed("a"))
    (claimed,) = await scene.claim_retrying(at(5))
    first = Position(claimed.position + 1)
    dead_letter = NewDeadLetter(
        subscription_id=given_up.id,
        lease_id=claimed.lease_id,
        first=first,
        last=first,
        reason="tried too often",
        at=hub.clock.now(),
    )
    await scene.flush(given_up=(dead_letter,))
    return await scene.subscribe_retrying(await scene.add_feed("b"))


async def get(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(path)).json()
    return found


async def test_answers_have_them_beside_the_present_ones(
    client: httpx2.AsyncClient, retrying: Subscription
) -> None:
    for path, former, present in (
        ("/api/deliveries", "stragglers", "retrying"),
        ("/api/deliveries", "dead", "dead_letters"),
        (f"/api/subscriptions/{retrying.id}", "straggler", "retrying"),
    ):
        found = await get(client, path)
        assert found[former] == found[present]
        assert found[present]
    backlog = (await get(client, "/api/health"))["backlog"]
    assert (backlog["stragglers"], backlog["dead"]) == (1, 1)
    assert (backlog["retrying"], backlog["dead_letters"]) == (1, 1)
    metrics = (await client.get("/metrics")).text
    for stage in ("retrying", "stragglers", "dead_letters", "dead"):
        assert f'fanfare_backlog{{stage="{stage}"}} 1' in metrics


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("retrying_after", "retrying"),
        ("stragglers_after", "retrying"),
        ("dead_letters_after", "dead_letters"),
        ("dead_after", "dead_letters"),
    ],
)
async def test_a_page_begins_behind_an_id_by_either_name(
    client: httpx2.AsyncClient, retrying: Subscription, name: str, listed: str
) -> None:
    found = await get(client, f"/api/deliveries?{name}={retrying.id}")
    assert {each: bool(found[each]) for each in ("retrying", "dead_letters")} == {
        "retrying": listed != "retrying",
        "dead_letters": listed != "dead_letters",
    }


@pytest.mark.parametrize("name", ["dead_letter", "dead"])
async def test_a_dead_letter_is_retried_by_either_name(
    client: httpx2.AsyncClient, retrying: Subscription, name: str
) -> None:
    [dead_letter] = (await get(client, "/api/deliveries"))["dead_letters"]
    body = {name: dead_letter["id"]}
    answer = await client.post("/api/deliveries/retry", json=body)
    assert answer.status_code == 202
    assert (await get(client, "/api/deliveries"))["dead_letters"] == []


@pytest.mark.parametrize("name", ["scopes", "rights"])
async def test_a_token_has_the_scopes_that_either_name_asks_for(
    client: httpx2.AsyncClient, name: str
) -> None:
    body = {"account": "alice", name: ["subscribe", "list"]}
    made = (await client.post("/api/tokens", json=body)).json()
    assert made["scopes"] == made["rights"] == ["list", "subscribe"]


async def test_one_request_does_not_use_both_names(client: httpx2.AsyncClient) -> None:
    body = {"account": "alice", "scopes": ["list"], "rights": ["admin"]}
    answer = await client.post("/api/tokens", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "rights")


def test_the_description_marks_them_as_deprecated() -> None:
    document: Any = openapi_document()
    schemas = document["components"]["schemas"]
    marked = {
        f"{name}.{member}"
        for name, schema in schemas.items()
        for member, described in schema.get("properties", {}).items()
        if described.get("deprecated")
    }
    of_feeds = {each for each in marked if each.endswith(".section")}
    assert {"Feed.section", "FeedToAdd.section", "FeedToEdit.section"} < of_feeds
    assert marked - of_feeds == {
        "Backlog.dead",
        "Backlog.stragglers",
        "CreatedToken.rights",
        "Deliveries.dead",
        "Deliveries.stragglers",
        "Health.troubles",
        "HubCondition.trouble",
        "LookupResult.trouble",
        "PushFacts.trouble",
        "Readiness.troubles",
        "Retry.dead",
        "SubscriptionReport.straggler",
        "Token.rights",
        "TokenToAdd.rights",
        "WalkedList.trouble",
    }
    listing = document["paths"]["/api/deliveries"]["get"]["parameters"]
    assert {each["name"] for each in listing if each.get("deprecated")} == {
        "stragglers_after",
        "dead_after",
    }
