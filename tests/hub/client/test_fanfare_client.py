"""The package for Python programs, with a real hub where one is needed.

What docs/how-to/python-client.md shows is run as it stands, with this hub's addresses.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fanfare_client import (
    AsyncHubClient,
    ForgedDelivery,
    HubClient,
    HubUnavailable,
    RequestRefused,
    read_delivery,
)
from fanfare_client.stream_position import StreamPosition

from protocols.websub.signatures import sign_webhook
from tests.support.hub_process import free_port
from tests.support.stage import Stage, open_stage
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "how-to" / "python-client.md"
SECRET = "whsec_Z2VoZWlt"
BODY = b'{"title": "A feed", "items": [{"id": "1", "title": "News"}]}'


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path) as stage:
        yield stage


def signed(
    id: str = "5c0b-41-7", at: int = 1000, secret: str = SECRET
) -> dict[str, str]:
    return {
        "Content-Type": "application/json; charset=utf-8",
        "Webhook-Id": id,
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": f"v1,x {sign_webhook(secret, id, at, BODY)}",
        "X-PubSubHubbub-Topic": "https://site.example/feed",
    }


@pytest.mark.parametrize("secret", [SECRET, "geheim", "whsec_?", "whsec_"])
def test_a_delivery_is_read_once_its_signature_is_right(secret: str) -> None:
    headers = {**signed(secret=secret), "Fanfare-Missed": "3-9"}
    delivery = read_delivery(headers, BODY, secret, now=1300)
    assert (delivery.epoch, delivery.position) == ("5c0b", 41)
    assert delivery.missed == (3, 9)
    assert [each["title"] for each in delivery.items] == ["News"]


@pytest.mark.parametrize("id", ["test-41-7", "replay-41-7", "other"])
def test_what_is_no_record_of_the_log_has_no_position(id: str) -> None:
    delivery = read_delivery(signed(id), BODY, SECRET, now=1000)
    assert (delivery.epoch, delivery.position, delivery.missed) == ("", 0, None)


@pytest.mark.parametrize(
    ("headers", "body", "why"),
    [
        ({}, BODY, "not signed"),
        (signed(at=699), BODY, "301 s ago"),
        (signed(), BODY + b" ", "not that of the secret"),
        (signed(secret="another"), BODY, "not that of the secret"),
        ({**signed(), "Webhook-Id": "5c0b-42-7"}, BODY, "not that of the secret"),
    ],
)
def test_anything_else_is_refused(
    headers: dict[str, str], body: bytes, why: str
) -> None:
    with pytest.raises(ForgedDelivery, match=why):
        read_delivery(headers, body, SECRET, now=1000)


def test_no_secret_makes_nothing_genuine() -> None:
    with pytest.raises(ValueError, match="secret"):
        read_delivery(signed(secret=""), BODY, "", now=1000)


async def test_a_stream_goes_on_over_a_restart_of_the_hub(stage: Stage) -> None:
    feed_id, feed = await stage.add_feed()
    topic = stage.publisher.url(feed)
    found: list[str] = []

    async def follow() -> None:
        async with AsyncHubClient(stage.hub.url) as hub:
            async for event in hub.stream(topic, cursor=""):
                found.extend(each["title"] for each in event.items)
                if len(found) == 2:
                    return

    following = asyncio.create_task(follow())
    await eventually(lambda: is_followed(stage))
    await stage.publish(feed_id, feed)
    await eventually(lambda: found == ["Entry 2"])
    await stage.hub.kill()
    await stage.hub.start()
    await stage.hub.wait_ready()
    await stage.publish(feed_id, feed)
    await asyncio.wait_for(following, 60)
    assert found == ["Entry 2", "Entry 3"]


async def is_followed(stage: Stage) -> bool:
    return bool((await stage.api.request("GET", "/api/connections"))["total"])


async def test_what_the_hub_refuses_is_told_with_the_field(stage: Stage) -> None:
    async with AsyncHubClient(stage.hub.url, "no such token") as hub:
        with pytest.raises(RequestRefused, match="401") as refused:
            await hub.retrieve("https://site.example/feed")
    assert refused.value.status == 401
    with pytest.raises(RequestRefused, match="404"):
        await anext(AsyncHubClient(stage.hub.url).stream("https://nowhere.example/"))


def test_a_hub_that_is_not_there_is_unavailable() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with HubClient(url) as hub, pytest.raises(HubUnavailable, match=url):
        hub.retrieve("https://site.example/feed")
    with pytest.raises(HubUnavailable, match=url):
        next(HubClient(url).stream("https://site.example/feed"))


@pytest.mark.parametrize(
    "message",
    [
        '{"type": "unsubscribed", "topic": "a", "reason": "-"}',
        '{"type": "error", "error": "unknown_topic", "topic": "a", "reason": "-"}',
    ],
    ids=["while it is followed", "between two connections"],
)
def test_a_topic_that_ends_is_told_and_no_longer_asked_for(message: str) -> None:
    place = StreamPosition(
        url="https://hub.example", topics=("a", "b"), updates="fresh", cursor="e-1"
    )
    assert place.take('{"type": "subscribed", "topic": "a", "cursor": "e-2"}') is None
    event = place.take(message)
    assert event is not None
    assert (event.kind, event.reason) == ("unsubscribed", "-")
    assert place.address == (
        "wss://hub.example/stream?topic=b&updates=fresh&format=json&cursor=e-2"
    )


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


async def test_what_the_guide_shows_runs(stage: Stage, tmp_path: Path) -> None:
    feed_id, feed = await stage.add_feed()
    await stage.publish(feed_id, feed)
    token = await stage.api.create_token("me", "subscribe", "unsubscribe", "retrieve")
    addresses = {
        "https://hub.example": stage.hub.url,
        "https://example.org/feed.xml": stage.publisher.url(feed),
        "https://you.example/hook": stage.subscribers.add("hook").url,
        '"TOKEN"': repr(token),
        '"cursor.txt"': repr(str(tmp_path / "cursor.txt")),
    }
    receiver, *others = programs()
    compile(receiver, "receiver", "exec")
    for program in others:
        for shown, real in addresses.items():
            program = program.replace(shown, real)
        running = asyncio.create_task(asyncio.to_thread(exec, program, {}))
        while not running.done():
            if await is_followed(stage):
                await stage.publish(feed_id, feed)
            await asyncio.wait({running}, timeout=0.05)
        await running
    assert (tmp_path / "cursor.txt").read_text()


def test_without_its_extra_it_is_told_what_to_install() -> None:
    program = "import sys; sys.modules['httpx2'] = None; import fanfare_client"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "hub" / "client")},
    )

    assert "pip install 'fanfare-hub[client]'" in ended.stderr.splitlines()[-1]
