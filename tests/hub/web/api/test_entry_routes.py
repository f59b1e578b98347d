"""What was committed when, and the way of an entry, as the API tells it."""

from __future__ import annotations

import httpx2
import pytest

from tests.support.services import Hub
from tests.support.storage_scene import Scene


async def test_entries_are_told_with_their_delays_page_by_page(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    scene = Scene(hub.storage)
    feed = await scene.add_feed()
    await scene.publish(feed, *"ab", when=hub.clock.now())
    hub.clock.advance(60)
    first = (await client.get("/api/entries?since=2min&limit=1")).json()
    (entry,) = first["entries"]
    assert (entry["title"], entry["feed"], entry["kind"]) == ("a", feed.id, "entries")
    assert (entry["commit_to_delivery"], entry["exact"]) == (None, False)
    address = f"/api/entries?since=2min&cursor={first['next']}"
    second = (await client.get(address)).json()
    assert [each["title"] for each in second["entries"]] == ["b"]
    assert second["next"] is None
    latest = (await client.get("/api/entries?since=2min&order=latest")).json()
    assert [each["title"] for each in latest["entries"]] == ["b", "a"]
    assert (await client.get("/api/entries?until=2min")).json()["entries"] == []
    by_delay = (await client.get("/api/entries?since=2min&order=delay")).json()
    assert (by_delay["entries"], by_delay["examined"], by_delay["undated"]) == (
        [],
        2,
        2,
    )
    assert (by_delay["next"], by_delay["has_more"]) == (None, False)


@pytest.mark.parametrize("query", ["cursor=7", "since=x", "limit=0"])
async def test_a_page_of_entries_that_is_none_is_refused(
    client: httpx2.AsyncClient, query: str
) -> None:
    assert (await client.get(f"/api/entries?{query}")).status_code == 422


async def test_the_way_of_an_entry_is_told_with_who_got_it_and_who_did_not(
    hub: Hub, client: httpx2.AsyncClient
) -> None:
    scene, now = Scene(hub.storage), hub.clock.now()
    feed = await scene.add_feed()
    taking = await scene.subscribe(feed, "taking")
    failing = await scene.subscribe(feed, "failing")
    position = await scene.publish(feed, "a", when=now)
    (chunk,) = await scene.claim(now)
    await scene.fail(chunk, failing, when=now)
    hub.clock.advance(60)
    listed = (await client.get("/api/entries?since=2min")).json()["entries"]

    way = (await client.get(f"/api/entries/{listed[0]['id']}")).json()

    assert (way["title"], way["feed"], way["poll"]) == ("a", feed.id, None)
    (record,) = way["records"]
    assert (record["position"], record["kind"]) == (position, "entries")
    told = [(each["callback"], each["status"]) for each in way["deliveries"]]
    assert told == [(taking.callback, 200), (failing.callback, 500)]
    assert {each["over_since"] for each in way["deliveries"]} == {None}
    (waiting,) = way["waiting"]
    assert waiting["subscription"] == failing.id
    assert (way["given_up"], way["more_subscribers"]) == ([], False)
