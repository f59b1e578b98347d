"""``/stream`` as server-sent events, over real sockets."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import orjson
import pytest

from hub.services.token_authentication import CreateToken
from hub.web.streams.event_stream import accepts_events
from storage.records import TokenScope
from tests.support.admin import ADMIN
from tests.support.event_stream import EventClient
from tests.support.live_hub import LiveHub, live_hub, titles
from tests.support.waiting import eventually

NEWS = "https://news.example/feed"
OTHER = "https://other.example/feed"
SECRET = "https://secret.example/feed"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        await hub.add_feed(NEWS)
        await hub.add_feed(OTHER)
        await hub.add_feed(SECRET, private=True)
        yield hub


async def listen(
    hub: LiveHub, *topics: str, last: str = "", **query: str
) -> EventClient:
    """As an EventSource asks."""
    pairs = [("topic", topic) for topic in topics] + list(query.items())
    headers = {"Accept": "text/event-stream"}
    if last:
        headers["Last_Event_ID"] = last
    return await hub.ask(f"/stream?{urlencode(pairs)}", **headers)


async def test_new_entries_are_notification_events(hub: LiveHub) -> None:
    client = await listen(hub, NEWS)
    assert client.status == 200
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert client.headers["cache-control"] == "no-store"
    assert client.headers["x-accel-buffering"] == "no"  # a proxy is not to wait
    assert client.headers["access-control-allow-origin"] == "*"
    await client.next("subscribed")
    assert client.status == 200
    position = await hub.publish(NEWS, "one")
    told = await client.next()
    assert titles(told) == ["one"]
    assert told["type"] == "notification"
    assert client.parser.last_id == told["cursor"] == await hub.cursor(position)


async def test_the_last_event_id_resumes(hub: LiveHub) -> None:
    first = await hub.publish(NEWS, "one")
    await hub.publish(OTHER, "two")
    await hub.publish(NEWS, "three")
    client = await listen(hub, NEWS, OTHER, last=await hub.cursor(first))
    assert titles(await client.next()) == ["two"]
    assert titles(await client.next()) == ["three"]
    await hub.publish(OTHER, "four")
    assert titles(await client.next()) == ["four"]


async def test_the_first_event_is_where_a_reconnect_before_any_news_goes_on(
    hub: LiveHub,
) -> None:
    client = await listen(hub, NEWS)
    begun = await client.next("subscribed")
    assert begun == {
        "type": "subscribed",
        "topic": NEWS,
        "cursor": client.parser.last_id,
    }
    client.abort()
    await hub.publish(NEWS, "meanwhile")
    client = await listen(hub, NEWS, last=begun["cursor"])
    assert titles(await client.next()) == ["meanwhile"]


async def test_the_last_event_id_is_newer_than_the_cursor_of_the_url(
    hub: LiveHub,
) -> None:
    await hub.publish(NEWS, "one")
    position = await hub.publish(NEWS, "two")
    begin = await hub.cursor(0)
    client = await listen(hub, NEWS, cursor=begin)
    assert titles(await client.next()) == ["one"]
    last = await hub.cursor(position)
    client = await listen(hub, NEWS, cursor=begin, last=last)
    await hub.publish(NEWS, "three")
    assert titles(await client.next()) == ["three"]


async def test_who_lost_the_connection_before_any_event_misses_none(
    hub: LiveHub,
) -> None:
    client = await listen(hub, NEWS)
    list(client.parser.feed(await client.chunk()))
    client.abort()
    await hub.publish(NEWS, "one")
    client = await listen(hub, NEWS, last=client.parser.last_id)
    assert titles(await client.next()) == ["one"]


@pytest.mark.parametrize("last", ["garbage", "0000-3", "é"])
async def test_a_last_event_id_of_elsewhere_is_a_reset(hub: LiveHub, last: str) -> None:
    position = await hub.publish(NEWS, "one")
    client = await listen(hub, NEWS, last=last)
    told = await client.next("reset")
    assert told["cursor"] == client.parser.last_id == await hub.cursor(position)
    await hub.publish(NEWS, "two")
    assert titles(await client.next()) == ["two"]


async def test_a_quiet_stream_is_kept_alive_by_comments(tmp_path: Path) -> None:
    async with live_hub(tmp_path, heartbeat_seconds=0.05) as hub:
        await hub.add_feed(NEWS)
        client = await listen(hub, NEWS)
        await client.chunk()
        await hub.publish(NEWS, "one")
        assert (await client.next())["kind"] == "entries"
        beat = await client.chunk()
        assert beat == f": heartbeat\nid: {client.parser.last_id}\n\n".encode()


@pytest.mark.parametrize(
    ("accept", "accepts"),
    [
        ("", True),
        ("*/*", True),
        ("text/event-stream", True),
        ("application/json, TEXT/Event-Stream; q=0.5", True),
        ("text/html, */*;q=0.8", True),
        ("text/*", True),
        ("text/event-stream;q=0", False),
        ("text/event-stream; q=0.0", False),
        ("application/json", False),
        ("text/html", False),
    ],
)
def test_an_accept_header_takes_events_or_not(accept: str, accepts: bool) -> None:
    assert accepts_events(accept) is accepts


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("", 422, "topic"),
        ("topic=", 422, "topic"),
        ("topic=feed", 422, "topic"),
        ("topic=https://x.example/" + "x" * 3000, 422, "topic"),
        ("topic=https://nobody.example/feed", 404, "topic"),
        (f"topic={SECRET}", 404, "topic"),
        (f"topic={NEWS}&topic={SECRET}", 404, "topic"),
        (f"topic={NEWS}&cursor=soon", 422, "cursor"),
        (f"topic={NEWS}&format=xml", 422, "format"),
        (f"topic={NEWS}&updates=few", 422, "updates"),
    ],
)
async def test_a_request_that_is_wrong_is_answered_with_the_parameter(
    hub: LiveHub, query: str, status: int, field: str
) -> None:
    client = await hub.ask(f"/stream?{query}")
    assert client.status == status
    problem = orjson.loads(await client.body())
    assert problem["field"] == field


async def test_a_private_topic_and_an_unknown_one_look_alike(hub: LiveHub) -> None:
    private = await listen(hub, SECRET)
    unknown = await listen(hub, "https://nobody.example/feed")
    assert await private.body() == await unknown.body()


async def test_more_topics_than_allowed_are_refused(hub: LiveHub) -> None:
    hub.hub.services.live.most_topics = 1
    client = await listen(hub, NEWS, OTHER)
    assert client.status == 422


async def test_a_request_for_something_else_is_not_acceptable(hub: LiveHub) -> None:
    client = await hub.ask("/stream", Accept="application/json")
    assert client.status == 406


async def test_a_token_opens_private_topics_and_a_wrong_one_nothing(
    hub: LiveHub,
) -> None:
    rights = frozenset({TokenScope.RETRIEVE})
    made = await hub.hub.services.tokens.create(
        CreateToken(account="ada", scopes=rights)
    )
    await hub.subscribe(SECRET, made.token.account.id)
    good = base64.b64encode(f"ada:{made.secret}".encode()).decode()
    client = await listen(hub, SECRET, authorization=good)
    assert client.status == 200
    admin = await hub.ask(f"/stream?topic={SECRET}", **ADMIN)
    assert admin.status == 200
    bad = base64.b64encode(b"admin:guess").decode()
    client = await listen(hub, NEWS, authorization=bad)
    assert client.status == 401
    assert "www-authenticate" in client.headers


async def test_a_stream_that_is_not_open_takes_a_token(tmp_path: Path) -> None:
    async with live_hub(tmp_path, open_stream="off") as hub:
        await hub.add_feed(NEWS)
        assert (await listen(hub, NEWS)).status == 401


async def test_a_head_request_is_answered_with_the_head_only(hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    target = f"/stream?{urlencode({'topic': NEWS})}"
    writer.write(f"HEAD {target} HTTP/1.1\r\nHost: hub\r\n\r\n".encode())
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_shutting_down_ends_the_stream_and_takes_no_more(hub: LiveHub) -> None:
    client = await listen(hub, NEWS)
    await client.chunk()
    await hub.hub.services.live.stream.drain()
    assert (await client.next("closed"))["code"] == 3001
    with pytest.raises(EOFError):
        await client.chunk()
    assert (await listen(hub, NEWS)).status == 503


async def test_who_takes_nothing_is_cut_off(hub: LiveHub) -> None:
    connections = hub.hub.metrics.connections
    client = await listen(hub, NEWS)
    await client.chunk()
    assert connections["sse"] == 1
    for number in range(40):
        await hub.publish(NEWS, f"{number}", text=f"{number}" * 400_000)
    await eventually(lambda: connections["sse"] == 0)


async def test_a_client_that_goes_is_forgotten(hub: LiveHub) -> None:
    connections = hub.hub.metrics.connections
    client = await listen(hub, NEWS)
    await eventually(lambda: connections["sse"] == 1)
    client.abort()
    await eventually(lambda: connections["sse"] == 0)


ANOTHER = b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n"
UPGRADE = (
    b"GET /stream HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


@pytest.mark.parametrize("more", [ANOTHER, ANOTHER * 2, b"GET /h", UPGRADE])
async def test_a_client_that_asks_for_more_on_its_connection_is_cut_off(
    hub: LiveHub, more: bytes
) -> None:
    connections = hub.hub.metrics.connections
    client = await listen(hub, NEWS)
    await eventually(lambda: connections["sse"] == 1)
    client.send(more)
    await eventually(lambda: connections["sse"] == 0)
