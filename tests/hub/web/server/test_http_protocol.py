"""Who connects and says nothing, or not enough, or without end, is not waited for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from hub.web.server.http_protocol import HttpProtocol
from tests.support.live_hub import LiveHub, live_hub
from tests.support.raw_websocket import PING, RawWebSocket, frame
from tests.support.waiting import eventually


@pytest.fixture
async def patient_hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    async with live_hub(tmp_path) as hub:
        yield hub


@pytest.fixture
async def hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiveHub]:
    monkeypatch.setattr("hub.web.server.http_protocol.HEAD_SECONDS", 0.2)
    async with live_hub(tmp_path) as hub:
        yield hub


@pytest.mark.parametrize(
    "begun", ["", "GET /stream HTTP/1.1\r\n", "GET /stream HTTP/1.1\r\nUpgrade: websoc"]
)
async def test_a_head_that_does_not_come_to_its_end_is_cut_off(
    hub: LiveHub, begun: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(begun.encode())
    async with asyncio.timeout(60):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("rest", [b"\r\n", b"x"])
async def test_what_comes_after_an_answer_and_is_no_request_is_not_waited_for(
    hub: LiveHub, rest: bytes
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    length = b"Content-Length: 99\r\n" if rest == b"x" else b""
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n%b\r\n" % length)
    await reader.readuntil(b"}")
    writer.write(rest)
    async with asyncio.timeout(60):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


async def test_the_rest_of_a_body_that_was_answered_already_is_taken_for_no_head(
    patient_hub: LiveHub,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    asked = b"GET /healthz HTTP/1.1\r\nHost: hub\r\n"
    writer.write(b"%bContent-Length: 1000000\r\n\r\n" % asked)
    await reader.readuntil(b"}")
    for _ in range(10):
        writer.write(b"x" * 100_000)
        await writer.drain()
        await asyncio.sleep(0)
    writer.write(asked + b"\r\n")
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_an_upgrade_after_another_request_is_not_cut_off(hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
    await reader.readuntil(b"}")
    writer.write(
        b"GET /stream HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    client = RawWebSocket(reader, writer)
    await asyncio.sleep(0.4)
    client.send(frame(PING, b"still here"))
    assert (await client.receive()).payload == b"still here"
    client.abort()


async def test_a_whole_head_is_given_time(hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    for _ in range(2):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(b'{"alive":true}'))
    async with hub.connect() as client:
        await asyncio.sleep(0.4)
        await client.ping()
    writer.close()


class SlowWire(asyncio.Transport):
    """A connection whose other end takes a byte each time somebody looks, ``takes``

    times, and then nothing.
    """

    def __init__(self, takes: int) -> None:
        super().__init__()
        self.takes = takes
        self.looks = 0
        self.ended = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        self.looks += 1
        return 10**6 - min(self.looks, self.takes)

    def abort(self) -> None:
        self.ended.set()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def close(self) -> None:
        self.ended.set()


class ImpatientProtocol(HttpProtocol):
    stall_seconds = 0.01


def slow_connection(takes: int) -> tuple[HttpProtocol, SlowWire]:
    """One to which more was written than is taken at once."""
    config = uvicorn.Config(Starlette(), lifespan="off", log_config=None)
    config.load()
    protocol, wire = ImpatientProtocol(config, ServerState(), {}), SlowWire(takes)
    protocol.connection_made(wire)
    protocol.pause_writing()
    return protocol, wire


@pytest.mark.parametrize("takes", [0, 20])
async def test_who_takes_nothing_more_of_an_answer_is_cut_off(takes: int) -> None:
    protocol, wire = slow_connection(takes)
    async with asyncio.timeout(60):
        await wire.ended.wait()
    assert wire.looks >= takes
    protocol.connection_lost(None)


async def test_who_takes_the_answer_however_slowly_is_not() -> None:
    protocol, wire = slow_connection(takes=10**6)
    await eventually(lambda: wire.looks > 20)
    protocol.resume_writing()
    looks = wire.looks
    await asyncio.sleep(0.1)
    assert wire.looks == looks
    assert not wire.ended.is_set()
    protocol.connection_lost(None)


async def test_a_head_that_is_too_large_is_refused(patient_hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 60_000)
    await writer.drain()
    writer.write(b"x" * 10_000)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b"content-length: %d\r\n" % len(answer.partition(b"\r\n\r\n")[2]) in answer


async def test_a_head_without_end_is_not_read_on(patient_hub: LiveHub) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nX: ")

    async def go_on() -> None:
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()
            await asyncio.sleep(0)

    async with asyncio.timeout(20):
        with pytest.raises(ConnectionError):
            await go_on()
    writer.close()


async def test_a_head_is_counted_and_a_body_is_not(patient_hub: LiveHub) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    for _ in range(3):
        body = b"hub.mode=" + b"x" * 200_000
        writer.write(
            b"POST /hub HTTP/1.1\r\nHost: hub\r\nX: %s\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: %d\r\n\r\n" % (b"y" * 30_000, len(body))
        )
        for start in range(0, len(body), 50_000):
            writer.write(body[start : start + 50_000])
            await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        length = re.search(rb"content-length: (\d+)", head)
        assert length is not None
        assert (await reader.readexactly(int(length[1]))).startswith(b"hub.mode:")
    writer.close()


CHUNKED = (
    b"POST /hub HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
)


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (b"0\r\n", b"X: x\r\n"),
        (b"0\r\n", b"X: " + b"x" * 5_000 + b"\r\n"),
        (b"0\r\nX: ", b"x" * 10_000),
        (b"1;", b"x" * 10_000),
        (b"1\r\nx\r\n", b"0"),
    ],
    ids=["many trailers", "long trailers", "one trailer", "an extension", "a size"],
)
async def test_what_is_beside_a_body_is_not_read_without_end(
    patient_hub: LiveHub, begun: bytes, more: bytes
) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    writer.write(CHUNKED + begun)

    async def go_on() -> None:
        while True:
            writer.write(more * (10_000 // len(more)))
            await writer.drain()
            await asyncio.sleep(0)

    async with asyncio.timeout(20):
        with pytest.raises(ConnectionError):
            await go_on()
    writer.close()


async def test_a_body_in_small_chunks_may_be_as_long_as_any(
    patient_hub: LiveHub,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    writer.write(CHUNKED)
    for _ in range(20):
        writer.write(b"1\r\nx\r\n" * 1_000)
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    assert b" 400 " in await reader.readuntil(b"\r\n\r\n")
    writer.close()


async def test_a_trailer_is_no_header() -> None:
    seen: list[list[tuple[bytes, bytes]]] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        seen.append(list(scope["headers"]))
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})

    config = uvicorn.Config(application, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    protocol = HttpProtocol(config, state, {})
    protocol.connection_made(SlowWire(takes=0))
    protocol.data_received(
        b"POST / HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\nAuthorization: Bearer x\r\n\r\n"
    )
    await asyncio.gather(*state.tasks)
    assert seen == [[(b"host", b"hub"), (b"transfer-encoding", b"chunked")]]
    protocol.connection_lost(None)


H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
"""What `curl --http2` and Java's `HttpClient` add to a request by http."""
FORM = b"hub.mode=nonsense"


@pytest.mark.parametrize(
    ("upgrade", "version"),
    [
        (H2C, b"1.1"),
        (H2C, b"1.0"),
        (b"Connection: keep-alive\r\nConnection: upgrade\r\nUpgrade: h2c\r\n", b"1.1"),
        (b"Connection: upgrade\r\nUpgrade: TLS/1.0\r\nUpgrade: h2c\r\n", b"1.1"),
        (b"Connection: upgrade\r\nUpgrade: websocket\r\n", b"1.1"),
    ],
    ids=["h2c", "of http 1.0", "connection twice", "upgrade twice", "a websocket"],
)
@pytest.mark.parametrize("way", ["at once", "expecting", "in chunks"])
@pytest.mark.parametrize("pieces", [1, 400])
async def test_a_request_whose_upgrade_is_not_taken_is_served_with_its_body(
    patient_hub: LiveHub, upgrade: bytes, version: bytes, way: str, pieces: int
) -> None:
    framing, body = b"Content-Length: %d\r\n" % len(FORM), FORM
    if way == "expecting":
        framing += b"Expect: 100-continue\r\n"
    if way == "in chunks" and version == b"1.1":
        framing = b"Transfer-Encoding: chunked\r\n"
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(FORM), FORM)
    request = (
        b"POST /hub HTTP/%b\r\nHost: hub\r\n%b%b"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\n%b"
        % (version, upgrade, framing, body)
    )
    if version == b"1.1":
        request += b"GET /healthz HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
    size = -(-len(request) // pieces)
    for start in range(0, len(request), size):
        writer.write(request[start : start + size])
        await writer.drain()
        await asyncio.sleep(0)
    answers = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    answers = answers.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
    assert answers.startswith(b"HTTP/1.1 400 ")
    assert b"\r\n\r\nhub.mode: expected" in answers
    assert b"nonsense" in answers
    assert version == b"1.0" or answers.endswith(b'{"alive":true}')


@pytest.mark.parametrize("door", ["/hub", "/", "/hubbub", "/superfeedr", "/api/feeds"])
async def test_every_door_takes_the_body_of_a_request_that_offers_an_upgrade(
    patient_hub: LiveHub, door: str
) -> None:
    answers = []
    for offered in (b"", H2C):
        reader, writer = await asyncio.open_connection("127.0.0.1", patient_hub.port)
        writer.write(
            b"POST %b HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n%b"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (door.encode(), offered, len(FORM), FORM)
        )
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        answers.append(re.sub(rb"\r\ndate: [^\r]*", b"", answer))
    assert answers[0] == answers[1]
