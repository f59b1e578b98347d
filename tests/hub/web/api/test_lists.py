"""Lists of feeds and subscriptions over HTTP: filters, orders, cursors, totals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hub.core.delivery.delivery_outcome import GONE
from storage.records import FeedHealth, FeedId, FeedState, Polling, RetryOpened
from tests.support.services import Hub
from tests.support.storage_scene import Scene, fetch, outcome_of

DAY = timedelta(days=1)


async def get(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def names(page: dict[str, Any]) -> str:
    return "".join(feed["url"][8] for feed in page["feeds"])


@pytest.fixture
async def five(hub: Hub) -> Hub:
    """a and b fail, since eight days and since an hour; c is paused, e removed."""
    scene, now = Scene(hub.storage), hub.clock.now()
    feeds = [
        await scene.add_feed(name, category="news" if name in "bd" else "")
        for name in "abcde"
    ]
    for feed, age in ((feeds[0], 8 * DAY), (feeds[1], DAY / 24)):
        commit = fetch(
            feed,
            when=now - age,
            polling=Polling(code=500, error="answered 500", failures=1),
            condition=FeedHealth.FAILING,
        )
        await hub.storage.log.commit(commit)
    for feed, state in ((feeds[2], FeedState.PAUSED), (feeds[4], FeedState.REMOVED)):
        await hub.storage.feeds.set_state(feed.id, state, now)
    return hub


async def test_a_feed_has_its_health_with_since_when_and_why(
    client: httpx2.AsyncClient, five: Hub
) -> None:
    feed = (await get(client, "/api/feeds?failing=true"))["feeds"][1]
    assert feed["health"] == {
        "state": "failing",
        "since": (five.clock.now() - DAY / 24).isoformat().replace("+00:00", "Z"),
        "reason": "answered 500",
    }
    assert (await get(client, f"/api/feeds/{feed['id']}"))["health"] == feed["health"]


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "abcd"),
        ("failing=true", "ab"),
        ("state=failing", "ab"),
        ("state=paused&failing=true", "abc"),
        ("state=paused&state=removed", "ce"),
        ("state=active", "abd"),
        ("state=dead", ""),
        ("category=news", "bd"),
        ("section=news", "bd"),
        ("category=", "ac"),
        ("search=B.EXAMPLE", "b"),
        ("failing=true&since=7d", "a"),
        ("failing=true&within=7d", "b"),
        ("since=2026-01-01T00:00:00Z&failing=true&within=2025-12-30", "b"),
        ("sort=-id", "dcba"),
        ("sort=-url&limit=2", "dc"),
        ("failing=true&sort=-since", "ba"),
    ],
)
async def test_a_list_has_what_is_asked_for(
    client: httpx2.AsyncClient, query: str, expected: str
) -> None:
    page = await get(client, f"/api/feeds?{query}")
    assert names(page) == expected
    assert page["total"] == (4 if "limit" in query else len(expected))


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("sort", ["id", "-id", "url", "-url", "since", "-since"])
async def test_a_list_goes_on_at_its_cursor(
    client: httpx2.AsyncClient, sort: str
) -> None:
    whole = names(await get(client, f"/api/feeds?sort={sort}"))
    found, page = "", await get(client, f"/api/feeds?sort={sort}&limit=3")
    assert page["total"] == 4
    assert (page["next"] is not None) == ("id" in sort)
    found += names(page)
    query = {"sort": sort, "limit": "3", "cursor": page["cursor"]}
    last = (await client.get("/api/feeds", params=query)).json()
    assert found + names(last) == whole
    assert (last["cursor"], last["next"]) == (None, None)


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("state=broken", "state"),
        ("failing=yes", "failing"),
        ("search=ab", "search"),
        (f"search={'a' * 501}", "search"),
        ("since=yesterday", "since"),
        ("since=9999999999d", "since"),
        ("within=7", "within"),
        ("sort=title", "sort"),
        ("sort=url&after=1", "after"),
        ("cursor=x", "cursor"),
        ("cursor=WzEsbnVsbF0&sort=url", "cursor"),
        ("cursor=Wy0xLG51bGxd", "cursor"),
        ("cursor=WzEsIngiXQ&sort=since", "cursor"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_its_name(
    client: httpx2.AsyncClient, query: str, field: str
) -> None:
    answer = await client.get(f"/api/feeds?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize("name", ["category", "section"])
async def test_a_feed_has_its_category_by_either_name(
    client: httpx2.AsyncClient, name: str
) -> None:
    body = {"url": "https://a.example/feed", name: "news"}
    made = (await client.post("/api/feeds", json=body)).json()
    assert made["category"] == made["section"] == "news"
    edited = await client.patch(f"/api/feeds/{made['id']}", json={name: "sport"})
    assert edited.json()["category"] == "sport"


async def test_subscriptions_that_fail_are_listed_and_counted(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene, now = Scene(hub.storage), hub.clock.now()
    feed = await scene.add_feed()
    well, late = [await scene.subscribe(feed, name) for name in ("well", "late")]
    await scene.publish(feed, "an entry", when=now)
    [chunk] = await scene.claim(now)
    opened = RetryOpened(
        subscription_id=late.id,
        position=chunk.record.position,
        attempts=1,
        next_try=now + DAY,
        failing_since=now,
        last_status=500,
        last_error="answered 500",
    )
    outcomes = tuple(outcome_of(chunk, index) for index, _ in chunk.pending)
    await scene.flush(when=now, outcomes=outcomes, opened=(opened,))

    failing = await get(client, "/api/subscriptions?failing=true")
    assert [each["id"] for each in failing["subscriptions"]] == [late.id]
    assert failing["subscriptions"][0]["health"]["reason"] == "answered 500"
    assert failing["total"] == 1
    found = await get(client, "/api/subscriptions?search=example/WELL&sort=-since")
    assert [each["id"] for each in found["subscriptions"]] == [well.id]
    shown = await get(client, f"/api/subscriptions/{late.id}")
    assert shown["health"] == failing["subscriptions"][0]["health"]
    metrics = (await client.get("/metrics")).text
    assert 'fanfare_subscription_states{state="failing"} 1' in metrics
    assert 'fanfare_subscription_states{state="ok"} 1' in metrics
    assert 'fanfare_feed_states{state="ok"} 1' in metrics


async def test_subscriptions_that_are_over_are_listed_and_counted(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene, now = Scene(hub.storage), hub.clock.now()
    feed = await scene.add_feed()
    names = ("early", "late", "ended", "well")
    early, late, ended, _ = [await scene.subscribe(feed, name) for name in names]
    await scene.flush(when=now - DAY, ended=((early.id, GONE),))
    await scene.flush(when=now, ended=((late.id, GONE),))
    await hub.storage.subscriptions.end(ended.id, "by hand", now, tell=True)

    over = await get(client, "/api/subscriptions?state=over")
    assert [each["id"] for each in over["subscriptions"]] == [early.id, late.id, 3]
    assert over["total"] == 3
    lately = await get(client, "/api/subscriptions?state=gone&within=1d")
    assert [each["id"] for each in lately["subscriptions"]] == [late.id]
    health = await get(client, "/api/health")
    assert health["ended_subscriptions"] == {"gone": 2, "gone_of_day": 1, "ended": 1}


async def test_an_account_lists_its_own_only(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.subscribe(feed)
    body = {"account": "alice", "scopes": ["list"]}
    token = (await client.post("/api/tokens", json=body)).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    answer = await client.get("/api/subscriptions?search=subscriber", headers=headers)
    assert (answer.json()["subscriptions"], answer.json()["total"]) == ([], 0)
    assert feed.id == FeedId(1)
