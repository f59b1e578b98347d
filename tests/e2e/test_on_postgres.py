"""The hub on a PostgreSQL server: all that is owed is delivered, whoever dies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.support.command import Outcome, fanfare, knowing
from tests.support.crash_campaign import Campaign
from tests.support.hub_process import LOOPBACK, HubProcess
from tests.support.oracle import Evidence, missing
from tests.support.postgres_server import DurableServer, durable_server
from tests.support.publisher import PublishedFeed
from tests.support.stage import Stage, open_stage
from tests.support.waiting import eventually

pytestmark = pytest.mark.once("it is on PostgreSQL anyway")


@pytest.fixture(scope="module")
def server() -> Iterator[DurableServer]:
    with durable_server() as running:
        yield running


@pytest.fixture
def settings(server: DurableServer, tmp_path: Path) -> Iterator[Mapping[str, str]]:
    with server.database() as location:
        yield {
            **LOOPBACK,
            "FANFARE_DATABASE": location,
            "FANFARE_STATE_DIR": str(tmp_path / "state"),
        }


@pytest.fixture
async def stage(tmp_path: Path, settings: Mapping[str, str]) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path, settings) as opened:
        yield opened


async def publish(stage: Stage, feed_id: int, feed: PublishedFeed) -> None:
    """Until the hub has fetched it: its database may be away for a while."""
    stage.publisher.publish(feed)

    async def is_fetched() -> bool:
        try:
            await stage.api.fetch(feed_id)
        except aiohttp.ClientResponseError:
            return False
        return True

    await eventually(is_fetched)


async def notifications(client: ClientConnection, count: int) -> list[Any]:
    """The next so many. Heartbeats come between if the server was away for long."""
    told: list[Any] = []
    async with asyncio.timeout(60):
        while len(told) < count:
            message = json.loads(await client.recv())
            if message["type"] == "notification":
                told.append(message)
    return told


def has_all(evidence: Evidence) -> bool:
    return not any(missing(each, evidence) for each in evidence.subscribers)


async def test_no_entry_is_lost_when_the_server_fails_and_the_hub_is_killed(
    stage: Stage, server: DurableServer
) -> None:
    feed_id, feed = await stage.add_feed()
    formats = ("json", "atom", "as-is")
    subscribers = [await stage.subscribe(each, feed, format=each) for each in formats]
    topic = quote(stage.publisher.url(feed), safe="")
    stream = f"ws://127.0.0.1:{stage.hub.port}/stream?topic={topic}"
    async with connect(stream) as client:
        assert json.loads(await client.recv())["type"] == "subscribed"
        await publish(stage, feed_id, feed)
        await asyncio.to_thread(server.restart)
        await publish(stage, feed_id, feed)
        told = await notifications(client, 2)
    cursor = told[-1]["cursor"]

    await publish(stage, feed_id, feed)
    await stage.hub.kill()
    await stage.hub.start()
    await stage.hub.wait_ready()
    await publish(stage, feed_id, feed)

    evidence = Evidence(
        subscribers=subscribers, expected={feed.number: (2, feed.count)}
    )
    await eventually(partial(has_all, evidence))
    async with connect(f"{stream}&cursor={cursor}") as client:
        told += await notifications(client, 2)
    assert len({each["cursor"] for each in told}) == 4
    assert await stage.hub.terminate() == 0


async def test_a_killed_hub_keeps_its_promises_and_so_does_its_server(
    tmp_path: Path, settings: Mapping[str, str], server: DurableServer
) -> None:
    campaign = Campaign(
        3, kills=3, directory=tmp_path, settings=settings, fail_server=server.restart
    )

    outcome = await campaign.run()

    assert outcome.complaints == []
    assert len(outcome.kills) == 3
    assert outcome.server_failures > 0


async def test_beside_a_hub_there_is_no_second_one_and_commands_find_it(
    tmp_path: Path, settings: Mapping[str, str]
) -> None:
    async with HubProcess(tmp_path, settings) as hub:
        second = HubProcess(tmp_path, settings)
        await second.start()
        await second.wait_exit()
        status = await run(hub, "db", "status")
        check = await run(hub, "db", "check")
        health = await run(hub, "health")
        await hub.terminate()
    at_rest = await run(hub, "db", "migrate")

    refusal = f"another hub (process {hub.pid}) is using this database"
    assert refusal in second.last_words
    assert "engine      postgresql" in status.out
    assert f"in use      by the hub at {hub.url}" in status.out
    assert check.out.endswith(" is intact\n")
    assert "The database is on a server, whose disk the hub does not see" in health.out
    assert "is at schema version" in at_rest.out


async def run(hub: HubProcess, *arguments: str) -> Outcome:
    return await fanfare(*arguments, variables=knowing(hub))
