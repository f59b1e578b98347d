"""Documents that a hub need not read, or not all of: on real sockets, by the poller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubProcess
from tests.support.stage import Stage, open_stage
from tests.support.waiting import eventually
from tests.support.websub import websub_scene


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage


async def readings(hub: HubProcess) -> dict[str, int]:
    """How many documents were read which way; ways that none was read are left out."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{hub.url}/metrics") as answer,
    ):
        lines = (await answer.text()).splitlines()
    name = 'fanfare_documents_total{reading="'
    counts = (line.removeprefix(name).split('"} ') for line in lines if name in line)
    return {reading: int(float(count)) for reading, count in counts if count != "0"}


async def test_a_touched_document_is_not_read_but_its_new_validators_are_kept(
    stage: Stage,
) -> None:
    feed_id, feed = await stage.add_feed()
    headers = {"Content-Type": "application/atom+xml", "ETag": '"touched"'}
    feed.instead = ServerAnswer(headers=headers, body=feed.document())

    await stage.api.fetch(feed_id)
    await stage.api.fetch(feed_id)

    requests = feed.requests
    assert requests[2].headers["if-none-match"] == '"touched"'
    assert await readings(stage.hub) == {"full": 1, "unchanged": 2}


async def test_of_a_changed_document_only_what_is_new_is_read_and_delivered(
    stage: Stage,
) -> None:
    feed_id, feed = await stage.add_feed()
    reader = await stage.subscribe("reader", feed)

    numbers = [await stage.publish(feed_id, feed) for _ in range(2)]

    await eventually(lambda: len(reader.receipts) == 2)
    assert await readings(stage.hub) == {"full": 1, "incremental": 2}
    assert reader.numbers == numbers


async def test_those_who_want_the_document_as_it_is_get_all_of_it(
    tmp_path: Path,
) -> None:
    async with websub_scene(tmp_path) as scene:
        topic, callback = scene.topic(), scene.callback()
        await scene.subscribe(topic, callback)

        await scene.publish(topic)

        await eventually(lambda: bool(callback.deliveries))
        assert callback.deliveries[0].body == topic.body
        assert (await readings(scene.hub))["incremental"] == 1


async def test_a_change_of_the_head_alone_is_no_news(stage: Stage) -> None:
    feed_id, feed = await stage.add_feed()
    reader = await stage.subscribe("reader", feed)
    changed = feed.document().replace(b"Feed 1</title>", b"Another</title>")
    feed.instead = ServerAnswer(body=changed)
    await stage.api.fetch(feed_id)
    feed.instead = None

    number = await stage.publish(feed_id, feed)

    await eventually(lambda: bool(reader.receipts))
    assert await readings(stage.hub) == {"full": 1, "incremental": 2}
    assert reader.numbers == [number]


async def test_what_is_known_is_known_after_a_restart(stage: Stage) -> None:
    feed_id, feed = await stage.add_feed()
    await stage.hub.terminate()
    await stage.hub.start()
    await stage.hub.wait_ready()

    await stage.publish(feed_id, feed)

    assert await readings(stage.hub) == {"incremental": 1}
