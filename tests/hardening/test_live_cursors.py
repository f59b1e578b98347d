"""Cursors that clients resume with, at each door: right, expired, foreign and absurd.

Whoever may have missed something is told `reset`, and what comes from then on; nobody
learns from a cursor what he may not listen to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect

from tests.support.event_stream import EventClient
from tests.support.library import Library, topic_of
from tests.support.live_hub import LiveHub, live_hub, next_message

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEWS, UNKNOWN = topic_of("news"), topic_of("unknown")
EVENTS = {"Accept": "text/event-stream"}
Told = dict[str, Any]


class Scene:
    """A private feed whose first records are trimmed, and who may listen to it."""

    def __init__(self, hub: LiveHub, library: Library) -> None:
        self.hub = hub
        self.library = library
        self.numbers = count()

    async def publish(self) -> str:
        """The title of what came."""
        number = next(self.numbers)
        await self.library.publish("news", f"entry {number}", minutes=number)
        return f"entry {number}"

    async def cursor(self, name: str) -> str:
        head = await self.hub.hub.storage.log.end()
        return {
            "the last": str(head),
            "the last, in turn": f"{head}~{'f' * 16}",
            "expired": f"{head.epoch}-1",
            "foreign": f"0123456789-{head.position}",
            "of the future": f"{head.epoch}-{head.position + 1}",
            "of the far future": f"{head.epoch}-{10**18 - 1}",
            "garbage": "garbage",
            "empty parts": "-",
            "of other digits": f"{head.epoch}-\N{ARABIC-INDIC DIGIT ONE}",
            "a statement": "' OR 1=1 --",
            "long": f"{head.epoch}-{'1' * 5_000}",
        }[name]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    async with live_hub(tmp_path_factory.mktemp("cursors")) as hub:
        library = await Library.open(hub.hub)
        await library.add_feed("news", private=True)
        scene = Scene(hub, library)
        for _ in range(5):
            await scene.publish()
        await hub.trim(keep=2)
        await library.subscribe("news")
        yield scene


# --- doors ----------------------------------------------------------------------------


async def by_websocket(scene: Scene, cursor: str) -> list[Told]:
    credential = scene.library.credential
    url = scene.hub.url(NEWS, cursor=cursor, authorization=credential)
    async with connect(url) as client:
        return await _told(scene, client)


async def by_message(scene: Scene, cursor: str) -> list[Told]:
    async with connect(scene.hub.url(authorization=scene.library.credential)) as client:
        asked = {"type": "subscribe", "topic": NEWS, "cursor": cursor}
        await client.send(orjson.dumps(asked).decode())
        return await _told(scene, client)


async def _told(scene: Scene, client: ClientConnection) -> list[Told]:
    """An error, or all up to what is published once it is subscribed, but for that."""
    told = [await next_message(client)]
    if told[0]["type"] == "error":
        return told
    assert told.pop()["type"] == "subscribed"
    title = await scene.publish()
    while not any(title in str(each) for each in told):
        told.append(await next_message(client))
    return told


async def _heard(scene: Scene, client: EventClient) -> list[Told]:
    if client.status != 200:
        return [{**orjson.loads(await client.body()), "type": "error"}]
    told: list[Told] = []

    async def hear() -> None:
        events = client.parser.feed(await client.chunk())
        told.extend({"type": it.type, **orjson.loads(it.data)} for it in events)

    while not told:
        await hear()
    title = await scene.publish()
    while not any(title in str(each) for each in told):
        await hear()
    return [each for each in told if each["type"] != "subscribed"]


async def by_parameter(scene: Scene, cursor: str) -> list[Told]:
    query = {"topic": NEWS, "cursor": cursor}
    query["authorization"] = scene.library.credential
    client = await scene.hub.ask(f"/stream?{urlencode(query)}", **EVENTS)
    return await _heard(scene, client)


async def by_header(scene: Scene, cursor: str) -> list[Told]:
    query = {"topic": NEWS, "authorization": scene.library.credential}
    headers = {**EVENTS, "Last_Event_ID": cursor}
    client = await scene.hub.ask(f"/stream?{urlencode(query)}", **headers)
    return await _heard(scene, client)


async def by_superfeedr(scene: Scene, cursor: str) -> list[Told]:
    query = {"hub.mode": "retrieve", "hub.topic": NEWS}
    query["authorization"] = scene.library.credential
    headers = {**EVENTS, "Last_Event_ID": cursor}
    client = await scene.hub.ask(f"/?{urlencode(query)}", **headers)
    return await _heard(scene, client)


DOORS: dict[str, Callable[[Scene, str], Awaitable[list[Told]]]] = {
    "websocket": by_websocket,
    "message": by_message,
    "event stream": by_parameter,
    "Last-Event-ID": by_header,
    "Last-Event-ID of Superfeedr": by_superfeedr,
}
ASKED = ("websocket", "message", "event stream")
"""Where a cursor is somebody's request; a browser sends a Last-Event-ID by itself."""
GIVEN_OUT = ("the last", "the last, in turn")
NEVER_GIVEN_OUT = ("expired", "foreign", "of the future", "of the far future")
UNREADABLE = ("garbage", "empty parts", "of other digits", "a statement", "long")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", GIVEN_OUT)
async def test_who_has_everything_gets_what_comes_and_no_more(
    scene: Scene, door: str, name: str
) -> None:
    told = await DOORS[door](scene, await scene.cursor(name))
    assert len(told) == 1


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", NEVER_GIVEN_OUT)
async def test_who_may_have_missed_something_is_told_and_goes_on(
    scene: Scene, door: str, name: str
) -> None:
    reset, *told = await DOORS[door](scene, await scene.cursor(name))
    assert (reset["type"], reset["topic"]) == ("reset", NEWS)
    assert told
    assert not any(each["type"] == "reset" for each in told)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", UNREADABLE)
async def test_what_is_no_cursor_is_refused_or_a_reset(
    scene: Scene, door: str, name: str
) -> None:
    first, *told = await DOORS[door](scene, await scene.cursor(name))
    if door in ASKED:
        assert (first["type"], first["field"], told) == ("error", "cursor", [])
    else:
        assert first["type"] == "reset"
        assert told


@pytest.mark.parametrize("name", [*GIVEN_OUT, *NEVER_GIVEN_OUT, *UNREADABLE])
async def test_no_cursor_tells_a_stranger_that_a_topic_is_there(
    scene: Scene, name: str
) -> None:
    cursor = await scene.cursor(name)
    answers = []
    for topic in (NEWS, UNKNOWN):
        async with connect(scene.hub.url(topic, cursor=cursor)) as client:
            told = await next_message(client)
        said = [f"{told}"]
        for headers in (EVENTS, {**EVENTS, "Last_Event_ID": cursor}):
            query = urlencode({"topic": topic, "cursor": cursor})
            asked = await scene.hub.ask(f"/stream?{query}", **headers)
            said.append(f"{asked.status} {(await asked.body()).decode()}")
        answers.append([each.replace(topic, "TOPIC") for each in said])
    assert answers[0] == answers[1]
