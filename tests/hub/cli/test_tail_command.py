"""``fanfare tail``, as a process of its own, on a hub whose network fails."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.admin import TOKEN
from tests.support.broken_networks import CuttingProxy, cutting_proxy
from tests.support.command import fanfare, fork_fanfare
from tests.support.live_hub import LiveHub, live_hub
from tests.support.waiting import eventually

NEWS = "https://news.example/feed"
OTHER = "https://other.example/feed"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        await hub.add_feed(NEWS)
        await hub.add_feed(OTHER)
        yield hub


@pytest.fixture
async def network(hub: LiveHub) -> AsyncIterator[CuttingProxy]:
    async with cutting_proxy(hub.port) as network:
        yield network


def knowing(port: int, token: str = TOKEN) -> dict[str, str]:
    return {
        "FANFARE_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "FANFARE_ADMIN_TOKEN": token,
    }


async def line(stream: asyncio.StreamReader | None) -> str:
    assert stream is not None
    async with asyncio.timeout(60):
        return (await stream.readline()).decode().rstrip()


async def test_it_survives_lost_connections_and_prints_each_entry_once(
    hub: LiveHub, network: CuttingProxy
) -> None:
    tail = await fork_fanfare(
        *("tail", NEWS, OTHER, "--count", "4"), variables=knowing(network.port)
    )
    assert "listening to 2 topics" in await line(tail.stderr)
    await hub.publish(NEWS, "one")
    printed = [await line(tail.stdout)]
    for key in ("two", "three"):
        network.cut()
        await hub.publish(OTHER, key)
        assert (await line(tail.stderr)).startswith("connection lost")
        assert (await line(tail.stderr)).startswith("reconnected, resuming after")
        printed.append(await line(tail.stdout))
    await hub.publish(NEWS, "four")
    printed.append(await line(tail.stdout))
    assert await tail.wait() == 0
    assert network.connections == 3
    for position, (key, text) in enumerate(
        zip(("one", "two", "three", "four"), printed, strict=True), 1
    ):
        assert text.split()[1] == await hub.cursor(position)
        assert text.endswith(key)


async def test_it_begins_after_a_cursor_and_says_what_it_missed(hub: LiveHub) -> None:
    begin = await hub.cursor(0)
    await hub.publish(NEWS, "one")
    await hub.publish(NEWS, "two")
    await hub.trim(keep=1)
    found = await fanfare(
        *("tail", NEWS, "--cursor", begin, "--count", "1"), variables=knowing(hub.port)
    )
    assert found.code == 0
    assert found.out.rstrip().endswith("two")
    assert f"missed: records of {NEWS}" in found.err


async def test_atom_is_printed_as_it_comes(hub: LiveHub) -> None:
    begin = await hub.cursor(0)
    await hub.publish(NEWS, "one")
    found = await fanfare(
        *("tail", NEWS, "--cursor", begin, "--count", "1", "--format", "atom"),
        variables=knowing(hub.port),
    )
    assert found.out.startswith("<?xml")


async def test_ctrl_c_ends_it(hub: LiveHub) -> None:
    tail = await fork_fanfare("tail", NEWS, variables=knowing(hub.port))
    await line(tail.stderr)
    tail.send_signal(signal.SIGINT)
    assert await tail.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["https://nobody.example/feed"], "no such topic"),
        (["feed"], "topic: expected an absolute http or https URL"),
        ([NEWS, "--cursor", "soon"], "cursor: expected a cursor of this hub"),
    ],
)
async def test_what_cannot_be_had_is_said_and_ends_it(
    hub: LiveHub, arguments: list[str], said: str
) -> None:
    found = await fanfare("tail", *arguments, variables=knowing(hub.port))
    assert found.code == 1
    assert said in found.err


async def test_a_token_that_opens_nothing_ends_it(hub: LiveHub) -> None:
    found = await fanfare("tail", NEWS, variables=knowing(hub.port, "guess"))
    assert (found.code, found.err.splitlines()[-1]) == (
        1,
        "fanfare: the hub closed the connection: not authorized",
    )


async def test_a_stranger_needs_no_token_and_shows_none_to_another_hub(
    hub: LiveHub, tmp_path: Path
) -> None:
    begin = await hub.cursor(0)
    await hub.publish(NEWS, "one")
    (tmp_path / "admin-token").write_text("of a hub that runs here\n")
    found = await fanfare(
        *("tail", NEWS, "--cursor", begin, "--count", "1"),
        *("--url", f"http://127.0.0.1:{hub.port}/"),
        variables={"FANFARE_DATABASE": f"sqlite:{tmp_path / 'hub.db'}"},
    )
    assert (found.code, found.out.split()[-1]) == (0, "one")


async def test_without_a_name_it_goes_to_the_hub_on_the_database(
    tmp_path: Path,
) -> None:
    database = {"FANFARE_DATABASE": f"sqlite:{tmp_path / 'hub.db'}"}
    found = await fanfare("tail", NEWS, variables=database)
    assert (found.code, "no hub runs on" in found.err) == (3, True)


async def test_programs_get_a_line_for_each_message(hub: LiveHub) -> None:
    begin = await hub.cursor(0)
    await hub.publish(NEWS, "one")
    options = ("--cursor", begin, "--count", "1", "--json")
    found = await fanfare("tail", NEWS, *options, variables=knowing(hub.port))
    [line] = found.out.splitlines()
    document = json.loads(line)
    assert (document["topic"], document["prev"]) == (NEWS, None)
    assert document["cursor"] > begin
    assert [each["title"] for each in document["body"]["items"]] == ["one"]


async def test_an_empty_topic_is_wrong_usage() -> None:
    found = await fanfare("tail", "", variables=knowing(1))
    assert (found.code, "TOPIC: expected" in found.err) == (2, True)


async def test_where_no_hub_is_it_does_not_wait() -> None:
    found = await fanfare("tail", NEWS, variables=knowing(1))
    assert found.code == 3
    assert "no live stream at" in found.err


async def test_a_topic_that_goes_is_said_and_the_last_one_ends_it(
    hub: LiveHub,
) -> None:
    tail = await fork_fanfare("tail", NEWS, OTHER, variables=knowing(hub.port))
    await line(tail.stderr)
    audience = hub.hub.services.live.stream.registry
    await eventually(lambda: len(audience.feeds) == 2)
    for topic in (NEWS, OTHER):
        await hub.hub.services.feeds.remove(hub.feeds[topic])
        assert await line(tail.stderr) == f"ended: {topic}: no such topic"
    assert await line(tail.stderr) == "fanfare: all topics have ended"
    assert await tail.wait() == 1
