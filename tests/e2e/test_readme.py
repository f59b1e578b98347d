"""The README holds: every line of its examples is run against a hub.

The names it uses for what a reader has, `STANDS_FOR`, are replaced by what a test has;
everything else is run as it stands.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from protocols.websub.signatures import sign
from tests.support.command import Outcome, environment, knowing
from tests.support.http_server import ServerAnswer
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscribers
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SECONDS = 180.0
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


def examples() -> dict[str, list[tuple[str, str]]]:
    """Language and text of the fenced blocks of each section; drawings have none."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in README.split("\n## ")[1:]:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        if blocks:
            found[section.partition("\n")[0]] = blocks
    return found


def example(section: str, number: int = 0) -> str:
    return examples()[section][number][1]


def test_every_example_is_run() -> None:
    languages = {
        section: [language for language, _ in blocks]
        for section, blocks in examples().items()
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


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody with a hub, some feeds, a callback and a terminal."""

    hub: HubProcess
    api: HubApi
    publisher: Publisher
    feeds: tuple[PublishedFeed, ...]
    subscribers: Subscribers
    directory: Path

    def place(self, text: str) -> str:
        """An example with what this reader has in the place of what it names."""
        given = [
            *map(self.publisher.url, self.feeds),
            self.subscribers["hook"].url,
            self.hub.url.removeprefix("http://"),
        ]
        for name, value in zip(STANDS_FOR, given, strict=True):
            text = text.replace(name, value)
        return text

    async def start(self, *command: str) -> Process:
        path = os.pathsep.join((str(self.directory), os.environ["PATH"]))
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=self.directory,
            env={**environment(knowing(self.hub)), "PATH": path},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )

    async def type(self, text: str) -> Outcome:
        """Type it into a shell, and wait for its end."""
        process = await self.start("sh", "-e", "-c", self.place(text))
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
        assert process.returncode is not None
        return Outcome(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def watching(self, *command: str) -> AsyncIterator[Process]:
        """What runs until it is told to end."""
        process = await self.start(*command)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()

    async def publish(self, number: int) -> None:
        feed = self.feeds[number]
        self.publisher.publish(feed)
        await self.api.fetch(await self.api.find_feed(self.publisher.url(feed)))


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    hub = HubProcess(directory=tmp_path)
    (tmp_path / "scripts").mkdir()
    for command in ("fanfare", "scripts/admin"):
        shim = tmp_path / command
        shim.write_text(
            f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -u -m hub.cli "$@"\n'
        )
        shim.chmod(0o755)
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        hub,
        HubApi(hub.url) as it,
    ):
        feeds = tuple(publisher.add_feed() for _ in range(4))
        yield Reader(hub, it, publisher, feeds, subscribers, tmp_path)


async def until_printed(process: Process, what: str) -> str:
    """The line of its output that has those words."""
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        while line := (await process.stdout.readline()).decode():
            if what in line:
                return line
        assert process.stderr is not None
        raise AssertionError((await process.stderr.read()).decode())


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


async def test_watching_by_the_command_line(reader: Reader) -> None:
    await reader.api.add_feed(reader.publisher.url(reader.feeds[0]))
    line = reader.place(example("WebSub and live entries", 3))
    async with reader.watching("sh", "-c", f"exec {line}") as process:
        assert process.stderr is not None
        assert b"listening to 1 topic" in await process.stderr.readline()
        await reader.publish(0)
        assert "Entry 2" in await until_printed(process, "publisher.example")


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
                "FANFARE_DATABASE": f"sqlite:{tmp_path / 'hub.db'}",
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
