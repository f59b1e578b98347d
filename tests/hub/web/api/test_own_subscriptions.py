"""What an account may do with its own subscriptions, and with nobody else's."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from hub.services.token_authentication import CreateToken
from storage.records import (
    AccountId,
    NewDeadLetter,
    NewSubscription,
    Position,
    TokenScope,
)
from tests.support.failures import ANSWER, details, failed
from tests.support.services import Hub
from tests.support.storage_scene import Scene, at

OWN = "/api/subscriptions/1"
CALLS: list[tuple[str, str, dict[str, Any] | None, int]] = [
    ("GET", f"{OWN}/attempts", None, 200),
    ("GET", f"{OWN}/request", None, 200),
    ("POST", f"{OWN}/test", None, 200),
    ("POST", "/api/deliveries/retry", {"dead_letter": 1}, 202),
    ("POST", "/api/deliveries/discard", {"dead_letter": 1}, 200),
    ("POST", f"{OWN}/replay", {"record": 1}, 202),
    ("POST", f"{OWN}/secret", {}, 200),
]


async def make_account(hub: Hub, name: str) -> tuple[AccountId, dict[str, str]]:
    """One that may do everything but administer."""
    scopes = frozenset(TokenScope) - {TokenScope.ADMIN}
    made = await hub.services.tokens.create(CreateToken(account=name, scopes=scopes))
    return made.token.account.id, {"Authorization": f"Bearer {made.secret}"}


async def subscribe_given_up(hub: Hub, account: AccountId) -> None:
    """Subscription 1 with dead letter 1 and a failed request."""
    scene = Scene(hub.storage)
    subscription = await scene.subscribe_retrying(
        await scene.add_feed(), account=account
    )
    (claimed,) = await scene.claim_retrying(at(5))
    dead_letter = NewDeadLetter(
        subscription_id=subscription.id,
        lease_id=claimed.lease_id,
        first=Position(claimed.position + 1),
        last=Position(claimed.position + 1),
        reason="tried too often",
        at=at(5),
    )
    attempt = failed(subscription, kept=details(answer=ANSWER))
    await scene.flush(given_up=(dead_letter,), attempts=(attempt,))


@pytest.mark.parametrize(("method", "path", "body", "status"), CALLS)
async def test_it_may_do_to_its_own_what_is_not_there_for_others(
    hub: Hub,
    anybody: httpx2.AsyncClient,
    method: str,
    path: str,
    body: dict[str, Any] | None,
    status: int,
) -> None:
    alice, hers = await make_account(hub, "alice")
    _, his = await make_account(hub, "bob")
    await subscribe_given_up(hub, alice)
    answer = await anybody.request(method, path, json=body, headers=his)
    assert answer.status_code == 404
    answer = await anybody.request(method, path, json=body, headers=hers)
    assert answer.status_code == status


@pytest.mark.parametrize("verb", ["retry", "discard"])
async def test_a_retry_is_its_account_s_own_too(
    hub: Hub, anybody: httpx2.AsyncClient, verb: str
) -> None:
    alice, hers = await make_account(hub, "alice")
    _, his = await make_account(hub, "bob")
    scene = Scene(hub.storage)
    await scene.subscribe_retrying(await scene.add_feed(), account=alice)
    path, body = f"/api/deliveries/{verb}", {"subscription": 1}
    answer = await anybody.post(path, json=body, headers=his)
    assert answer.status_code == 404
    answer = await anybody.post(path, json=body, headers=hers)
    assert answer.status_code in (200, 202)


async def test_attempts_say_what_they_told_of_by_pages(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    alice, hers = await make_account(hub, "alice")
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed, account=alice)
    for number in range(3):
        await scene.publish(feed, f"Entry {number}")
        await scene.deliver(at(number))
    found, query = [], "?limit=2&outcome=delivered"
    while query:
        page = (await anybody.get(f"{OWN}/attempts{query}", headers=hers)).json()
        found += [(each["title"], each["entries"]) for each in page["attempts"]]
        query = f"?limit=2&before={page['next']}" if page["next"] else ""
    assert found == [("Entry 2", 1), ("Entry 1", 1), ("Entry 0", 1)]


async def test_a_replay_says_how_much_waits(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    subscription = await scene.subscribe(feed)
    for number in range(3):
        await scene.publish(feed, f"Entry {number}", when=at(number * 60))
        await scene.deliver(at(number * 60))
    body = {"since": at(30).isoformat()}
    answer = await client.post(f"{OWN}/replay", json=body)
    assert (answer.status_code, answer.json()["records"]) == (202, 2)
    await scene.claim_retrying(hub.clock.now())
    busy = await client.post(f"{OWN}/replay", json=body)
    assert busy.status_code == 409
    assert "try again in a second" in busy.json()["detail"]
    await hub.storage.subscriptions.end(subscription.id, "", at(0), tell=False)
    ended = await client.post(f"{OWN}/replay", json=body)
    assert "has ended" in ended.json()["detail"]


async def test_a_callback_that_is_never_notified_has_no_replay(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    feed = await Scene(hub.storage).add_feed()
    new = NewSubscription(
        account=AccountId(1),
        topic=feed.url,
        feed_id=feed.id,
        callback="https://hub.example/dev/null",
        is_silent=True,
    )
    await hub.storage.subscriptions.add(new, at(0))
    answer = await client.post(f"{OWN}/replay", json={"record": 1})
    assert answer.status_code == 409
    assert "is never notified" in answer.json()["detail"]


@pytest.mark.parametrize(("given", "shown"), [("", "whsec_"), ("of my own", "")])
async def test_a_new_secret_is_shown_once_if_the_hub_made_it(
    hub: Hub, client: httpx2.AsyncClient, given: str, shown: str
) -> None:
    scene = Scene(hub.storage)
    subscription = await scene.subscribe(await scene.add_feed(), secret="geheim")
    answer = await client.post(f"{OWN}/secret", json={"secret": given})
    made = answer.json()
    assert made["secret"][:6] == shown
    assert made["former_secret_until"] is not None
    assert answer.headers["cache-control"] == "no-store"
    stored = await hub.storage.subscriptions.get(subscription.id)
    assert stored is not None
    assert stored.secret == (given or made["secret"])


async def test_an_account_is_told_of_itself(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    alice, hers = await make_account(hub, "alice")
    await subscribe_given_up(hub, alice)
    found = (await anybody.get("/api/account", headers=hers)).json()
    assert found == {
        "account": "alice",
        "scopes": ["list", "retrieve", "subscribe", "unsubscribe"],
        "notified": 0,
        "credits": 1_000_000_000,
        "subscriptions": 1,
        "failing": 1,
    }
