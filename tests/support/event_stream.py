"""Server-sent events, read as the HTML standard has clients read them; and a client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    data: str
    last_id: str


@dataclass
class EventParser:
    """A parser that gets bytes as they come; ``last_id`` is for a reconnect."""

    last_id: str = ""
    _rest: bytes = field(default=b"", init=False)
    _type: str = field(default="", init=False)
    _data: list[str] = field(default_factory=list, init=False)
    _id: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._id = self.last_id

    def feed(self, data: bytes) -> Iterator[Event]:
        *lines, self._rest = re.split(rb"\r\n|\r|\n", self._rest + data)
        for line in lines:
            if line:
                self._field(line.decode())
            else:
                yield from self._dispatch()

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._type = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value

    def _dispatch(self) -> Iterator[Event]:
        self.last_id = self._id
        if self._data:
            data = "\n".join(self._data)
            yield Event(self._type or "message", data, self.last_id)
        self._type, self._data = "", []


class EventClient:
    """Reads one answer of ``/stream`` on a connection of its own."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer
        self.parser = EventParser()
        self.status = 0
        self.headers: dict[str, str] = {}
        self._waiting: list[Event] = []

    async def next(
        self, kind: str = "notification", seconds: float = 60.0
    ) -> dict[str, Any]:
        """Return the data of the next event of that kind."""
        async with asyncio.timeout(seconds):
            while True:
                while self._waiting:
                    event = self._waiting.pop(0)
                    if event.type == kind:
                        found: dict[str, Any] = orjson.loads(event.data)
                        return found
                self._waiting += self.parser.feed(await self.chunk())

    async def chunk(self) -> bytes:
        """Return one chunk of the body. Raises `EOFError` at its end."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        data = await self._reader.readexactly(size + 2)
        if not size:
            raise EOFError
        return data[:-2]

    async def body(self) -> bytes:
        """Return the body of an answer that is no stream."""
        return await self._reader.readexactly(int(self.headers["content-length"]))

    def send(self, more: bytes) -> None:
        """Send bytes, which no client of an event stream does."""
        self._writer.write(more)

    def abort(self) -> None:
        self._writer.transport.abort()


async def request_events(port: int, target: str, **headers: str) -> EventClient:
    """Send a request, and read the head of the answer.

    Names in ``headers`` have _ in the place of -.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = EventClient(reader, writer)
    lines = [f"{name.replace('_', '-')}: {it}\r\n" for name, it in headers.items()]
    head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{''.join(lines)}\r\n"
    writer.write(head.encode())
    first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    client.status = int(first.split()[1])
    client.headers = {
        name.lower(): value for name, value in (line.split(": ", 1) for line in rest)
    }
    return client
