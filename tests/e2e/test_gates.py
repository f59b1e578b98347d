"""Tokens, rate limits, metrics and the page, on a real hub over real sockets."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.support.command import Outcome, fanfare, knowing
from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.publisher import Publisher
from tests.support.waiting import eventually

pytestmark = pytest.mark.once("what it limits by is in memory")


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[HubProcess]:
    async with HubProcess(directory=tmp_path) as hub:
        yield hub


@pytest.fixture
async def strict_hub(tmp_path: Path) -> AsyncIterator[HubProcess]:
    """Six requests a minute of one address: one at once."""
    settings = {**LOOPBACK, "FANFARE_RATE_LIMIT_ADDRESS": "6"}
    async with HubProcess(directory=tmp_path, settings=settings) as hub:
        yield hub


@pytest.fixture
async def api(hub: HubProcess) -> AsyncIterator[HubApi]:
    async with HubApi(hub.url) as api:
        yield api


@pytest.fixture
async def strict_api(strict_hub: HubProcess) -> AsyncIterator[HubApi]:
    async with HubApi(strict_hub.url) as api:
        yield api


async def status(api: HubApi, path: str, token: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return (await api.ask("GET", path, headers=headers)).status


async def typed(hub: HubProcess, *arguments: str) -> Outcome:
    shown = await fanfare(*arguments, variables=knowing(hub))
    assert shown.code == 0, shown.err
    return shown


async def test_a_token_from_its_making_to_its_end(hub: HubProcess, api: HubApi) -> None:
    made = await typed(hub, "tokens", "create", "--account", "a", "--scope", "list")
    token = made.out.strip()
    assert re.fullmatch("[0-9a-f]{32}", token)
    path = "/api/subscriptions"
    assert await status(api, path, token) == 200
    assert await status(api, "/api/feeds", token) == 403

    [listed] = json.loads((await typed(hub, "tokens", "list", "--json")).out)
    assert listed["account"] == "a"
    assert listed["used_at"] is not None
    assert token not in str(listed)

    await hub.terminate()
    await hub.start()
    await hub.wait_ready()
    assert await status(api, path, token) == 200

    await typed(hub, "tokens", "revoke", str(listed["id"]))
    assert await status(api, path, token) == 401
    assert token not in "".join(hub.log)


@pytest.mark.parametrize("path", ["/stream?topic=https://example.org/", "/nothing"])
async def test_an_address_that_asks_too_often_is_told_to_wait(
    strict_api: HubApi, path: str
) -> None:
    assert await status(strict_api, path) == 404
    refused = await strict_api.ask("GET", path)
    assert refused.status == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 10
    assert refused.json["status"] == 429


async def test_publish_pings_are_limited_too(strict_api: HubApi) -> None:
    ping = {"hub.mode": "publish", "hub.url": "https://example.org/"}
    assert (await strict_api.ask("POST", "/hub", data=ping)).status == 204
    refused = await strict_api.ask("POST", "/hub", data=ping)
    assert refused.status == 429
    assert "Retry-After" in refused.headers


async def test_a_websocket_that_comes_too_often_is_refused_before_it_opens(
    strict_hub: HubProcess, strict_api: HubApi
) -> None:
    await status(strict_api, "/nothing")
    with pytest.raises(InvalidStatus) as caught:
        async with connect(f"ws://127.0.0.1:{strict_hub.port}/stream"):
            pass
    assert caught.value.response.status_code == 429
    assert "Retry-After" in caught.value.response.headers


async def test_a_websocket_to_the_api_is_refused_without_a_fuss(
    hub: HubProcess,
) -> None:
    with pytest.raises(InvalidStatus):
        async with connect(f"ws://127.0.0.1:{hub.port}/api/feeds"):
            pass
    await hub.terminate()
    assert "Traceback" not in "".join(hub.log)


async def scrape(api: HubApi) -> dict[str, float]:
    text = (await api.ask("GET", "/metrics")).text
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    return {name: float(value) for name, value in lines}


async def test_what_the_hub_does_shows_in_its_metrics(
    hub: HubProcess, api: HubApi
) -> None:
    async with Publisher() as publisher:
        feed = publisher.add_feed()
        number = await api.add_feed(publisher.url(feed))
        publisher.publish(feed)
        await api.fetch(number)
        await api.fetch(number)
        async with connect(f"ws://127.0.0.1:{hub.port}/stream"):

            async def is_counted() -> bool:  # the database is read once a second
                found = await scrape(api)
                connections = found['fanfare_connections{transport="websocket"}']
                return (connections, found["fanfare_feeds"]) == (1, 1)

            await eventually(is_counted)
        found = await scrape(api)
    assert found['fanfare_polls_total{outcome="fetched"}'] == 2
    assert found['fanfare_polls_total{outcome="not_modified"}'] == 1
    assert found['fanfare_entries_total{kind="baseline"}'] == 1
    assert found['fanfare_entries_total{kind="entries"}'] == 1
    assert found["fanfare_commit_seconds_count"] == 3
    assert found["fanfare_log_head"] == 2
