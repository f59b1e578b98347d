"""Live clients over real connections: websockets and event streams, some slow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp

from hub.live.prepared_message import PreparedMessage
from protocols.live.live_messages import NotificationMessage, Reset
from tests.simulation.listeners import Listener


class LiveReader:
    """Connects, reads for a while, leaves, and comes again with its cursor.

    ``heard`` counts the notifications of all connections.
    """

    def __init__(self, listener: Listener, url: str, *, is_socket: bool, pause: float):
        """Take ``pause``: the seconds between two messages that it reads."""
        self.listener = listener
        self.has_left = False
        self.is_connected = False
        self.heard = 0
        self._url = f"{url}/stream"
        self._is_socket = is_socket
        self._pause = pause
        self._stays = False
        self._leaving: asyncio.Timeout | None = None

    async def find_cursor(self) -> str:
        """The cursor of the log's end now. Raises `aiohttp.ClientError`."""
        query = {"topic": self.listener.topic}
        async with aiohttp.ClientSession() as session:
            async for message in self._of_socket(session, query):
                return str(message["cursor"])
        raise aiohttp.ServerDisconnectedError

    async def run(self) -> None:
        """Connect and read, again and again until cancelled."""
        random = self.listener.random
        async with aiohttp.ClientSession() as session:
            while True:
                seconds = None if self._stays else random.uniform(0.1, 8)
                try:
                    async with asyncio.timeout(seconds) as self._leaving:
                        await self._read(session)
                except (aiohttp.ClientError, TimeoutError, OSError):
                    pass  # the hub is gone, or this one is
                finally:
                    self._leaving, self.is_connected = None, False
                await asyncio.sleep(random.uniform(0, 0.5))

    def stay(self) -> None:
        """Neither leave nor be slow from now on."""
        self._stays, self._pause = True, 0.0
        self._leave_at(None)

    def drop(self) -> None:
        """Break off the connection, and come again."""
        if not self._stays:
            self._leave_at(asyncio.get_running_loop().time())

    def _leave_at(self, moment: float | None) -> None:
        if self._leaving is not None:
            with suppress(RuntimeError):  # it is just leaving
                self._leaving.reschedule(moment)

    def judge(self, last: int) -> list[str]:
        """What is wrong, if all up to that entry was to come, or all until it left."""
        listener = self.listener
        return listener.judge(
            max(listener.numbers, default=0) if self.has_left else last
        )

    async def _read(self, session: aiohttp.ClientSession) -> None:
        query = {"topic": self.listener.topic}
        if self.listener.cursor:
            query["cursor"] = self.listener.cursor
        messages = self._of_socket if self._is_socket else self._of_events
        async for message in messages(session, query):
            self._take(message)
            if self._pause:
                await asyncio.sleep(self._pause)

    async def _of_socket(
        self, session: aiohttp.ClientSession, query: dict[str, str]
    ) -> AsyncIterator[dict[str, Any]]:
        async with session.ws_connect(self._url, params=query) as socket:
            self._connected()
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    yield json.loads(message.data)

    async def _of_events(
        self, session: aiohttp.ClientSession, query: dict[str, str]
    ) -> AsyncIterator[dict[str, Any]]:
        headers = {"Accept": "text/event-stream"}
        async with session.get(self._url, params=query, headers=headers) as answer:
            if answer.status != 200:
                return
            self._connected()
            async for line in answer.content:
                if line.startswith(b"data:") and line.strip() != b"data:":
                    yield json.loads(line[5:])

    def _connected(self) -> None:
        self.listener.connections += 1
        self.is_connected = True

    def _take(self, message: dict[str, Any]) -> None:
        topic, cursor = message.get("topic", ""), message.get("cursor", "")
        if message.get("type") == "notification":
            self.heard += 1
            body = message["body"]
            told = NotificationMessage(
                topic=topic,
                cursor=cursor,
                prev=message.get("prev"),
                kind=message.get("kind", ""),
                body=body if isinstance(body, str) else json.dumps(body),
            )
            self.listener.take(PreparedMessage(told))
        elif message.get("type") == "reset":
            self.listener.take(PreparedMessage(Reset(topic=topic, cursor=cursor)))
