"""A headless Chromium, driven by the DevTools protocol over a websocket.

It is asked to stay by itself: no network but what a test opens, and everything it
writes in a directory that the test gives it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
from asyncio.subprocess import DEVNULL, Process
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.support.waiting import eventually

START_SECONDS = 60.0
ANSWER_SECONDS = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--disable-dev-shm-usage"),
    *("--remote-debugging-port=0", "about:blank"),
)
Message = dict[str, Any]


def find_browser() -> str | None:
    """The program; None where no Chromium is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Refused(Exception):
    """The browser would not do what it was told."""


@dataclass(slots=True)
class Tab:
    """One page. ``complaints`` are what a developer would see in red in its console:

    errors and warnings, exceptions, and breaches of its Content-Security-Policy.
    """

    browser: Browser
    session: str
    complaints: list[str] = field(default_factory=list)

    async def call(self, method: str, **parameters: object) -> Message:
        return await self.browser.call(method, parameters, self.session)

    async def open(self, url: str) -> None:
        answer = await self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise Refused(answer["errorText"])
        await eventually(self._is_complete, seconds=ANSWER_SECONDS)

    async def see(self, *, width: int, height: int, scheme: str = "light") -> None:
        """Be a screen of that size, in pixels, whose owner prefers that scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await self.call("Emulation.setEmulatedMedia", features=[feature])

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; it must be plain JSON."""
        answer = await self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            raise Refused(_description(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def hear(self, method: str, parameters: Message) -> None:
        match method, parameters:
            case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                self.complaints.append(_description(details))
            case "Runtime.consoleAPICalled", {"type": "error" | "warning" | "assert"}:
                said = [str(each.get("value")) for each in parameters["args"]]
                self.complaints.append(" ".join(said))
            case "Log.entryAdded", {"entry": {"level": "error" | "warning"} as entry}:
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")

    async def _is_complete(self) -> bool:
        state = await self.evaluate("[document.readyState, location.href]")
        return bool(state[0] == "complete" and state[1] != "about:blank")


class Browser:
    """A Chromium of its own while it is entered; ``directory`` is all it may write."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program = program
        self._directory = directory
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._tabs: dict[str, Tab] = {}

    async def __aenter__(self) -> Self:
        self._directory.mkdir()
        self._process = await asyncio.create_subprocess_exec(
            self._program,
            f"--user-data-dir={self._directory}",
            *FLAGS,
            env={**os.environ, "HOME": str(self._directory)},
            stdout=DEVNULL,
            stderr=DEVNULL,
        )
        try:
            self._connection = await self._connect(self._process)
        except BaseException:
            await self._end()
            raise
        self._reader = asyncio.create_task(self._read(self._connection))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._connection.close()
        await self._reader
        await self._end()

    async def new_tab(self) -> Tab:
        made = await self.call("Target.createTarget", {"url": "about:blank"})
        attached = await self.call(
            "Target.attachToTarget", {"targetId": made["targetId"], "flatten": True}
        )
        tab = Tab(self, attached["sessionId"])
        self._tabs[tab.session] = tab
        for domain in ("Page", "Runtime", "Log"):
            await tab.call(f"{domain}.enable")
        return tab

    async def call(
        self, method: str, parameters: Message, session: str | None = None
    ) -> Message:
        """Raises `Refused`, and `TimeoutError`."""
        number = next(self._ids)
        request: Message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            request["sessionId"] = session
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._connection.send(json.dumps(request))
        async with asyncio.timeout(ANSWER_SECONDS):
            answered: Message = await answer
            return answered

    async def _connect(self, process: Process) -> ClientConnection:
        """By the address the browser leaves in its directory."""
        told = self._directory / "DevToolsActivePort"

        def is_told() -> bool:
            if process.returncode is not None:
                raise Refused(f"the browser ended with code {process.returncode}")
            return told.exists() and len(told.read_text().splitlines()) == 2

        await eventually(is_told, seconds=START_SECONDS)
        port, path = told.read_text().splitlines()
        return await connect(
            f"ws://127.0.0.1:{port}{path}",
            max_size=None,
            proxy=None,
            open_timeout=START_SECONDS,
        )

    async def _read(self, connection: ClientConnection) -> None:
        try:
            async for text in connection:
                self._hear(json.loads(text))
        except ConnectionClosed:
            pass  # the browser was faster than its farewell
        for answer in self._answers.values():
            answer.cancel()

    def _hear(self, message: Message) -> None:
        answer = self._answers.pop(message.get("id", 0), None)
        if answer is not None and not answer.done():
            if "error" in message:
                answer.set_exception(Refused(message["error"]["message"]))
            else:
                answer.set_result(message["result"])
        elif tab := self._tabs.get(message.get("sessionId", "")):
            tab.hear(message.get("method", ""), message.get("params", {}))

    async def _end(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(10):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
        await self._process.wait()


def _description(details: Message) -> str:
    exception = details.get("exception", {})
    return str(exception.get("description") or details.get("text"))
