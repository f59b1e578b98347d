"""Every door by which a topic's entries can be read or learnt of, and who asks there.

A private topic opens to accounts that subscribe to it, what takes credentials to nobody
but the operator; to all others both look as if they were not there.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2
import orjson
import pytest

from hub.runtime.clock import SystemClock
from hub.search.index_follower import SearchIndex
from hub.services.feed_requests import AddFeed, EditFeed
from hub.services.token_authentication import CreateToken
from storage.records import AccountId, Credentials, TokenScope
from tests.support.admin import ADMIN
from tests.support.live_hub import LiveHub, live_hub, next_message

SECRET_WORD = "platypus"
UNKNOWN = "https://host.example/u0/feed"
OPEN = "https://host.example/p0/feed"
"""Private, and the account subscribes to it."""
CLOSED = {
    "private": "https://host.example/p1/feed",
    "basic": "https://host.example/c1/feed",
    "in-url": "https://host.example/c2/feed",
    "header": "https://host.example/c3/feed",
    "closed-later": "https://host.example/c4/feed",
    "as-a-page": "http://hub.example/topics/2.json",
    "closed-as-a-page": "http://hub.example/topics/3.atom",
}
"""None of them is the account's; ``closed-later`` was, before it took credentials."""
LOGIN = Credentials(username="ann", password="pass")
RIGHTS = frozenset(TokenScope) - {TokenScope.ADMIN}


@dataclass
class Visitor:
    """Somebody with a token of an account that has every right but the operator's."""

    hub: LiveHub
    account: AccountId
    token: str
    http: httpx2.AsyncClient

    async def ask(self, method: str, path: str, **headers: str) -> str:
        """Status, headers and body."""
        header = {"Authorization": f"Bearer {self.token}", **headers}
        answer = await self.http.request(method, path, headers=header)
        return _shown(answer)

    async def mode(self, mode: str, topic: str, more: str = "", **headers: str) -> str:
        query = f"/?hub.mode={mode}&hub.topic={quote(topic, safe='')}{more}"
        return await self.ask("POST", query, **headers)

    def stream(self, *topics: str, **query: str) -> object:
        login = base64.b64encode(f"me:{self.token}".encode()).decode()
        return self.hub.connect(*topics, authorization=login, **query)


def _shown(answer: httpx2.Response) -> str:
    kept = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("date", "location", "content-length", "etag", "last-modified")
    }
    shown = f"{answer.status_code} {kept} {answer.text}"
    return re.sub(r"(?<=/hub/subscriptions/)[\w-]+", "TOKEN", shown)


@pytest.fixture
async def visitor(tmp_path: Path) -> AsyncIterator[Visitor]:
    async with live_hub(tmp_path) as live:
        made = await live.hub.services.tokens.create(
            CreateToken(account="me", scopes=RIGHTS)
        )
        account = made.token.account.id
        await live.add_feed(OPEN, private=True)
        await live.add_feed(CLOSED["private"], private=True)
        feeds = live.hub.services.feeds
        for name, more in (
            ("basic", {"credentials": LOGIN}),
            ("header", {"credentials": Credentials(headers={"X-Key": "k"})}),
        ):
            added = await feeds.add(AddFeed(url=CLOSED[name], wait=0, **more))
            live.feeds[CLOSED[name]] = added.feed.id
        in_url = CLOSED["in-url"].replace("//", "//ann:pass@")
        added = await feeds.add(AddFeed(url=in_url, wait=0))
        live.feeds[CLOSED["in-url"]] = added.feed.id
        await live.add_feed(CLOSED["closed-later"])
        await live.subscribe(OPEN, account)
        await live.subscribe(CLOSED["closed-later"], account)
        later = live.feeds[CLOSED["closed-later"]]
        await feeds.edit(later, EditFeed(credentials=LOGIN))
        for topic in list(live.feeds):
            await live.publish(topic, SECRET_WORD)
        await SearchIndex(live.hub.storage, SystemClock()).catch_up()
        base = f"http://127.0.0.1:{live.port}"
        async with httpx2.AsyncClient(base_url=base, timeout=20) as http:
            yield Visitor(live, account, made.secret, http)


Door = Callable[[Visitor, str], Awaitable[str]]


async def _told(client: object, *said: bytes) -> str:
    """What a websocket is told first, and next if it is let in."""
    async with client as opened:
        for each in said:
            await opened.send(each.decode())
        first = await next_message(opened)
        if first["type"] != "subscribed":
            return orjson.dumps(first).decode()
        return orjson.dumps([first, await next_message(opened)]).decode()


async def at_connection(visitor: Visitor, topic: str) -> str:
    begin = await visitor.hub.cursor(0)
    return await _told(visitor.stream(topic, cursor=begin))


async def by_message(visitor: Visitor, topic: str) -> str:
    begin = await visitor.hub.cursor(0)
    asked = {"type": "subscribe", "id": 1, "topic": topic, "cursor": begin}
    return await _told(visitor.stream(), orjson.dumps(asked))


async def by_events(visitor: Visitor, topic: str) -> str:
    begin = await visitor.hub.cursor(0)
    target = f"/stream?topic={quote(topic, safe='')}&cursor={begin}"
    header = {"Authorization": f"Bearer {visitor.token}"}
    client = await visitor.hub.ask(target, **header)
    if client.status == 200:
        return f"200 {await client.next()}"
    client.headers.pop("date")
    client.headers.pop("content-length")
    length = client.headers.get("content-length")
    return f"{client.status} {client.headers} {length}"


def _reading(more: str, **headers: str) -> Door:
    async def door(visitor: Visitor, topic: str) -> str:
        shown = ""
        query = f"/?hub.mode=retrieve&hub.topic={quote(topic, safe='')}{more}"
        header = {"Authorization": f"Bearer {visitor.token}", **headers}
        with suppress(httpx2.ReadTimeout):  # of a stream, that goes on
            asked = visitor.http.stream("GET", query, headers=header, timeout=2)
            async with asked as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    return _shown(answer)
                async for part in answer.aiter_text():
                    shown += part
                    if SECRET_WORD in shown:
                        break
        return shown

    return door


async def by_callback(visitor: Visitor, topic: str) -> str:
    url = quote(topic, safe="")
    return await visitor.ask("GET", f"/?hub.mode=retrieve&hub.callback[feed.url]={url}")


async def by_replay(visitor: Visitor, topic: str) -> str:
    return await visitor.mode(
        "replay", topic, "&hub.callback=https://you.example/callback"
    )


async def by_list(visitor: Visitor, topic: str) -> str:
    url = quote(topic, safe="")
    return await visitor.ask(
        "GET", f"/?hub.mode=list&detailed=true&search[feed.url]={url}"
    )


async def by_api(visitor: Visitor, topic: str) -> str:
    return await visitor.ask("GET", f"/api/subscriptions?topic={quote(topic, safe='')}")


async def by_feeds(visitor: Visitor, topic: str) -> str:
    return await visitor.ask("GET", f"/api/feeds?url={quote(topic, safe='')}")


async def by_ping(visitor: Visitor, topic: str) -> str:
    return await visitor.mode("publish", topic)


async def by_open_ping(visitor: Visitor, topic: str) -> str:
    form = {"hub.mode": "publish", "hub.url": topic}
    return _shown(await visitor.http.post("/hub", data=form))


async def by_open_subscription(visitor: Visitor, topic: str) -> str:
    form = {
        "hub.mode": "subscribe",
        "hub.topic": topic,
        "hub.callback": "https://you.example/hook",
    }
    return _shown(await visitor.http.post("/hub", data=form))


READING: dict[str, Door] = {
    "websocket, at connection": at_connection,
    "websocket, by message": by_message,
    "events": by_events,
    "retrieve": _reading(""),
    "retrieve as JSON": _reading("&format=json"),
    "retrieve by JSONP": _reading("&format=json&callback=f"),
    "wait=poll": _reading("&wait=poll"),
    "wait=stream": _reading("&wait=stream"),
    "events at /": _reading("", Accept="text/event-stream"),
    "retrieve by search": by_callback,
}
ASKING: dict[str, Door] = {
    "replay": by_replay,
    "list": by_list,
    "subscriptions of /api": by_api,
    "feeds of /api": by_feeds,
    "ping": by_ping,
    "open ping": by_open_ping,
    "open subscription": by_open_subscription,
}


def _without(topic: str, said: str) -> str:
    for spelled in (topic, quote(topic, safe="")):
        said = said.replace(spelled, "TOPIC")
    return said


@pytest.mark.parametrize("door", READING)
async def test_a_private_topic_opens_to_who_subscribes_to_it(
    visitor: Visitor, door: str
) -> None:
    assert SECRET_WORD in await READING[door](visitor, OPEN)


@pytest.mark.parametrize("door", [*READING, *ASKING])
async def test_what_may_not_be_read_looks_as_if_it_were_not_there(
    visitor: Visitor, door: str
) -> None:
    ask = {**READING, **ASKING}[door]
    unknown = _without(UNKNOWN, await ask(visitor, UNKNOWN))
    assert SECRET_WORD not in unknown
    of_pages = _without(
        "http://hub.example/topics/99.json",
        await ask(visitor, "http://hub.example/topics/99.json"),
    )
    for name, topic in CLOSED.items():
        expected = of_pages if "/topics/" in topic else unknown
        found = _without(topic, await ask(visitor, topic))
        assert (name, found) == (name, expected)


@pytest.mark.parametrize("suffix", ["atom", "json"])
async def test_the_pages_of_topics_show_what_is_public_alone(
    visitor: Visitor, suffix: str
) -> None:
    unknown = await visitor.ask("GET", f"/topics/99.{suffix}")
    for feed_id in visitor.hub.feeds.values():
        shown = await visitor.ask("GET", f"/topics/{feed_id}.{suffix}")
        assert shown.replace(f"topic {feed_id}", "topic 99") == unknown


async def test_search_finds_what_the_account_may_read(visitor: Visitor) -> None:
    path = f"/?hub.mode=search&query={SECRET_WORD}"
    found = await visitor.ask("GET", f"{path}&format=json")
    assert found.count(f'"title":"{SECRET_WORD}"') == 1
    assert "p0/feed" in found
    everything = await visitor.ask("GET", f"{path}&format=json&count=50", **ADMIN)
    assert everything.count(f'"title":"{SECRET_WORD}"') == len(visitor.hub.feeds)


async def test_to_subscribe_gives_what_anybody_gets_of_it(visitor: Visitor) -> None:
    """204 whether it was there or not; and then nothing that took credentials."""
    callback = "&hub.callback=https://you.example/new"
    told = {await visitor.mode("subscribe", UNKNOWN, callback)}
    for name, topic in CLOSED.items():
        if "page" in name:
            continue
        told.add(await visitor.mode("subscribe", topic, callback))
        read = await READING["retrieve"](visitor, topic)
        assert (SECRET_WORD in read) == (name == "private")
    assert len(told) == 1


async def test_the_operator_reads_all_of_them(visitor: Visitor) -> None:
    for topic in visitor.hub.feeds:
        assert SECRET_WORD in await visitor.mode("retrieve", topic, **ADMIN)
