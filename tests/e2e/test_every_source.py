"""Whatever a source is, what is added, edited and removed there reaches each kind of
subscriber once, and nothing else does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

import aiohttp
from lxml.etree import fromstring
from websockets.asyncio.client import connect

from tests.support.admin import ADMIN
from tests.support.event_stream import EventParser
from tests.support.hub_process import HubApi, HubProcess
from tests.support.one_blog import FORMATS
from tests.support.openfeeder import FeederSite
from tests.support.publisher import Publisher
from tests.support.scp_site import ScpSite
from tests.support.subscribers import Subscriber, Subscribers
from tests.support.waiting import eventually

NAMESPACES = {
    "a": "http://www.w3.org/2005/Atom",
    "at": "http://purl.org/atompub/tombstones/1.0",
}


@dataclass(frozen=True)
class Step:
    """What the owner of a source does, and what subscribers are told of it: titles, or
    ids of what was deleted. ``document`` is what is sent as it is, if anything is."""

    do: Callable[[], object]
    told: Sequence[str]
    is_sent: bool = True  # to who wants the document as it is


@dataclass(frozen=True)
class Source:
    topic: str
    steps: Sequence[Step]
    there: Sequence[str]  # titles in the end
    document: Callable[[], bytes] | None = None  # as its server answers


@dataclass
class Followers:
    """One of each kind. Lists of titles, and of ids of what was deleted."""

    as_is: Subscriber
    by_json: Subscriber
    by_atom: Subscriber
    live: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    ready: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    @property
    def all(self) -> list[list[str]]:
        return [
            self.by_json.titles,
            _titles_of_atom(self.by_atom.bodies),
            self.live,
            self.events,
        ]

    def have(self, told: int, sent: int) -> bool:
        is_told = all(len(each) >= told for each in self.all)
        return is_told and len(self.as_is.bodies) >= sent

    async def hold_websocket(self, hub: HubProcess, topic: str) -> None:
        url = f"{hub.url.replace('http', 'ws')}/stream?topic={quote(topic, safe='')}"
        async with connect(f"{url}&updates=all", additional_headers=ADMIN) as client:
            async for text in client:
                message = json.loads(text)
                if message["type"] == "subscribed":
                    self.ready.release()
                self._take(message, self.live)

    async def hold_event_stream(self, hub: HubProcess, topic: str) -> None:
        url = f"{hub.url}/stream?topic={quote(topic, safe='')}&updates=all"
        headers = {**ADMIN, "Accept": "text/event-stream"}
        parser = EventParser()
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as client,
            client.get(url, headers=headers) as answer,
        ):
            self.ready.release()
            async for piece in answer.content.iter_any():
                for event in parser.feed(piece):
                    self._take(json.loads(event.data), self.events)

    def _take(self, message: dict[str, object], titles: list[str]) -> None:
        body = message.get("body")
        for item in body.get("items", []) if isinstance(body, dict) else ():
            is_gone = item.get("verb") == "delete"
            titles.append(item["id"] if is_gone else item["title"])


def _titles_of_atom(bodies: Sequence[bytes]) -> list[str]:
    return [
        str(found)
        for body in bodies
        for found in fromstring(body).xpath(
            "a:entry/a:title/text() | at:deleted-entry/@ref", namespaces=NAMESPACES
        )
    ]


@asynccontextmanager
async def followers_of(
    hub: HubProcess, api: HubApi, topic: str
) -> AsyncIterator[Followers]:
    async with Subscribers() as subscribers:
        who = Followers(subscribers.add(), subscribers.add(), subscribers.add())
        for told, format in (
            (who.as_is, "as-is"),
            (who.by_json, "json"),
            (who.by_atom, "atom"),
        ):
            updates = {} if format == "as-is" else {"updates": "all"}
            await api.subscribe(
                callback=told.url, topic=topic, format=format, **updates
            )
        holding = [
            asyncio.create_task(who.hold_websocket(hub, topic)),
            asyncio.create_task(who.hold_event_stream(hub, topic)),
        ]
        for _ in holding:
            await who.ready.acquire()
        yield who
        for each in holding:
            each.cancel()
        await asyncio.gather(*holding, return_exceptions=True)


def a_document(site: Publisher, name: str, gone: Sequence[str]) -> Source:
    """A feed in one of the formats. Absence is a deletion only where ``gone`` says."""
    path, write = f"/{name.replace(' ', '-')}", FORMATS[name]

    def put(names: str, edited: bool = True) -> Callable[[], object]:
        body = write(names)
        about_a = b"All about a", b"Quite another text"
        return lambda: site.put(path, body.replace(*about_a) if edited else body)

    put("abc", False)()
    return Source(
        topic=site.url(path),
        steps=(
            Step(put("dabc", False), ["On d"]),
            Step(put("dabc"), ["On a"]),
            Step(put("dac"), gone, is_sent=False),
            Step(put("edac"), ["On e"]),
        ),
        there=[f"On {name}" for name in ("edac" if gone else "edabc")],
        document=lambda: site.documents[path].body,
    )


def an_openfeeder_site(publisher: Publisher) -> Source:
    site = FeederSite()
    site.appear(publisher)
    for name in "abc":
        site.add(f"/{name}")
    return Source(
        topic=site.front,
        steps=(
            Step(lambda: site.add("/d"), ["On /d"]),
            Step(lambda: site.edit("/a", "Quite another text."), ["On /a"]),
            Step(lambda: site.remove("/b"), [f"{site.base}/b"], is_sent=False),
            Step(lambda: site.add("/e"), ["On /e"]),
        ),
        there=["On /e", "On /d", "On /a", "On /c"],
    )


def an_scp_site(site: Publisher) -> Source:
    scp = ScpSite(site)
    for name in "abc":
        scp.put(name, f"On {name}")
    scp.snapshot()

    def remove() -> None:
        scp.remove("b")
        scp.forget()
        scp.snapshot()

    return Source(
        topic=scp.url,
        steps=(
            Step(lambda: scp.delta(scp.put("d", "On d")), ["On d"]),
            Step(lambda: scp.delta(scp.put("a", "On a, again")), ["On a, again"]),
            Step(remove, ["https://site.example/b"], is_sent=False),
            Step(lambda: scp.delta(scp.put("e", "On e")), ["On e"]),
        ),
        there=["On e", "On a, again", "On d", "On c"],
    )


def a_part(site: Publisher, path: str, write: Callable[[int, int], str], path_of: str):  # type: ignore[no-untyped-def]
    """Of something that is no feed: each state of it is an entry."""
    type = "text/html" if path.endswith("html") else "application/json"

    def put(part: int, rest: int) -> Callable[[], object]:
        return lambda: site.put(path, write(part, rest), type)

    put(1, 1)()
    title = "Page" if type == "text/html" else ""
    return Source(
        topic=site.url(path) + path_of,
        steps=(
            Step(put(2, 1), [title or "2"]),
            Step(put(2, 2), [], is_sent=False),  # something else has changed
            Step(put(3, 2), [title or "3"]),
        ),
        there=[title] * 3 if title else ["3", "2", "1"],
    )


async def follow(hub: HubProcess, api: HubApi, source: Source) -> Followers:
    feed_id = await api.add_feed(source.topic)
    async with followers_of(hub, api, source.topic) as who:
        await api.fetch(feed_id)  # so that there is a document to be sent as it is
        told: list[str] = []
        sent = 0
        for step in source.steps:
            step.do()
            await api.fetch(feed_id)
            told += step.told
            sent += step.is_sent
            await eventually(partial(who.have, len(told), sent))
        assert who.all == [told] * 4, source.topic
        assert len(who.as_is.bodies) == sent, source.topic
        if source.document is not None:
            assert who.as_is.bodies[-1] == source.document()
    assert (await api.feed(feed_id))["error"] == ""
    asked = {"hub.mode": "retrieve", "hub.topic": source.topic, "format": "json"}
    query = "&".join(f"{name}={quote(text, safe='')}" for name, text in asked.items())
    retrieved = await api.request("GET", f"/?{query}")
    titles = [item["title"] for item in retrieved["items"]]
    assert sorted(titles) == sorted(source.there), source.topic
    return who


async def test_what_changes_in_any_source_reaches_each_kind_of_subscriber_once(
    tmp_path: Path,
) -> None:
    async with (
        Publisher() as site,
        HubProcess(directory=tmp_path) as hub,
        HubApi(hub.url) as api,
    ):
        gone = {"creator feed.json": ["https://mara.example/b"]}
        sources = [
            *(a_document(site, name, gone.get(name, [])) for name in FORMATS),
            an_openfeeder_site(site),
            an_scp_site(site),
            a_part(site, "/x.json", '{{"a": {}, "b": {}}}'.format, "#%24.a"),
            a_part(
                site,
                "/page.html",
                "<!doctype html><title>Page</title><p class=n>{}<p>{}".format,
                "#.n",
            ),
        ]
        for source in sources:
            await follow(hub, api, source)
