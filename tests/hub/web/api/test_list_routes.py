"""Watched lists over HTTP."""

from __future__ import annotations

import httpx2

from tests.support.services import LIST, Hub
from tests.support.waiting import in_background

WATCHED = "/api/watched-lists"


async def test_a_list_is_watched_shown_and_unwatched(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    async with in_background(hub.services.list_watches.run):
        made = await client.post(WATCHED, json={"url": LIST, "category": "partners"})
        again = await client.post(WATCHED, json={"url": LIST})
        refused = await client.post(WATCHED, json={"url": LIST, "category": "x"})
    found = made.json()

    assert (made.status_code, again.status_code, refused.status_code) == (201, 200, 409)
    assert found["url"] == LIST
    assert (found["feeds"], found["added"], found["error"]) == (1, 1, "")
    assert (found["reading"], found["last_read"]) == (None, found["changed_at"])
    listed = (await client.get(WATCHED)).json()
    assert [each["id"] for each in listed["lists"]] == [found["id"]]
    [feed] = (await client.get("/api/feeds")).json()["feeds"]
    assert feed["category"] == "partners"

    ended = await client.delete(f"{WATCHED}/{found['id']}")
    assert ended.json()["url"] == LIST
    assert (await client.get(f"{WATCHED}/{found['id']}")).status_code == 404
    assert (await client.get("/api/feeds")).json()["total"] == 1


async def test_while_a_list_is_read_it_is_said_how_far_that_is(
    client: httpx2.AsyncClient, hub: Hub
) -> None:
    made = await client.post(f"{WATCHED}?wait=0", json={"url": LIST})
    assert made.json()["reading"] == {"done": 0, "total": 0}
    assert made.json()["last_read"] is None


async def test_the_url_is_refused_by_its_name(client: httpx2.AsyncClient) -> None:
    for url in ("ftp://example.org/", "https://inside.example/a.opml"):
        refused = await client.post(WATCHED, json={"url": url})
        assert (refused.status_code, refused.json()["field"]) == (422, "url")


async def test_lists_are_told_to_those_who_may_administrate(
    anybody: httpx2.AsyncClient,
) -> None:
    assert (await anybody.get(WATCHED)).status_code == 401
