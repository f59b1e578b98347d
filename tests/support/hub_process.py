"""A real hub in a process of its own, to be asked, stopped and killed; and its API."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from tests.support.admin import ADMIN, TOKEN
from tests.support.chosen_engine import make_for_hub, variables_of
from tests.support.nursery import ForkedHub, fork_hub

LOOPBACK = {"FANFARE_ALLOW_NETWORKS": "127.0.0.0/8"}


class HubDied(Exception):
    """The hub ended although nobody had it end; its message is the end of its log."""


@dataclass(slots=True)
class HubProcess:
    """One database directory and, while it runs, the process that owns it.

    `start`, `kill` and `terminate` may alternate as often as a test likes; the port
    stays the same. ``log`` has what all of the processes printed.
    """

    directory: Path
    settings: Mapping[str, str] = field(default_factory=lambda: LOOPBACK)
    log: list[str] = field(default_factory=list)
    port: int = field(default_factory=lambda: free_port())
    _process: ForkedHub | None = None
    _reader: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        """Its file, or what names it (see `tests.support.chosen_engine`)."""
        return self.directory / "hub.db"

    @property
    def location(self) -> dict[str, str]:
        """The variables by which it finds its database, unless ``settings`` do."""
        if "FANFARE_DATABASE" in self.settings:
            return {}
        return variables_of(self.database)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def __aenter__(self) -> Self:
        await self.start()
        await self.wait_ready()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_running:
            await self.kill()
        elif self._process is not None:
            await self.wait_exit()

    async def start(self, *, failpoint: str = "") -> None:
        """Start the process, which is not ready yet (see `wait_ready`)."""
        if "FANFARE_DATABASE" not in self.settings:
            await make_for_hub(self.database)
        environment = self._environment(failpoint)
        self._process = await fork_hub("serve", environment=environment)
        self._reader = asyncio.create_task(self._read_log(self._process))

    async def wait_ready(self, seconds: float = 60.0) -> None:
        """Wait until ``/readyz`` answers 200. Raises `HubDied` or `TimeoutError`."""
        async with asyncio.timeout(seconds), aiohttp.ClientSession() as session:
            while True:
                if not self.is_running:
                    raise HubDied(self.last_words)
                try:
                    async with session.get(f"{self.url}/readyz") as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass  # not listening yet
                await asyncio.sleep(0.02)

    async def kill(self) -> float:
        """Send SIGKILL, and wait for the end; return the moment of the kill."""
        return await self._stop(signal.SIGKILL)

    async def terminate(self) -> int:
        """Send SIGTERM, and wait for the end; return the exit code."""
        await self._stop(signal.SIGTERM)
        assert self._process is not None
        assert self._process.returncode is not None
        return self._process.returncode

    async def wait_exit(self) -> float:
        """Wait until the process ends by itself; return when that was noticed."""
        assert self._process is not None
        assert self._reader is not None
        await self._process.wait()
        ended = monotonic()
        await self._reader
        return ended

    @property
    def last_words(self) -> str:
        return "\n".join(self.log[-30:])

    async def _stop(self, with_signal: signal.Signals) -> float:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(with_signal)
        moment = monotonic()
        async with asyncio.timeout(60):
            await self.wait_exit()
        return moment

    async def _read_log(self, process: ForkedHub) -> None:
        async for line in process.stdout:
            self.log.append(line.decode(errors="replace").rstrip())

    def _environment(self, failpoint: str) -> dict[str, str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("FANFARE_")
        }
        return {
            **inherited,
            **self.location,
            "FANFARE_PORT": str(self.port),
            "FANFARE_PUBLIC_URL": self.url,
            "FANFARE_ADMIN_TOKEN": TOKEN,
            "FANFARE_CONTACT": "https://hub.example/contact",
            **self.settings,
            **({"FANFARE_FAILPOINT": failpoint} if failpoint else {}),
        }


def free_port() -> int:
    """A port below the ephemeral range, so that no connection takes it between runs."""
    for port in random.SystemRandom().sample(range(18_000, 32_000), 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("found no free port")


@dataclass(frozen=True, slots=True)
class HubAnswer:
    status: int
    headers: Mapping[str, str]  # names in any case
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HubApi:
    """A client of a hub: of its operator's API, and of what else anybody may ask.

    Use it as an async context manager. Methods other than `ask` raise
    `aiohttp.ClientError` when the hub is gone or answers an error.
    """

    def __init__(self, url: str, seconds: float = 30.0) -> None:
        """Take the hub's URL, and the deadline of an answer in seconds."""
        self._url = url
        # Less than a hub keeps a connection, so that none is used while it is closed.
        connector = aiohttp.TCPConnector(keepalive_timeout=2.0)
        timeout = aiohttp.ClientTimeout(total=seconds)
        self.session = aiohttp.ClientSession(connector=connector, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.session.close()

    async def ask(self, method: str, where: str, **options: Any) -> HubAnswer:
        """Send a request without a token, unless ``headers`` have one.

        ``where``: a path of the hub, or a URL.
        """
        url = f"{self._url}{where}" if where.startswith("/") else where
        async with self.session.request(method, url, **options) as answer:
            return HubAnswer(answer.status, answer.headers, await answer.read())

    async def request(self, method: str, path: str, **values: Any) -> Any:
        """Send a request as the operator; ``values`` are the JSON body."""
        url = f"{self._url}{path}"
        async with self.session.request(
            method, url, json=values or None, headers=ADMIN, raise_for_status=True
        ) as answer:
            text = await answer.text()
            return json.loads(text) if text else None

    async def bring(self, topic: str, content: bytes, signature: str) -> HubAnswer:
        """Send a publisher's ping that has the new content."""
        form = {
            "hub.mode": "publish",
            "hub.url": topic,
            "hub.content": content.decode(),
            "hub.signature": signature,
        }
        return await self.ask("POST", "/", data=form)

    async def create_token(self, account: str, *scopes: str) -> str:
        made = await self.request("POST", "/api/tokens", account=account, scopes=scopes)
        return str(made["token"])

    async def add_feed(self, url: str, **more: Any) -> int:
        return int((await self.request("POST", "/api/feeds", url=url, **more))["id"])

    async def find_feed(self, url: str) -> int:
        """The id of a feed that the hub has."""
        found = await self.request("GET", f"/api/feeds?url={quote(url, safe='')}")
        return int(found["feeds"][0]["id"])

    async def remove_feed(self, feed_id: int) -> None:
        await self.request("DELETE", f"/api/feeds/{feed_id}")

    async def feed(self, feed_id: int) -> dict[str, Any]:
        found: dict[str, Any] = await self.request("GET", f"/api/feeds/{feed_id}")
        return found

    async def fetch(self, feed_id: int) -> None:
        await self.request("POST", f"/api/feeds/{feed_id}/fetch")

    async def subscribe(self, **subscription: Any) -> int:
        made = await self.request("POST", "/api/subscriptions", **subscription)
        return int(made["id"])

    async def subscription(self, subscription_id: int) -> dict[str, Any]:
        found: dict[str, Any] = await self.request(
            "GET", f"/api/subscriptions/{subscription_id}"
        )
        return found

    async def subscriptions(self) -> dict[str, int]:
        """Ids of the active subscriptions, the first thousand, by callback."""
        listed = await self.request("GET", "/api/subscriptions?limit=1000")
        return {each["callback"]: each["id"] for each in listed["subscriptions"]}

    async def deliveries(self) -> dict[str, list[dict[str, Any]]]:
        listed: dict[str, list[dict[str, Any]]] = await self.request(
            "GET", "/api/deliveries"
        )
        return listed

    async def retry(self, subscription_id: int) -> None:
        """Make a retrying subscription due now; does nothing to any other."""
        body = {"subscription": subscription_id}
        await self.ask("POST", "/api/deliveries/retry", json=body, headers=ADMIN)
