"""Behind each proxy of ``scripts/proxies`` a hub does all that it does without one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import httpx2
import pytest
from websockets.asyncio.client import connect

from tests.support.admin import ADMIN
from tests.support.event_stream import EventClient, request_events
from tests.support.hub_process import HubApi, HubProcess, free_port
from tests.support.operator_browser import FROM_A_PAGE, OperatorBrowser
from tests.support.publisher import Publisher
from tests.support.reverse_proxy import PROXIES, Proxy, running_proxy
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually
from tests.support.websub import WebSubScene

pytestmark = pytest.mark.once("proxies see requests, not what is stored")

CLIENT = "127.0.0.9"
"""Where a client is: not where the proxy is, which is trusted."""
AT_ONCE = 10.0
"""Seconds. A stream has nothing else to say for 25 s, so what a proxy holds back until
then is late."""
LARGE = 3 * 1024 * 1024
"""Bytes; three times what nginx takes by itself."""


@pytest.fixture(params=PROXIES, ids=[each.program for each in PROXIES])
def proxy(request: pytest.FixtureRequest) -> Proxy:
    found: Proxy = request.param
    if not found.is_installed:
        pytest.skip(f"{found.program} is not installed: apt-get install it")
    return found


@asynccontextmanager
async def proxied(proxy: Proxy, folder: Path) -> AsyncIterator[tuple[WebSubScene, int]]:
    """A hub whose public URL is its proxy's, with that one's port."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        "FANFARE_ALLOW_NETWORKS": "127.0.0.0/8",
        "FANFARE_PUBLIC_URL": url,
        "FANFARE_TRUSTED_PROXIES": "127.0.0.1/32",
    }
    hub = HubProcess(directory=folder, settings=settings)
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        running_proxy(proxy, folder, port, hub.port),
        hub,
        HubApi(url) as api,
    ):
        await eventually(lambda: is_there(api), seconds=10.0)
        yield WebSubScene(hub, api, publisher, subscribers), port


async def is_there(api: HubApi) -> bool:
    try:
        return (await api.ask("GET", "/readyz")).status == 200
    except aiohttp.ClientError:
        return False


async def test_webhooks_streams_and_long_polls_come_through(
    proxy: Proxy, tmp_path: Path
) -> None:
    async with proxied(proxy, tmp_path) as (scene, port):
        topic, callback = scene.topic(names_hub=False), scene.callback()
        await scene.api.add_feed(topic.url)
        await scene.subscribe(topic, callback, secret="s3cret")
        token = await scene.api.create_token("me", "subscribe", "retrieve")
        login = {"Authorization": f"Bearer {token}"}
        target = f"/stream?topic={quote(topic.url, safe='')}"
        events = await request_events(port, target, Accept="text/event-stream")
        async with (
            closing(events),
            connect(f"ws://127.0.0.1:{port}{target}") as socket,
            asyncio.TaskGroup() as tasks,
            asyncio.timeout(AT_ONCE),
        ):
            await events.next("subscribed")
            assert json.loads(await socket.recv())["type"] == "subscribed"
            mine = {"hub.topic": topic.url, "hub.callback": scene.callback().url}
            polling = tasks.create_task(polled(scene, mine, login))

            await scene.publish(topic)

            assert titles((await events.next())["body"]) == ["Entry 2"]
            assert titles(json.loads(await socket.recv())["body"]) == ["Entry 2"]
            assert titles(await polling) == ["Entry 2"]
            await eventually(lambda: bool(callback.accepted))
        assert b"Entry 2" in callback.bodies[0]
        assert callback.accepted[0].hub == f"http://127.0.0.1:{port}/hub"


@asynccontextmanager
async def closing(events: EventClient) -> AsyncIterator[None]:
    try:
        yield
    finally:
        events.abort()


async def polled(
    scene: WebSubScene, mine: dict[str, str], login: dict[str, str]
) -> Any:
    """The answer to a long poll of a topic whose first entry is known."""
    subscribing = {"hub.mode": "subscribe", **mine}
    done = await scene.api.ask("GET", "/", params=subscribing, headers=login)
    assert done.status == 204
    asking = {
        **{"hub.mode": "retrieve", "wait": "poll", "format": "json"},
        **{"after": "tag:publisher.example,2026:1", **mine},
    }
    return (await scene.api.ask("GET", "/", params=asking, headers=login)).json


def titles(document: Any) -> list[str]:
    return [item["title"] for item in document["items"]]


async def test_large_lists_and_the_clients_address_come_through(
    proxy: Proxy, tmp_path: Path
) -> None:
    async with proxied(proxy, tmp_path) as (scene, port):
        url = f"http://127.0.0.1:{port}"
        transport = httpx2.AsyncHTTPTransport(local_address=CLIENT)
        async with httpx2.AsyncClient(
            base_url=url, transport=transport, timeout=60
        ) as client:
            browser = OperatorBrowser(client)
            assert (await browser.log_in()).status_code == 303
            listed = '<outline type="rss" text="A feed" xmlUrl="http://127.0.0.1:9/"/>'
            document = f"<opml><head/><body>{listed}{' ' * LARGE}</body></opml>"
            given = {
                "form_token": (None, await browser.form_token()),
                "list": ("feeds.opml", document),
            }
            sent = await client.post("/admin/imports", files=given, headers=FROM_A_PAGE)
            assert sent.status_code == 303

            async def is_checked() -> bool:
                checked = await browser.open(sent.headers["location"])
                return "http://127.0.0.1:9/" in checked.text

            await eventually(is_checked)

            made = {"account": "me", "scopes": ["list"]}
            lying = {**ADMIN, "X-Forwarded-For": "203.0.113.9"}
            answer = await client.post("/api/tokens", json=made, headers=lying)
            assert answer.status_code == 201
        assert await noted(scene) == [CLIENT]


async def noted(scene: WebSubScene) -> list[str]:
    """Where tokens were made from, once that is in the audit trail."""
    path = "/api/audit?operation=create_token"
    records: list[dict[str, str]] = []

    async def is_written() -> bool:
        records[:] = (await scene.api.request("GET", path))["records"]
        return bool(records)

    await eventually(is_written)
    return [each["address"] for each in records]
