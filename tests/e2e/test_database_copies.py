"""A hub that was killed goes on in a copy of its database, on the other engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
from websockets.asyncio.client import connect

from tests.support.chosen_engine import CHOSEN, Engine, location_of
from tests.support.command import Outcome, fanfare, knowing
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubProcess
from tests.support.oracle import Evidence, Kill, judge, missing
from tests.support.postgres_server import shared_server
from tests.support.stage import Stage, open_stage
from tests.support.subscribers import Subscriber
from tests.support.waiting import eventually

ANSWERS = {
    "slow": ServerAnswer(delay=0.4),
    "failing": ServerAnswer(status=500),
    "paused": ServerAnswer(),
}


async def kill_amid_work(stage: Stage) -> tuple[list[Subscriber], str, Kill]:
    """Subscribers that lack entries, a live client's stream behind what it has, and
    the kill."""
    feed_id, feed = await stage.add_feed()
    topic = quote(stage.publisher.url(feed), safe="")
    stream = f"ws://127.0.0.1:{stage.hub.port}/stream?topic={topic}"
    subscribers = []
    for name, answer in ANSWERS.items():
        subscribers.append(await stage.subscribe(name, feed))
        subscribers[-1].answer(answer)
    await turn(stage, "pause")
    async with connect(stream) as client:
        await client.recv()
        await stage.publish(feed_id, feed)
        cursor = json.loads(await client.recv())["cursor"]
    for _ in range(3):
        await stage.publish(feed_id, feed)
    return subscribers, f"{stream}&cursor={cursor}", Kill(await stage.hub.kill())


async def turn(stage: Stage, verb: str) -> None:
    ids = await stage.api.subscriptions()
    number = ids[stage.subscribers["paused"].url]
    await stage.api.request("POST", f"/api/subscriptions/{number}/{verb}")


@pytest.fixture
def target(tmp_path: Path) -> Iterator[str]:
    """A database without tables, of the engine that is not the hub's."""
    if CHOSEN is Engine.POSTGRESQL:
        yield f"sqlite:{tmp_path / 'copy.db'}"
        return
    with shared_server().database() as location:
        yield location


async def go_on_in_copy(hub: HubProcess, target: str) -> Outcome:
    """What the command tells."""
    source = location_of(hub.database)
    hub.settings = {
        **hub.settings,
        "FANFARE_STATE_DIR": str(hub.directory),
        "FANFARE_PUBLIC_URL": f"http://localhost:{hub.port}",
    }
    copied = await fanfare("db", "copy", source, target, variables=knowing(hub))
    hub.settings = {**hub.settings, "FANFARE_DATABASE": target}
    await hub.start()
    await hub.wait_ready()
    return copied


def has_all(evidence: Evidence) -> bool:
    return not any(missing(each, evidence) for each in evidence.subscribers)


async def test_nothing_is_lost_or_repeated_and_cursors_go_on(
    tmp_path: Path, target: str
) -> None:
    async with open_stage(tmp_path) as stage:
        subscribers, stream, killed = await kill_amid_work(stage)
        for each in subscribers:
            each.answer(ServerAnswer())
        copied = await go_on_in_copy(stage.hub, target)
        async with connect(stream) as client:
            told = [json.loads(await client.recv())["type"] for _ in range(4)]
        await turn(stage, "resume")
        for number in (await stage.api.subscriptions()).values():
            await stage.api.retry(number)
        evidence = Evidence(
            subscribers=subscribers,
            expected={subscribers[0].feed: (2, 5)},
            kills={f"{stage.hub.url}/hub": killed},
            window=0.5,
            in_flight=len(subscribers),
            reading=2.0,
        )
        await eventually(partial(has_all, evidence))
        assert await stage.hub.terminate() == 0

    assert copied.code == 0, copied.err
    assert "compared row by row" in copied.out
    assert told == ["subscribed", *["notification"] * 3]
    assert judge(evidence) == []
