"""A feed gets another URL, or a period of its own, and stays the same feed."""

from __future__ import annotations

import httpx2
import pytest
from msgspec.structs import replace

from storage.records import FeedId
from tests.support.services import Hub

URL, MOVED = "https://example.org/feed.xml", "https://example.com/rss"


async def add(client: httpx2.AsyncClient, **terms: object) -> str:
    """The path of a feed that was added."""
    made = await client.post("/api/feeds", json={"url": URL, **terms})
    return f"/api/feeds/{made.json()['id']}"


async def test_a_feed_at_another_url_is_fetched_there_at_once(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    path = await add(client, category="news")
    answer = await client.patch(path, json={"url": MOVED})

    feed = answer.json()
    assert (answer.status_code, feed["url"], feed["category"]) == (200, MOVED, "news")
    [follows] = feed["follows"]
    assert f"its former URL {URL} still leads to it" in follows
    assert hub.poller.fetched == [feed["id"], feed["id"]]
    for url in (URL, MOVED):
        (found,) = (await client.get("/api/feeds", params={"url": url})).json()["feeds"]
        assert found["id"] == feed["id"]


async def test_a_feed_that_is_given_its_own_url_is_left_as_it_is(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    """Its server may have asked for patience."""
    path = await add(client)
    before = (await client.get(path)).json()
    answer = await client.patch(path, json={"url": URL})
    assert (answer.status_code, answer.json()["follows"]) == (200, [])
    assert hub.poller.fetched == [before["id"]]
    assert (await client.get(path)).json() == before


async def test_what_a_fetch_under_way_stores_of_the_former_url_is_taken_back(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    path = await add(client)
    feed_id = FeedId(int(path.rpartition("/")[2]))
    hub.poller.under_way.add(feed_id)
    hub.poller.outcome = lambda polling: replace(polling, fetch_url=f"{URL}/moved")

    assert (await client.patch(path, json={"url": MOVED})).status_code == 200

    before, after = hub.poller.fetched[1:]
    assert before == after == feed_id


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("nonsense", "url"),
        ("http://10.0.0.1/feed", "url"),
        ("http://hub.example/topics/1.atom", "url"),
        ("http://hub.example/track?query=a", "url"),
    ],
)
async def test_a_url_that_cannot_be_a_feed_s_is_refused(
    client: httpx2.AsyncClient, url: str, field: str
) -> None:
    path = await add(client)
    answer = await client.patch(path, json={"url": url})
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await client.get(path)).json()["url"] == URL


async def test_a_url_that_another_feed_has_is_a_conflict(
    client: httpx2.AsyncClient,
) -> None:
    path = await add(client)
    other = await add(client, url=MOVED)
    answer = await client.patch(path, json={"url": MOVED})
    assert answer.status_code == 409
    assert f"feed {other.rpartition('/')[2]} has this URL already" in answer.text
    await client.delete(other)
    assert (await client.patch(path, json={"url": MOVED})).status_code == 200


async def test_credentials_go_to_another_origin_only_if_they_are_given_for_it(
    client: httpx2.AsyncClient,
) -> None:
    path = await add(client, basic="ann:pass")
    answer = await client.patch(path, json={"url": MOVED})
    assert (answer.status_code, answer.json()["field"]) == (422, "url")
    for change in (
        {"url": f"{URL}?same=origin"},
        {"url": MOVED, "basic": "ann:other"},
        {"url": "https://ann:pass@example.net/feed"},
        {"url": MOVED, "basic": ""},
    ):
        answer = await client.patch(path, json=change)
        assert answer.status_code == 200
        assert "@" not in answer.json()["url"]
    assert answer.json()["has_credentials"] is False


async def test_a_site_keeps_its_address(client: httpx2.AsyncClient, hub: Hub) -> None:
    hub.poller.format = "openfeeder"
    path = await add(client)
    answer = await client.patch(path, json={"url": MOVED})
    assert (answer.status_code, answer.json()["field"]) == (422, "url")


async def test_a_period_of_its_own_is_set_and_taken_away(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    path = await add(client)
    answer = (await client.patch(path, json={"own_period": 300})).json()
    assert answer["own_period"] == 300
    assert answer["follows"] == [
        "it is polled every 5 min, or as often as FANFARE_MIN_PERIOD"
        " and its server allow"
    ]
    assert hub.poller.woken
    answer = (await client.patch(path, json={"own_period": 0})).json()
    assert (answer["own_period"], answer["follows"]) == (0, ["it is polled as planned"])


@pytest.mark.parametrize("period", [-1, 0.5, 604_801])
async def test_a_period_has_bounds(client: httpx2.AsyncClient, period: float) -> None:
    path = await add(client)
    answer = await client.patch(path, json={"own_period": period})
    assert (answer.status_code, answer.json()["field"]) == (422, "own_period")
