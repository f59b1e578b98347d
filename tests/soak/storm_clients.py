"""Live clients that are so thin that one process has thousands of them.

They have no tasks, queues or streams. Each knows which entry it has to get next, and
complains of any other. Every second one is a websocket, the others are event streams.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import cast
from urllib.parse import urlencode

import orjson
from websockets.frames import Opcode

from tests.support.publisher import entries_named_in
from tests.support.raw_websocket import CLOSE, PONG, frame

SOURCES = 8
"""Addresses that clients connect from, each of which has about 28,000 ports."""
LONGEST_PAUSE = 5.0
"""Most seconds between two attempts to come back."""
_DATA = re.compile(rb"^data: (.*)$", re.MULTILINE)
_ID = re.compile(rb"^id: (.*)$", re.MULTILINE)


@dataclass(slots=True)
class Client:
    """What one client has got over all its connections.

    ``next``: the number of the entry that it has to get next. ``target``: that of the
    one with which it has all that it missed; ``reached_at``: when that came.
    """

    number: int
    topic: str
    port: int
    next: int = 0
    cursor: str = ""
    connections: int = 0
    complaints: list[str] = field(default_factory=list)
    target: int = 0
    reached_at: float = 0.0
    code: int | None = None  # why the hub closed it
    told_at: float = 0.0  # when that was
    is_here: bool = False
    returns: bool = True  # by itself, when it lost the connection
    pauses: Callable[[], float] = random.random
    _link: Link | None = None
    _opening: asyncio.Task[None] | None = None
    _failures: int = 0

    @property
    def is_socket(self) -> bool:
        return self.number % 2 == 0

    def take(self, message: bytes, cursor: str = "") -> None:
        """Take one message of the hub, as JSON."""
        told = orjson.loads(message)
        kind = told["type"]
        if kind == "closed":
            return self.told(told["code"])
        if kind == "notification":
            for _feed, number in entries_named_in(message.decode()):
                self._count(number)
        elif kind not in ("subscribed", "heartbeat"):
            self.complaints.append(f"was told {kind}")
        self.cursor = told.get("cursor", self.cursor)
        self.is_here = True

    def told(self, code: int) -> None:
        """Note why the hub closes the connection."""
        self.code, self.told_at = code, monotonic()

    def move(self, cursor: str) -> None:
        """Take a comment with an id: the hub listens for it now."""
        self.cursor = cursor
        self.is_here = True

    def _count(self, number: int) -> None:
        if number != self.next:
            self.complaints.append(f"got entry {number} in place of {self.next}")
        self.next = number + 1
        if number == self.target:
            self.reached_at = monotonic()

    def connect(self) -> None:
        self._link = (SocketLink if self.is_socket else EventLink)(self)
        self._opening = asyncio.create_task(self._open(self._link))

    async def _open(self, link: Link) -> None:
        loop = asyncio.get_running_loop()
        source = f"127.0.0.{2 + self.number % SOURCES}", 0
        try:
            await loop.create_connection(
                lambda: link, "127.0.0.1", self.port, local_addr=source
            )
        except OSError:
            self.lost()

    def head(self) -> bytes:
        query = {"topic": self.topic}
        if self.cursor:
            query["cursor"] = self.cursor
        return (
            f"GET /stream?{urlencode(query)} HTTP/1.1\r\nHost: hub\r\n"
            f"{self._upgrade()}\r\n"
        ).encode()

    def _upgrade(self) -> str:
        if not self.is_socket:
            return "Accept: text/event-stream\r\n"
        return (
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        )

    def answered(self, status: bytes) -> None:
        if status in (b"101", b"200"):
            self.connections += 1
            self._failures = 0
        elif status != b"503":
            self.complaints.append(f"was answered {status.decode()}")

    def leave(self) -> None:
        """Lose the connection, as when the network is gone."""
        self.returns = False
        if self._link is not None:
            self._link.abort()

    async def end(self) -> None:
        self.leave()
        if self._opening is not None:
            await asyncio.wait([self._opening])

    def come_back(self) -> None:
        self.returns = True
        self.connect()

    def lost(self) -> None:
        self.is_here, self._link = False, None
        if not self.returns:
            return
        self._failures += 1
        pause = self.pauses() * min(LONGEST_PAUSE, 0.5 * 2**self._failures)
        asyncio.get_running_loop().call_later(pause, self._try_again)

    def _try_again(self) -> None:
        if self.returns and self._link is None:
            self.connect()


class Link(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._has_answer = False

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self.client.head())

    def connection_lost(self, exc: Exception | None) -> None:
        self.client.lost()

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self._has_answer:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            self._has_answer = True
            self.client.answered(bytes(self._data[9:12]))
            del self._data[: end + 4]
        while self._take_one():
            pass

    def _take_one(self) -> bool:
        """Whether there was a whole message, frame or chunk to take."""
        raise NotImplementedError

    def _cut(self, start: int, size: int, end: int) -> bytes | None:
        """Take the bytes from ``start`` once all up to ``end`` have come, else None."""
        if len(self._data) < end:
            return None
        found = bytes(self._data[start : start + size])
        del self._data[:end]
        return found


class SocketLink(Link):
    def _take_one(self) -> bool:
        if len(self._data) < 2:
            return False
        first, size, start = self._data[0], self._data[1] & 0x7F, 2
        if size > 125:
            start = 4 if size == 126 else 10
            if len(self._data) < start:
                return False
            size = int.from_bytes(self._data[2:start])
        payload = self._cut(start, size, start + size)
        if payload is None:
            return False
        self._hear(first & 0x0F, payload)
        return True

    def _hear(self, opcode: int, payload: bytes) -> None:
        assert self._transport is not None
        match opcode:
            case Opcode.TEXT:
                self.client.take(payload)
            case Opcode.PING:
                self._transport.write(frame(PONG, payload))
            case Opcode.CLOSE:
                self.client.told(int.from_bytes(payload[:2]))
                self._transport.write(frame(CLOSE, payload[:2]))


class EventLink(Link):
    def _take_one(self) -> bool:
        line = self._data.find(b"\r\n")
        if line < 0:
            return False
        try:
            size = int(self._data[:line], 16)
        except ValueError:  # the body of a refusal
            self.abort()
            return False
        chunk = self._cut(line + 2, size, line + 2 + size + 2)
        if chunk is None:
            return False
        if chunk:
            self._hear(chunk)
        else:  # the end of the answer; the connection could be used again
            self.abort()
        return bool(chunk)

    def _hear(self, event: bytes) -> None:
        """Take an event, which the hub writes as one chunk."""
        if data := _DATA.search(event):
            self.client.take(data[1])
        elif id := _ID.search(event):
            self.client.move(id[1].decode())


class SlowClient:
    """Asks for a topic and reads nothing, with the smallest buffer possible."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self._socket.setblocking(False)

    async def connect(self, port: int, head: bytes) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, ("127.0.0.1", port))
        await loop.sock_sendall(self._socket, head)

    def close(self) -> None:
        self._socket.close()
