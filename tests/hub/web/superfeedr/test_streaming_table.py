"""Every way to wait for news of every kind of selection, at every path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import orjson
import pytest

from storage.records import FeedId
from tests.support.event_stream import EventClient
from tests.support.golden import find, read_xml
from tests.support.library import CALLBACK, Library, id_of, topic_of
from tests.support.live_hub import LiveHub, live_hub
from tests.support.waiting import eventually

PATHS = ("/", "/hubbub", "/stream")
TRACK = "http://track.superfeedr.com/?query=laurel"
SELECTIONS: Mapping[str, Mapping[str, str]] = {
    "a topic": {"hub.topic": topic_of("news")},
    "a callback": {"hub.callback": CALLBACK},
    "a search of callbacks": {"hub.callback[endpoint][hostname]": "you.example"},
    "a search of feeds": {"hub.callback[feed][url]": topic_of("news")},
    "a track query": {"hub.topic": TRACK},
}


@dataclass(frozen=True, slots=True)
class Way:
    """``asked``: parameters beside those of the selection."""

    asked: Mapping[str, str]
    content_type: str
    is_atom: bool = False
    is_sse: bool = False


JSON, ATOM = "application/json; charset=utf-8", "application/atom+xml"
STREAMS = {
    "lines of JSON": Way({"wait": "stream", "format": "json"}, JSON),
    "documents of Atom": Way({"wait": "stream"}, ATOM, is_atom=True),
    "events": Way({}, "text/event-stream; charset=utf-8", is_sse=True),
}
POLLS = {
    "a poll in JSON": Way({"wait": "poll", "format": "json"}, JSON),
    "a poll in Atom": Way({"wait": "poll"}, ATOM, is_atom=True),
}


@dataclass
class Shelf:
    """A feed of the account with an entry, which a track query has found."""

    hub: LiveHub
    library: Library
    query: FeedId

    async def publish(self, title: str) -> None:
        await self.library.publish("news", title, minutes=1, matching=[self.query])

    async def ask(
        self, path: str, selection: str, way: Way, **more: str
    ) -> EventClient:
        given = {
            "hub.mode": "retrieve",
            "authorization": self.library.credential,
            **SELECTIONS[selection],
            **way.asked,
            **more,
        }
        accept = "text/event-stream" if way.is_sse else "*/*"
        return await self.hub.ask(f"{path}?{urlencode(given)}", Accept=accept)


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with live_hub(tmp_path) as hub:
        library = await Library.open(hub.hub)
        await library.add_feed("news")
        await library.subscribe("news")
        query = await hub.hub.tracks.ensure(TRACK)
        assert query is not None
        await library.publish("news", "old", matching=[query.id])
        yield Shelf(hub, library, query.id)


def titles(document: bytes, way: Way) -> list[str | None]:
    if not way.is_atom:
        return [item["title"] for item in orjson.loads(document)["items"]]
    found = find(read_xml(document), "atom:entry/atom:title")
    return [each.text for each in found]


async def next_titles(client: EventClient, way: Way) -> list[str | None]:
    if way.is_sse:
        return [item["title"] for item in (await client.next())["items"]]
    async with asyncio.timeout(60):
        while not (document := await client.chunk()).strip():
            pass
    assert document.endswith(b"\n")
    return titles(document, way)


@pytest.mark.parametrize("way", STREAMS)
@pytest.mark.parametrize("selection", SELECTIONS)
async def test_a_stream_has_what_is_stored_and_then_each_news(
    shelf: Shelf, selection: str, way: str
) -> None:
    chosen = STREAMS[way]
    clients = [await shelf.ask(path, selection, chosen) for path in PATHS]
    for client in clients:
        assert client.status == 200
        assert client.headers["content-type"] == chosen.content_type
        assert client.headers["access-control-allow-origin"] == "*"
        assert await next_titles(client, chosen) == ["old"]

    for title in ("one", "two"):
        await shelf.publish(title)
        for client in clients:
            assert await next_titles(client, chosen) == [title]


@pytest.mark.parametrize("way", POLLS)
@pytest.mark.parametrize("selection", SELECTIONS)
async def test_a_poll_waits_for_what_comes_after_the_last_entry(
    shelf: Shelf, selection: str, way: str
) -> None:
    chosen = POLLS[way]
    at_once = await shelf.ask("/", selection, chosen)
    assert titles(await at_once.body(), chosen) == ["old"]
    last = id_of("old")
    polls = [
        asyncio.create_task(shelf.ask(path, selection, chosen, after=last))
        for path in PATHS
    ]
    audience = shelf.hub.hub.services.live.stream.registry
    await eventually(lambda: len(audience) == len(PATHS))

    await shelf.publish("one")

    for client in await asyncio.gather(*polls):
        assert client.status == 200
        assert client.headers["content-type"] == chosen.content_type
        assert titles(await client.body(), chosen) == ["one"]
