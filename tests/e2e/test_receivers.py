"""The programs of docs/receivers, which people copy, with a real hub.

Flask's and Django's are Starlette's but for the last lines, which a test of the docs
holds; the two packages are not installed for tests.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time

import pytest

from protocols.websub.signatures import sign_webhook
from tests.support.hub_process import free_port
from tests.support.stage import Stage, open_stage
from tests.support.waiting import eventually

pytestmark = pytest.mark.once("receivers see requests, not what is stored")

PROGRAMS = Path(__file__).parents[2] / "docs" / "receivers"
SECRET = "whsec_" + "c2VjcmV0" * 5
PYTHON = (sys.executable, "-B")
NODE = ("node", "--no-warnings", "--experimental-websocket")
PHP = ("php", "-d", "display_errors=stderr")
RECEIVERS = {
    "python3": [(*PYTHON, "-m", "uvicorn", "starlette_receiver:app", "--port", "PORT")],
    "node": [("node", "node_receiver.mjs")],
    "go": [("./go_receiver",)],
    "php": [
        (*PHP, "-S", "127.0.0.1:PORT", "php_receiver.php"),
        (*PHP, "php_receiver.php"),
    ],
    "ruby": [("ruby", "ruby_receiver.rb")],
}
STREAMS = {
    "websocket_client.py": PYTHON,
    "event_stream_client.py": PYTHON,
    "websocket_client.mjs": NODE,
    "event_stream_client.mjs": NODE,
}


@dataclass(slots=True)
class Program:
    """A program of the docs, and all that it has printed."""

    commands: Sequence[Sequence[str]]
    folder: Path
    environment: dict[str, str]
    port: int = field(default_factory=free_port)
    lines: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def entries(self) -> list[int]:
        """Numbers of the entries that it worked on, in order."""
        found = [each.split() for each in self.lines if each.startswith("entry ")]
        return [int(words[1].rpartition("/")[2]) for words in found]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Killed at the end, as by a lack of electricity."""
        self.folder.mkdir(exist_ok=True)
        given = {
            **self.environment,
            "PORT": str(self.port),
            "FOLDER": str(self.folder),
            "CURSOR": str(self.folder / "cursor"),
        }
        async with AsyncExitStack() as stack:
            for command in self.commands:
                process = await asyncio.create_subprocess_exec(
                    *(each.replace("PORT", str(self.port)) for each in command),
                    cwd=PROGRAMS,
                    env={**os.environ, **given},
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                reading = asyncio.create_task(self._read(process))
                stack.push_async_callback(asyncio.wait, {reading})
                stack.callback(process.send_signal, signal.SIGKILL)
            yield

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.lines.append(line.decode().rstrip())
        await process.wait()


def commands_of(runtime: str, directory: Path) -> Sequence[Sequence[str]]:
    """How its receiver is started; skips the test where that cannot be."""
    if runtime != "python3" and shutil.which(runtime) is None:
        pytest.skip(f"no {runtime} on this machine")
    if runtime == "ruby" and subprocess.run(["ruby", "-rwebrick", "-e1"]).returncode:
        pytest.skip("no webrick for Ruby on this machine")
    if runtime != "go":
        return RECEIVERS[runtime]
    built = directory / "go_receiver"
    subprocess.run(
        ["go", "build", "-o", str(built), "go_receiver.go"], cwd=PROGRAMS, check=True
    )
    return [(str(built),)]


async def subscribe(stage: Stage, topic: str, callback: str, token: str) -> None:
    """Where the callback is asked, which does not listen yet at first."""
    form = {
        "hub.mode": "subscribe",
        "hub.topic": topic,
        "hub.callback": callback,
        "hub.secret": SECRET,
        "hub.verify": "sync",
        "format": "json",
    }
    headers = {"Authorization": f"Bearer {token}"}

    async def is_confirmed() -> bool:
        answer = await stage.api.ask("POST", "/", data=form, headers=headers)
        return answer.status == 204

    await eventually(is_confirmed)


async def notify(stage: Stage, callback: str, id: str, **headers: str) -> int:
    """A request as the hub makes one, without entries; the status of the answer."""
    now, body = int(time()), b'{"items": []}'
    signed = {
        "webhook-id": id,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_webhook(SECRET, id, now, body),
    }
    answer = await stage.api.ask(
        "POST", callback, data=body, headers={**signed, **headers}
    )
    return answer.status


@pytest.mark.parametrize("runtime", RECEIVERS)
async def test_a_receiver_takes_each_entry_once_and_asks_for_what_it_lacks(
    runtime: str, tmp_path: Path
) -> None:
    commands = commands_of(runtime, tmp_path)
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        topic = stage.publisher.url(feed)
        token = await stage.api.create_token("alice", "subscribe", "retrieve")
        settings = {"SECRET": SECRET, "TOPIC": topic, "HUB": stage.hub.url}
        receiver = Program(
            commands, tmp_path / "received", {**settings, "TOKEN": token}
        )
        async with receiver.running():
            await subscribe(stage, topic, receiver.url, token)
            await stage.publish(feed_id, feed)
            await eventually(lambda: receiver.entries == [2])
            await eventually(lambda: any((receiver.folder / "done").iterdir()))
            backup = shutil.copytree(receiver.folder, tmp_path / "backup")

            last = (receiver.folder / "last").read_text()
            assert await notify(stage, receiver.url, last) == 204  # it is known
            forged = {"webhook-signature": "v1,Zm9yZ2Vk"}
            assert await notify(stage, receiver.url, "e-9-1", **forged) == 403
            answer = await stage.api.ask(
                "GET", f"{receiver.url}?hub.mode=subscribe&hub.challenge=x&hub.topic=y"
            )
            assert answer.status == 404  # nobody here wants this topic
            await stage.publish(feed_id, feed)
            await eventually(lambda: receiver.entries == [2, 3])

        shutil.rmtree(receiver.folder)
        backup.rename(receiver.folder)
        async with receiver.running():
            await eventually(lambda: receiver.entries == [2, 3, 3])

            epoch = last.partition("-")[0]
            missed = {"Fanfare-Missed": "7-8"}
            await notify(stage, receiver.url, f"{epoch}-99-1", **missed)
            await eventually(lambda: receiver.entries[3:] == [1, 2, 3])
            assert "gap 7-8" in receiver.lines


@pytest.mark.parametrize("program", STREAMS)
async def test_a_client_of_the_stream_goes_on_where_it_was(
    program: str, tmp_path: Path
) -> None:
    command = STREAMS[program]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on this machine")
    async with open_stage(tmp_path) as stage:
        feed_id, feed = await stage.add_feed()
        settings = {"TOPIC": stage.publisher.url(feed), "HUB": stage.hub.url}
        client = Program([(*command, program)], tmp_path / "client", settings)
        async with client.running():
            cursor = client.folder / "cursor"
            await eventually(cursor.exists)
            first = cursor.read_text()
            await stage.publish(feed_id, feed)
            await eventually(lambda: cursor.read_text() != first)

        await stage.publish(feed_id, feed)
        async with client.running():
            await eventually(lambda: client.entries == [2, 3])
