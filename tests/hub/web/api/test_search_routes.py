"""``GET /api/search``: stored entries that match, a page at a time."""

from __future__ import annotations

import httpx2
import pytest

from hub.services.token_authentication import CreateToken
from storage.records import TokenScope
from tests.support.library import START, Library, topic_of
from tests.support.services import Hub


@pytest.fixture
async def library(hub: Hub) -> Library:
    library = await Library.open(hub)
    await library.add_feed("news")
    for number in range(5):
        await library.publish("news", f"word {number}", minutes=number)
    await library.add_feed("theirs", private=True)
    await library.publish("theirs", "word of theirs", minutes=9)
    await library.index()
    return library


async def test_matches_come_in_pages_with_how_far_was_looked(
    library: Library, anybody: httpx2.AsyncClient
) -> None:
    own = {"Authorization": f"Bearer {library.token}"}
    path, found = "/api/search?query=word&limit=3", list[str]()
    pages = []
    while True:
        answer = (await anybody.get(path, headers=own)).json()
        found += [each["title"] for each in answer["entries"]]
        pages.append((answer["said"], answer["looked_at"], answer["reached"]))
        if answer["next"] is None:
            break
        path = f"/api/search?query=word&limit=3&cursor={answer['next']}"
    assert found == [f"word {number}" for number in (4, 3, 2, 1, 0)]
    assert pages == [
        ("the newest 3 entries of more that were found", 4, "2026-11-21T00:01:00Z"),
        ("2 more entries found", 2, "2026-11-21T00:00:00Z"),
    ]
    entry = answer["entries"][-1]
    assert (entry["feed_url"], entry["feed_title"]) == (topic_of("news"), "About news")
    assert entry["published"] == f"{START:%Y-%m-%dT%H:%M:%SZ}"


async def test_an_operator_finds_private_entries_too(
    library: Library, client: httpx2.AsyncClient
) -> None:
    answer = (await client.get("/api/search?query=theirs")).json()
    assert [each["title"] for each in answer["entries"]] == ["word of theirs"]


@pytest.mark.parametrize(
    "query", ["", "query=", "query=(", "query=a&cursor=0", "query=a&limit=101"]
)
async def test_what_cannot_be_searched_for_is_422(
    client: httpx2.AsyncClient, query: str
) -> None:
    assert (await client.get(f"/api/search?{query}")).status_code == 422


async def test_a_token_needs_the_scope_to_retrieve(
    hub: Hub, anybody: httpx2.AsyncClient
) -> None:
    other = await hub.services.tokens.create(
        CreateToken(account="other", scopes=frozenset({TokenScope.LIST}))
    )
    own = {"Authorization": f"Bearer {other.secret}"}
    answer = await anybody.get("/api/search?query=word", headers=own)
    assert answer.status_code == 403
