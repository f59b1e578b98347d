"""Where docs/tutorials/live-website.md leaves its reader, and others go on."""

from __future__ import annotations

import os
import re
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.hub_process import free_port
from tests.support.typed_examples import (
    ROOT,
    Reader,
    files_of,
    open_reader,
    until_printed,
)

TUTORIALS = ROOT / "docs" / "tutorials"
FIRST = (TUTORIALS / "live-website.md").read_text()


def shell_lines(page: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


RUN, ALIAS, PUBLISH, SERVE, ADD, READ, PUBLISH_LIVE, PING = shell_lines(FIRST)


@asynccontextmanager
async def open_first_tutorial(directory: Path) -> AsyncIterator[Reader]:
    """Who has taken its steps 1 to 3: the feed is published, served and followed."""
    async with open_reader(directory) as reader:
        feeds, callback = free_port(), free_port()
        reader.stands_for.update(
            {
                "localhost:8080": reader.hub.url.removeprefix("http://"),
                "localhost:8000": f"127.0.0.1:{feeds}",
                "http.server 8000": f"http.server {feeds}",
                "localhost:9000": f"127.0.0.1:{callback}",
                '("127.0.0.1", 9000)': f'("127.0.0.1", {callback})',
                "bin/python ": f"{sys.executable} ",
            }
        )
        reader.save(files_of(FIRST))
        await typed(reader, PUBLISH)
        async with running(reader, SERVE) as server:
            await until_printed(server, "Serving HTTP")
            assert "My news: 1 entry" in await typed(reader, ADD)
            yield reader


async def typed(reader: Reader, lines: str) -> str:
    """What they print; they end well."""
    outcome = await reader.type(lines)
    assert outcome.code == 0, outcome.out + outcome.err
    return outcome.out


async def published(reader: Reader, lines: str) -> str:
    """Lines that publish, and a last one that tells the hub."""
    publish, _, last = lines.rstrip().rpartition("\n")
    await typed(reader, publish)
    make_later(reader)
    return await typed(reader, last)


def make_later(reader: Reader) -> None:
    """Date the feed a second after its last version: its server tells versions of a
    file apart by the second, and tests publish more often."""
    feed = reader.directory / "feed.xml"
    before = reader.directory / "before"
    last = before.stat().st_mtime if before.exists() else feed.stat().st_mtime
    before.touch()
    for each in (feed, before):
        os.utime(each, (last + 1, last + 1))


@asynccontextmanager
async def running(reader: Reader, line: str) -> AsyncIterator[Process]:
    """What a line starts that is to be left running."""
    words = re.sub(r"^((?:\w+=(?:\"[^\"]*\"|\S+) )*)", r"\1exec ", reader.place(line))
    path = str(ROOT / "hub" / "client")
    async with reader.watching(
        *("sh", "-c", words), PYTHONPATH=path, PYTHONUNBUFFERED="1", HUB=reader.hub.url
    ) as process:
        yield process
