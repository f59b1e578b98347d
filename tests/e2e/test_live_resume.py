"""Losing the connection at every point, and missing nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
from websockets.exceptions import ConnectionClosed

from storage.records import RecordKind
from tests.support.event_stream import EventClient, EventParser
from tests.support.live_hub import LiveHub, live_hub, next_message, titles

NEWS = "https://news.example/feed"
OTHER = "https://other.example/feed"
RECORDS = 120


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        await hub.add_feed(NEWS)
        await hub.add_feed(OTHER)
        await hub.publish(NEWS, "before", kind=RecordKind.BASELINE)
        yield hub


async def publish_all(hub: LiveHub) -> None:
    for number in range(RECORDS):
        await hub.publish((NEWS, OTHER)[number % 3 == 0], f"{number}")
        await asyncio.sleep(0)


async def test_each_record_comes_once_when_every_connection_breaks_after_a_few(
    hub: LiveHub,
) -> None:
    publishing = asyncio.create_task(publish_all(hub))
    received: list[str] = []
    cursor = await hub.cursor(1)
    for taken in (number % 7 for number in range(10_000)):
        async with hub.connect(NEWS, OTHER, cursor=cursor) as client:
            for _ in range(taken):
                if len(received) == RECORDS:
                    break
                message = await next_message(client)
                assert message["type"] != "reset"
                if message["type"] == "notification":
                    received += titles(message)
                    cursor = message["cursor"]
            client.transport.abort()
        if len(received) == RECORDS:
            break
    await publishing
    assert received == [f"{number}" for number in range(RECORDS)]


async def test_an_event_stream_may_break_after_every_byte(hub: LiveHub) -> None:
    begin, last_key = await hub.cursor(1), b'"title":"5"'
    for number in range(6):
        await hub.publish((NEWS, OTHER)[number % 3 == 0], f"{number}")
    whole = len(await taken_bytes(hub, begin, until=last_key))
    for cut in range(0, whole, 23):
        parser = EventParser(begin)
        keys = keys_of(parser, await taken_bytes(hub, begin, at_most=cut))
        if "5" not in keys:
            rest = await taken_bytes(hub, parser.last_id, until=last_key)
            keys += keys_of(EventParser(parser.last_id), rest)
        assert keys == [f"{number}" for number in range(6)], cut


def keys_of(parser: EventParser, data: bytes) -> list[str]:
    """Of the entries in chunks of a body, the last of which may be cut off."""
    found: list[str] = []
    _head, _, rest = data.partition(b"\r\n\r\n")
    while b"\r\n" in rest:
        size, _, rest = rest.partition(b"\r\n")
        body = rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
        for event in parser.feed(body):
            if event.type == "notification":
                found += titles(orjson.loads(event.data))
    return found


async def taken_bytes(
    hub: LiveHub, last: str, *, at_most: int = 2**20, until: bytes = b""
) -> bytes:
    """So many bytes of an answer, or up to the end of the chunk that has ``until``."""
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    target = f"/stream?{urlencode([('topic', NEWS), ('topic', OTHER)])}"
    writer.write(
        f"GET {target} HTTP/1.1\r\nHost: hub\r\nLast-Event-ID: {last}\r\n\r\n".encode()
    )
    taken = b""
    async with asyncio.timeout(60):
        while len(taken) < at_most:
            taken += await reader.read(at_most - len(taken))
            if until and until in taken and taken.endswith(b"\n\n\r\n"):
                break
    writer.transport.abort()
    return taken


async def test_a_replay_longer_than_its_pages_joins_without_a_gap(hub: LiveHub) -> None:
    for number in range(RECORDS):
        await hub.publish(NEWS, f"{number}")
    publishing = asyncio.create_task(publish_all(hub))
    async with hub.connect(NEWS, cursor=await hub.cursor(1)) as client:
        told = [
            message
            for _ in range(1 + RECORDS + RECORDS * 2 // 3)
            if (message := await next_message(client))["type"] == "notification"
        ]
    await publishing
    cursors = [message["cursor"] for message in told]
    assert len(set(cursors)) == len(cursors)
    for before, after in pairwise(told):
        assert after["prev"] == before["cursor"]


async def test_what_was_trimmed_is_told_and_the_rest_follows(hub: LiveHub) -> None:
    begin = await hub.cursor(1)
    await hub.publish(OTHER, "gone")
    await hub.publish(NEWS, "kept")
    await hub.trim(keep=1)
    async with hub.connect(OTHER, NEWS, cursor=begin) as client:
        told = [await next_message(client) for _ in range(4)]
    assert [(each["type"], each["topic"]) for each in told] == [
        ("subscribed", OTHER),
        ("reset", OTHER),
        ("subscribed", NEWS),
        ("notification", NEWS),
    ]


async def test_it_is_no_reset_if_only_others_were_trimmed(hub: LiveHub) -> None:
    cursor = await hub.cursor(await hub.publish(NEWS, "seen"))
    await hub.publish(OTHER, "gone")
    await hub.publish(OTHER, "kept")
    await hub.trim(keep=1)
    async with hub.connect(NEWS, cursor=cursor) as client:
        assert (await next_message(client))["type"] == "subscribed"
        await hub.publish(NEWS, "new")
        assert titles(await next_message(client)) == ["new"]


async def test_a_cursor_of_before_a_restored_backup_is_a_reset(hub: LiveHub) -> None:
    async with hub.connect(NEWS, cursor="0123456789-1") as client:
        begun, reset = [await next_message(client) for _ in range(2)]
    assert (begun["type"], reset["type"]) == ("subscribed", "reset")
    assert reset["cursor"] == await hub.cursor(1)


async def test_a_cursor_of_the_future_is_a_reset(hub: LiveHub) -> None:
    """It was never given out: nobody knows what its owner has missed."""
    async with hub.connect(NEWS, cursor=await hub.cursor(999)) as client:
        begun, reset = [await next_message(client) for _ in range(2)]
        assert (begun["type"], reset["type"]) == ("subscribed", "reset")
        assert begun["cursor"] == reset["cursor"] == await hub.cursor(1)
        await hub.publish(NEWS, "one")
        assert titles(await next_message(client)) == ["one"]


async def test_heartbeats_carry_where_the_log_ends(tmp_path: Path) -> None:
    async with live_hub(tmp_path, heartbeat_seconds=0.05) as hub:
        await hub.add_feed(NEWS)
        await hub.add_feed(OTHER)
        async with hub.connect(NEWS) as client:
            await next_message(client)
            position = await hub.publish(OTHER, "one")
            expected = await hub.cursor(position)
            async with asyncio.timeout(60):
                while True:
                    beat = orjson.loads(await client.recv())
                    assert beat["type"] == "heartbeat"
                    if beat["cursor"] == expected:
                        break


async def test_a_client_that_takes_nothing_while_it_resumes_holds_up_nobody(
    hub: LiveHub,
) -> None:
    for number in range(60):
        await hub.publish(NEWS, f"{number}", text=f"{number}" * 100_000)
    begin = await hub.cursor(1)
    async with (
        hub.connect(NEWS, cursor=begin, max_queue="1") as stuck,
        hub.connect(NEWS, cursor=begin) as quick,
    ):
        stuck.transport.pause_reading()
        await next_message(quick)
        for number in range(60):
            assert titles(await next_message(quick)) == [f"{number}"]
        stuck.transport.resume_reading()
        received = []
        try:
            while len(received) < 60:
                message = await next_message(stuck)
                if message["type"] == "notification":
                    received += titles(message)
        except ConnectionClosed:
            pytest.fail("closed although it went on taking")
        assert received == [f"{number}" for number in range(60)]


# --- several topics of one feed, which share each record ---------------------------

ALIASES = [f"https://news.example/feed?{number}" for number in range(4)]


@pytest.fixture
async def aliased(hub: LiveHub) -> LiveHub:
    """Also with other topics of the feed of `NEWS`."""
    for alias in ALIASES:
        await hub.add_alias(alias, of=NEWS)
    return hub


def heard(message: dict[str, Any]) -> tuple[str, str]:
    return message["topic"], titles(message)[0]


async def test_an_event_stream_that_breaks_between_topics_of_a_record_loses_none(
    aliased: LiveHub,
) -> None:
    hub, topics = aliased, [NEWS, *ALIASES, OTHER]
    expected = set()
    last = await hub.cursor(1)
    for number in range(4):
        await hub.publish((NEWS, OTHER)[number == 2], f"{number}")
        of_record = [OTHER] if number == 2 else [NEWS, *ALIASES]
        expected |= {(topic, f"{number}") for topic in of_record}
    received = []
    for _ in expected:
        client = await listen(hub, *topics, last=last)
        received.append(heard(await client.next()))
        last = client.parser.last_id
        client.abort()
    assert len(received) == len(expected)
    assert set(received) == expected


async def test_a_live_event_stream_that_breaks_between_topics_of_a_record_loses_none(
    aliased: LiveHub,
) -> None:
    hub, topics = aliased, [NEWS, *ALIASES]
    expected = {(topic, key) for topic in topics for key in ("one", "two")}
    listening = [await listen(hub, *topics) for _ in range(len(expected))]
    for client in listening:
        list(client.parser.feed(await client.chunk()))
    for key in ("one", "two"):
        await hub.publish(NEWS, key)
    for taken, client in enumerate(listening):
        received = [heard(await client.next()) for _ in range(taken)]
        client.abort()
        again = await listen(hub, *topics, last=client.parser.last_id)
        received += [heard(await again.next()) for _ in range(len(expected) - taken)]
        assert len(set(received)) == len(expected)
        assert set(received) == expected


async def test_a_websocket_that_breaks_between_topics_of_a_record_loses_none(
    aliased: LiveHub,
) -> None:
    hub, topics = aliased, [NEWS, *ALIASES]
    expected = {(topic, key) for topic in topics for key in ("one", "two")}
    cursor = await hub.cursor(1)
    await hub.publish(NEWS, "one")
    received = []
    for _ in expected:
        async with hub.connect(*topics, cursor=cursor) as client:
            if len(received) == len(topics):
                await hub.publish(NEWS, "two")
            message = await next_message(client)
            while message["type"] == "subscribed":
                assert message["cursor"] == cursor
                message = await next_message(client)
            received.append(heard(message))
            cursor = message["cursor"]
    assert len(received) == len(expected)
    assert set(received) == expected


async def listen(hub: LiveHub, *topics: str, last: str = "") -> EventClient:
    query = urlencode([("topic", topic) for topic in topics])
    headers = {"Last_Event_ID": last} if last else {}
    return await hub.ask(f"/stream?{query}", **headers)
