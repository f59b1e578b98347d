"""The README holds: every line of its examples is run against a hub.

The names it uses for what a reader has, `STANDS_FOR`, are replaced by what a test has;
everything else is run as it stands.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from protocols.websub.signatures import sign
from tests.support.chosen_engine import variables_of
from tests.support.command import environment
from tests.support.http_server import ServerAnswer
from tests.support.typed_examples import (
    ROOT,
    SECONDS,
    Reader,
    examples_of,
    open_reader,
    until_printed,
)
from tests.support.waiting import eventually

README = (ROOT / "README.md").read_text()
EXAMPLES = examples_of(README)
STANDS_FOR = {
    "https://example.org/feed.xml": "the first feed",
    "https://example.com/rss": "the second feed",
    "https://intranet.example/feed": "the third feed",
    "https://xkcd.com/atom.xml": "the fourth feed",
    "https://you.example/hook": "a callback",
    "localhost:8080": "the hub",
}
RUN = {
    "Two commands": ["sh", "sh", "sh"],
    "Feeds": ["sh"],
    "Subscriptions": ["sh", "python"],
    "WebSub and live entries": ["sh", "python", "sh", "sh"],
    "Tokens": ["sh"],
}
"""The examples that the tests below run, by their section."""

with_curl = pytest.mark.skipif(
    shutil.which("curl") is None, reason="curl is not installed"
)


def example(section: str, number: int = 0) -> str:
    return EXAMPLES[section][number][1]


def test_every_example_is_run() -> None:
    languages = {
        section: [language for language, _ in blocks]
        for section, blocks in EXAMPLES.items()
    }
    assert languages == RUN


@pytest.mark.parametrize("number", [0, 1, 2])
def test_subscribing_takes_three_lines_each_way(number: int) -> None:
    lines = example("WebSub and live entries", number).splitlines()
    assert len(list(filter(None, lines))) == 3


def test_the_first_screen_has_the_two_commands() -> None:
    commands = [line.split()[0] for line in README.splitlines()[:30] if line]
    assert "./scripts/run" in commands
    assert "./scripts/test" in commands


@pytest.mark.parametrize("script", sorted(set(re.findall(r"\./(scripts/\w+)", README))))
def test_every_script_shown_exists_and_can_be_run(script: str) -> None:
    assert (ROOT / script).stat().st_mode & 0o111


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with open_reader(tmp_path, feeds=4) as reader:
        given = [
            *map(reader.publisher.url, reader.feeds),
            reader.subscribers.add("hook").url,
            reader.hub.url.removeprefix("http://"),
        ]
        reader.stands_for.update(zip(STANDS_FOR, given, strict=True))
        yield reader


@pytest.mark.once("commands see answers, not what is stored")
async def test_the_lines_on_feeds(reader: Reader) -> None:
    listed = reader.publisher.add_feed()
    (reader.directory / "urls.txt").write_text(reader.publisher.url(listed) + "\n")
    typed = await reader.type(example("Feeds"))
    assert (typed.code, typed.err) == (0, "")
    assert typed.out.count("added  ") == 4
    assert "because  " in typed.out
    found = (await reader.api.request("GET", "/api/feeds"))["feeds"]
    assert {
        (each["url"], each["state"], each["private"], each["category"])
        for each in found
    } == {
        (reader.publisher.url(reader.feeds[0]), "active", True, ""),
        (reader.publisher.url(listed), "active", False, "news"),
        (reader.publisher.url(reader.feeds[2]), "active", True, ""),
    }


@pytest.mark.once("commands see answers, not what is stored")
async def test_the_lines_on_subscriptions(reader: Reader) -> None:
    """Up to the deliveries that are late there is nothing to try again."""
    an_hour = {"Retry-After": "3600"}  # else it might be tried before the command is
    hook = reader.subscribers["hook"]
    hook.answer(ServerAnswer(status=503, headers=an_hour), ServerAnswer())
    before, retry, after = re.split(
        r"(^fanfare deliveries retry.*\n)", example("Subscriptions"), flags=re.M
    )
    typed = await reader.type(before)
    assert (typed.code, typed.err) == (0, "")
    await reader.publish(0)

    async def is_late() -> bool:
        late = (await reader.api.deliveries())["retrying"]
        return bool(late and not late[0]["under_way"])

    await eventually(is_late, seconds=SECONDS)
    assert (await reader.type(retry)).code == 0
    await reader.subscribers.until_count("hook", 2, seconds=SECONDS)
    assert (await reader.type(after)).code == 0
    received = hook.deliveries[1]
    body = json.loads(received.body)
    assert [item["title"] for item in body["items"]] == ["Entry 2"]
    names: dict[str, object] = {}
    exec(example("Subscriptions", 1), names)  # noqa: S102 - the README's own example
    is_genuine = names["is_genuine"]
    assert callable(is_genuine)
    signature = received.headers["x-hub-signature"]
    assert is_genuine(received.body, signature, "S3CRET")
    assert not is_genuine(received.body, sign("sha256", "x", received.body), "S3CRET")


@pytest.mark.once("commands see answers, not what is stored")
async def test_the_lines_on_tokens(reader: Reader) -> None:
    typed = await reader.type(example("Tokens"))
    assert typed.code == 0
    assert re.match(r"[0-9a-f]{32}\n", typed.out)
    assert "revoked  token 1 of alice" in typed.out


@with_curl
async def test_subscribing_a_callback_by_curl(reader: Reader) -> None:
    await reader.api.add_feed(reader.publisher.url(reader.feeds[0]))
    typed = await reader.type(example("WebSub and live entries", 0))
    assert typed.code == 0
    assert typed.out.startswith("HTTP/1.1 202 ")
    link = re.search(r'^link: <(.*)>; rel="status"\r$', typed.out, re.M | re.I)
    assert link is not None
    async with aiohttp.ClientSession() as session:

        async def is_verified() -> bool:
            async with session.get(link[1]) as answer:
                return bool((await answer.json())["state"] == "verified")

        await eventually(is_verified, seconds=SECONDS)
    await reader.publish(0)
    await reader.subscribers.until_count("hook", 1, seconds=SECONDS)
    [question] = reader.subscribers["hook"].questions
    [delivery] = reader.subscribers["hook"].deliveries
    assert question.query["hub.mode"] == "subscribe"
    assert delivery.headers["content-type"] == "application/json; charset=utf-8"
    assert delivery.is_signed_with("S3CRET")


async def test_subscribing_by_websocket(reader: Reader) -> None:
    await reader.api.add_feed(reader.publisher.url(reader.feeds[0]))
    program = reader.place(example("WebSub and live entries", 1))
    async with reader.watching(sys.executable, "-u", "-c", program) as process:
        await until_printed(process, '"type":"subscribed"')
        await reader.publish(0)
        message = json.loads(await until_printed(process, '"type":"notification"'))
    assert [item["title"] for item in message["body"]["items"]] == ["Entry 2"]


@with_curl
async def test_subscribing_by_server_sent_events(reader: Reader) -> None:
    await reader.api.add_feed(reader.publisher.url(reader.feeds[0]))
    line = reader.place(example("WebSub and live entries", 2))
    async with reader.watching("sh", "-c", f"exec {line}") as process:
        await until_printed(process, ": subscribed")
        await reader.publish(0)
        await until_printed(process, "event: notification")
        data = (await until_printed(process, "data: ")).removeprefix("data: ")
    assert [item["title"] for item in json.loads(data)["body"]["items"]] == ["Entry 2"]


@pytest.mark.once("commands see answers, not what is stored")
async def test_watching_by_the_command_line(reader: Reader) -> None:
    await reader.api.add_feed(reader.publisher.url(reader.feeds[0]))
    line = reader.place(example("WebSub and live entries", 3))
    async with reader.watching("sh", "-c", f"exec {line}") as process:
        assert process.stderr is not None
        assert b"listening to 1 topic" in await process.stderr.readline()
        await reader.publish(0)
        assert "Entry 2" in await until_printed(process, "publisher.example")


@pytest.mark.once("commands see answers, not what is stored")
async def test_the_second_command_of_the_first_screen(reader: Reader) -> None:
    line = reader.place(example("Two commands", 2))
    async with reader.watching("sh", "-c", f"exec {line}") as process:
        await until_printed(process, "listening at http://127.0.0.1:")
        assert "Entry 1" in await until_printed(process, "  test  ")
        await reader.publish(3)
        assert "publisher.example" in await until_printed(process, "Entry 2")


def test_the_demo_of_the_first_screen_is_the_one_that_is_tested() -> None:
    """`test_demo` runs it, for a shorter time."""
    assert example("Two commands", 1) == "./scripts/admin demo\n"


@pytest.mark.skipif(
    not (ROOT / ".venv" / ".installed-hub").exists(),
    reason="scripts/run has not set up this tree; it would download packages",
)
async def test_the_first_command_runs_a_hub(tmp_path: Path) -> None:
    first = example("Two commands").splitlines()[0]
    process = await asyncio.create_subprocess_shell(
        f"exec {first}",
        cwd=ROOT,
        env=environment(
            {
                **variables_of(tmp_path / "hub.db"),
                "FANFARE_PORT": "0",
            }
        ),
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        assert " is running at http://localhost:" in await until_printed(process, "Fan")
        await until_printed(process, str(tmp_path / "admin-token"))
        await until_printed(process, "feeds add URL")
        await until_printed(process, "listen URL")
    finally:
        process.terminate()
        await process.communicate()
    assert process.returncode == 0
