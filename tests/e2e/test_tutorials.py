"""The tutorials hold: what they have a reader type and save is run, in their order.

Each test takes all shell lines of its page, so one that is added must be run as well.
What sets up an environment is left to `test_readme` and to whoever builds packages.
"""

from __future__ import annotations

import json
import re
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.support.chromium import in_a_browser, open_chromium
from tests.support.first_tutorial import (
    ALIAS,
    PING,
    PUBLISH_LIVE,
    READ,
    RUN,
    TUTORIALS,
    open_first_tutorial,
    published,
    running,
    shell_lines,
    typed,
)
from tests.support.http_server import ServerAnswer
from tests.support.typed_examples import ROOT, Reader, files_of, until_printed
from tests.support.waiting import eventually

pytestmark = pytest.mark.once("they are about programs of readers")


@pytest.fixture
async def reader(tmp_path: Path) -> AsyncIterator[Reader]:
    async with open_first_tutorial(tmp_path) as reader:
        yield reader


@asynccontextmanager
async def answering(reader: Reader, line: str) -> AsyncIterator[Process]:
    """A program that is a callback, once it answers."""

    async def is_there() -> bool:
        try:
            async with reader.api.session.get(reader.place("http://localhost:9000/")):
                return True
        except aiohttp.ClientError:
            return False

    async with running(reader, line) as process:
        await eventually(is_there)
        yield process


async def is_followed(reader: Reader) -> bool:
    return bool((await reader.api.request("GET", "/api/connections"))["total"])


async def is_followed_by_nobody(reader: Reader) -> bool:
    return not await is_followed(reader)


def test_the_hub_is_run_as_the_readme_says() -> None:
    assert RUN.strip() in (ROOT / "README.md").read_text()
    assert "scripts/admin" in ALIAS


@in_a_browser
async def test_a_website_that_shows_entries_live(reader: Reader) -> None:
    entries = json.loads(await typed(reader, READ))["items"]
    assert [each["title"] for each in entries] == ["The first entry"]
    async with open_chromium() as browser:
        page = await browser.new_page()
        await page.goto(reader.place("http://localhost:8000/"))
        rows = page.locator("li a")
        await rows.first.wait_for()
        await eventually(lambda: is_followed(reader))
        await published(reader, PUBLISH_LIVE + PING)
        await page.get_by_text("It is live").wait_for()
        assert await rows.all_text_contents() == ["It is live", "The first entry"]
        link = await rows.first.get_attribute("href")
        assert link == "http://" + reader.place("localhost:8000/#2")


async def test_a_bot(reader: Reader) -> None:
    page = (TUTORIALS / "bot.md").read_text()
    _, start, news, with_room, make_token, track, mentioned = shell_lines(page)
    reader.save(files_of(page))
    async with running(reader, start) as bot:
        await eventually(lambda: is_followed(reader))
        await published(reader, news)
        await until_printed(bot, "Hello, bot http://127.0.0.1:")
        await eventually((reader.directory / "cursor.txt").exists)
    await eventually(lambda: is_followed_by_nobody(reader))
    await published(reader, PUBLISH_LIVE + PING)
    room = reader.subscribers.add("room")
    token = (await typed(reader, make_token)).strip()
    reader.stands_for["https://chat.example/hooks/xxx"] = room.url
    reader.stands_for["TOKEN=TOKEN"] = f"TOKEN={token}"
    async with running(reader, with_room):
        await reader.subscribers.until_count("room", 1)
    assert json.loads(room.deliveries[0].body)["text"].startswith("It is live ")
    await eventually(lambda: is_followed_by_nobody(reader))
    async with running(reader, track) as bot:
        await eventually(lambda: is_followed(reader))
        await published(reader, mentioned)
        assert "Fanfare is mentioned" in await until_printed(bot, "http://")


async def test_a_websub_hub_for_ones_own_site(reader: Reader) -> None:
    page = (TUTORIALS / "websub-hub.md").read_text()
    run, subscribe, publish, check = shell_lines(page)
    reader.save(files_of(page))
    async with answering(reader, run) as callback:
        answer = await typed(reader, subscribe)
        link = re.search(r'^link: <(.*)>; rel="status"', answer, re.M | re.I)
        assert link is not None

        async def is_verified() -> bool:
            async with reader.api.session.get(link[1]) as answer:
                return bool((await answer.json())["state"] == "verified")

        await eventually(is_verified)
        await published(reader, publish)
        await until_printed(callback, "new: A hub of my own")
    assert "5. notify" in await published(reader, check)


async def test_leaving_superfeedr(reader: Reader) -> None:
    page = (TUTORIALS / "leaving-superfeedr.md").read_text()
    run, make_token, save, secret, bring, publish, ask = shell_lines(page)
    files = files_of(page)
    reader.save(files_of((TUTORIALS / "websub-hub.md").read_text()))
    pages = [ServerAnswer(body=each.encode()) for each in (files["list.json"], "[]")]
    reader.publisher.serve("/", *pages)
    reader.stands_for["https://push.superfeedr.com/"] = reader.publisher.url("/")
    reader.stands_for["TOKEN"] = "0f" * 16
    await typed(reader, save)
    saved = (reader.directory / "list.json").read_text()
    assert saved == files["list.json"] + "[]" * 19
    (reader.directory / "list.json").write_text(reader.place(saved))
    await typed(reader, make_token + secret)
    async with answering(reader, run) as callback:
        assert "1" in await typed(reader, bring)
        await published(reader, publish)
        await until_printed(callback, "new: Moved")
    listed, entries = (
        await typed(reader, ask.replace("\ncurl", "\necho\ncurl"))
    ).split("\n", 1)
    assert json.loads(listed)[0]["subscription"]["feed"]["title"] == "My news"
    assert [each["title"] for each in json.loads(entries)["items"]] == [
        "Moved",
        "The first entry",
    ]
