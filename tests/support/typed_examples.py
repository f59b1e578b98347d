"""Examples of the docs, typed by somebody with a hub, feeds, a callback and a terminal.

What a page names stands for what a reader has; in the place of that goes what a test
has. Everything else is run as it stands.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.command import Outcome, environment, knowing
from tests.support.hub_process import HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscribers

ROOT = Path(__file__).parents[2]
SECONDS = 180.0


def examples_of(page: str) -> dict[str, list[tuple[str, str]]]:
    """Language and text of the fenced blocks of each section; drawings have none."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in page.split("\n## ")[1:]:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        if blocks:
            found[section.partition("\n")[0]] = blocks
    return found


def files_of(page: str) -> dict[str, str]:
    """What readers are told to save, by the name of the file."""
    pattern = r"[Ss]ave this as `([\w.]+)`[^\n]*\n\n```\w+\n(.*?)^```"
    return dict(re.findall(pattern, page, re.DOTALL | re.MULTILINE))


@dataclass(frozen=True, slots=True)
class Reader:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    subscribers: Subscribers
    directory: Path
    feeds: tuple[PublishedFeed, ...] = ()
    stands_for: dict[str, str] = field(default_factory=dict)
    """What a page names, and what this reader has."""

    def place(self, text: str) -> str:
        for name, value in self.stands_for.items():
            text = text.replace(name, value)
        return text

    def save(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.directory / name).write_text(self.place(text))

    async def start(
        self, *command: str, output: int = PIPE, **variables: str
    ) -> Process:
        """``output``: a descriptor that its output and errors go to together."""
        path = os.pathsep.join((str(self.directory), os.environ["PATH"]))
        given = {**environment(knowing(self.hub)), "PATH": path, **variables}
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=self.directory,
            env=given,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    async def type(self, text: str) -> Outcome:
        """Type it into a shell, and wait for its end."""
        process = await self.start("sh", "-e", "-c", self.place(text))
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
        assert process.returncode is not None
        return Outcome(process.returncode, out.decode(), err.decode())

    @asynccontextmanager
    async def watching(self, *command: str, **variables: str) -> AsyncIterator[Process]:
        """What runs until it is told to end."""
        process = await self.start(*command, output=PIPE, **variables)
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


@asynccontextmanager
async def open_reader(directory: Path, feeds: int = 0) -> AsyncIterator[Reader]:
    """With the commands ``fanfare`` and ``scripts/admin``, and so many feeds that the
    hub does not have yet."""
    hub = HubProcess(directory=directory)
    (directory / "scripts").mkdir()
    for command in ("fanfare", "scripts/admin"):
        shim = directory / command
        shim.write_text(
            f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -u -m hub.cli "$@"\n'
        )
        shim.chmod(0o755)
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        hub,
        HubApi(hub.url) as api,
    ):
        published = tuple(publisher.add_feed() for _ in range(feeds))
        yield Reader(hub, api, publisher, subscribers, directory, published)


async def until_printed(process: Process, what: str) -> str:
    """The line of its output that has those words."""
    assert process.stdout is not None
    async with asyncio.timeout(SECONDS):
        while line := (await process.stdout.readline()).decode():
            if what in line:
                return line
        assert process.stderr is not None
        raise AssertionError((await process.stderr.read()).decode())
