"""Who listens live, on the pages and by the API, and a topic as it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import lxml.html
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from hub.services.token_authentication import CreateToken
from storage.records import TokenScope
from tests.support.admin import ADMIN, TOKEN
from tests.support.live_hub import LiveHub, live_hub, next_message
from tests.support.operator_browser import FROM_A_PAGE
from tests.support.waiting import eventually

EVENTS = {"Accept": "text/event-stream", "Sec_Fetch_Site": "same-origin"}
TOPIC, OTHER, SECRET = (f"https://example.org/{it}" for it in ("a", "b", "secret"))


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as live:
        for topic in (TOPIC, OTHER):
            await live.add_feed(topic)
        await live.add_feed(SECRET, private=True)
        yield live


@asynccontextmanager
async def connected(live: LiveHub) -> AsyncIterator[ClientConnection]:
    """A websocket of two topics, and an event stream of one with alice's token."""
    made = await live.hub.services.tokens.create(
        CreateToken(account="alice", scopes=frozenset({TokenScope.RETRIEVE}))
    )
    async with live.connect(TOPIC, OTHER) as socket:
        for _ in range(2):
            assert (await next_message(socket))["type"] == "subscribed"
        target = f"/stream?topic={TOPIC}"
        authorization = f"Bearer {made.secret}"
        stream = await live.ask(
            target, Accept="text/event-stream", Authorization=authorization
        )
        await stream.next("subscribed")
        yield socket


@asynccontextmanager
async def api(live: LiveHub) -> AsyncIterator[httpx2.AsyncClient]:
    url = f"http://127.0.0.1:{live.port}"
    async with httpx2.AsyncClient(base_url=url, headers=ADMIN) as client:
        yield client


@asynccontextmanager
async def operator(live: LiveHub) -> AsyncIterator[httpx2.AsyncClient]:
    url = f"http://127.0.0.1:{live.port}"
    async with httpx2.AsyncClient(base_url=url, headers=FROM_A_PAGE) as client:
        answer = await client.post("/admin/login", data={"token": TOKEN})
        client.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
        yield client


async def listed(live: LiveHub, query: str = "") -> list[dict[str, Any]]:
    async with api(live) as client:
        answer = await client.get(f"/api/connections{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["connections"]
    return found


async def test_each_connection_is_told_with_what_it_was_sent(live: LiveHub) -> None:
    async with connected(live):
        await live.publish(OTHER, "one")
        await eventually(lambda: live.hub.metrics.live_messages["pushed"] == 1)
        socket, stream = await listed(live)
    shown = {name: socket[name] for name in ("transport", "account", "address")}
    assert shown == {
        "transport": "websocket",
        "account": "anonymous",
        "address": "127.0.0.1",
    }
    assert sorted(socket["topics"]) == [TOPIC, OTHER]
    assert (socket["topic_count"], socket["messages"]) == (2, 3)
    assert socket["bytes"] > 300
    assert (socket["queue_bytes"], socket["behind"]) == (0, False)
    assert (stream["account"], stream["transport"]) == ("alice", "sse")


@pytest.mark.parametrize(
    ("query", "transports"),
    [
        ("?transport=sse", ["sse"]),
        ("?account=alice", ["sse"]),
        ("?account=anonymous", ["websocket"]),
        (f"?topic={OTHER}", ["websocket"]),
        ("?address=192.0.2.1", []),
        ("?sort=-id", ["sse", "websocket"]),
        ("?sort=-topics", ["websocket", "sse"]),
        ("?sort=-messages&limit=1", ["websocket"]),
    ],
)
async def test_connections_are_filtered_and_sorted(
    live: LiveHub, query: str, transports: list[str]
) -> None:
    async with connected(live):
        found = await listed(live, query)
    assert [each["transport"] for each in found] == transports


@pytest.mark.parametrize("sort", ["id", "-id", "-queue", "-bytes"])
async def test_every_page_of_a_list_has_others(live: LiveHub, sort: str) -> None:
    query, seen = f"?sort={sort}&limit=1", []
    async with connected(live), api(live) as client:
        answer = (await client.get(f"/api/connections{query}")).json()
        while True:
            assert answer["total"] == 2
            seen += [each["id"] for each in answer["connections"]]
            if answer["next"] is None:
                break
            following = f"{query}&cursor={answer['next']}"
            answer = (await client.get(f"/api/connections{following}")).json()
    assert sorted(seen) == [1, 2]


async def test_one_is_sent_away_and_told_not_to_come_back(live: LiveHub) -> None:
    async with connected(live) as socket, api(live) as client:
        [found] = await listed(live, "?transport=websocket")
        path = f"/api/connections/{found['id']}"
        assert (await client.delete(path)).json()["id"] == found["id"]
        with pytest.raises(ConnectionClosed) as closed:
            await next_message(socket)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 3502
        await eventually(lambda: len(live.hub.built.live.registry) == 1)
        assert (await client.delete(path)).status_code == 404


async def test_the_page_lists_them_and_one_is_disconnected_on_its_own(
    live: LiveHub,
) -> None:
    async with connected(live) as socket, operator(live) as client:
        page = lxml.html.fromstring((await client.get("/admin/live")).text)
        assert "1 websocket · 1 event stream" in page.text_content()
        [link] = page.xpath("//tr[contains(., 'anonymous')]//a/@href")
        accounts = lxml.html.fromstring((await client.get("/admin/accounts")).text)
        [count] = accounts.xpath("//tr[contains(., 'anonymous')]/td[last()]/text()")
        assert count == "1"
        one = lxml.html.fromstring((await client.get(link)).text)
        assert OTHER in one.text_content()
        [token] = one.xpath("//form[contains(@action, 'disconnect')]/input/@value")
        sent = await client.post(f"{link}/disconnect", data={"form_token": token})
        assert sent.headers["location"] == "/admin/live?done=disconnected"
        with pytest.raises(ConnectionClosed):
            await next_message(socket)


async def test_an_operator_follows_any_topic_in_its_session(live: LiveHub) -> None:
    async with operator(live) as client:
        cookie = client.headers["Cookie"]
    target = f"/admin/live/notifications?topic={SECRET}"
    stream = await live.ask(target, Cookie=cookie, **EVENTS)
    await stream.next("subscribed")
    await live.publish(SECRET, "one")
    assert (await stream.next())["body"]["items"][0]["title"] == "one"
    assert (await live.ask(target, **EVENTS)).status == 401
    foreign = {**EVENTS, "Sec_Fetch_Site": "cross-site"}
    assert (await live.ask(target, Cookie=cookie, **foreign)).status == 403
    unknown = "/admin/live/notifications?topic=https://example.org/unknown"
    assert (await live.ask(unknown, Cookie=cookie, **EVENTS)).status == 404
