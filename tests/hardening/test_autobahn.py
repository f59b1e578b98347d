"""`/stream` under the cases of the Autobahn test suite, by their numbers.

The hub echoes nothing and takes no binary messages; what that makes of each case is
said in `tests.support.autobahn`; docs/explanation/reliability-tests.md says which ones
do not apply.
One hub serves them all: none may harm it for the next.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from itertools import product

import orjson
import pytest
import pytest_asyncio

from tests.support.autobahn import (
    CASES,
    LARGEST,
    LIMIT_CASES,
    NORMAL,
    TEXT_CASES,
    TOO_LARGE,
    Case,
    echo,
)
from tests.support.live_hub import LiveHub, live_hub
from tests.support.raw_websocket import (
    CLOSE,
    CONTINUATION,
    PONG,
    TEXT,
    RawFrame,
    RawWebSocket,
    frame,
    raw_websocket,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = {**CASES, **TEXT_CASES, **LIMIT_CASES}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveHub]:
    """One that sends no pings itself."""
    directory = tmp_path_factory.mktemp("autobahn")
    async with live_hub(directory, ping_seconds=600) as hub:
        yield hub


async def send(client: RawWebSocket, case: Case) -> None:
    whole = b"".join(case.frames)
    size = case.chop or len(whole)
    for start in range(0, len(whole), size):
        client.send(whole[start : start + size])
        await client.drain()
        await asyncio.sleep(0)  # so that the hub may read it in pieces


def answer_of(told: RawFrame) -> str | bytes:
    """An id that is echoed, or what a pong carries."""
    if told.opcode == PONG:
        return told.payload
    assert told.opcode == TEXT, told
    return str(told.message.get("id", ""))


@pytest.mark.parametrize(
    "number", [pytest.param(it, id=f"{it} {ALL[it].sentence}") for it in ALL]
)
async def test_a_case_is_passed(hub: LiveHub, number: str) -> None:
    case = ALL[number]
    async with raw_websocket(hub.port) as client:
        await send(client, case)
        for expected in case.answers:
            assert answer_of(await client.receive()) == expected
        if case.code is None:
            client.send(frame(CLOSE, NORMAL.to_bytes(2)))
        told = await client.farewell(is_polite=True)
    assert (told.code or 0) == (NORMAL if case.code is None else case.code)


# --- compression ----------------------------------------------------------------------

OFFERS = {
    "12": "permessage-deflate; client_max_window_bits",
    "13.1": "permessage-deflate; client_no_context_takeover; client_max_window_bits",
    "13.2": "permessage-deflate; server_no_context_takeover; client_max_window_bits",
    "13.3": "permessage-deflate; server_max_window_bits=8; client_max_window_bits",
    "13.4": "permessage-deflate; server_max_window_bits=15; client_max_window_bits",
    "13.5": "permessage-deflate; server_no_context_takeover; server_max_window_bits=8",
    "13.6": "permessage-deflate; server_no_context_takeover; server_max_window_bits=15",
    "13.7": "permessage-deflate; server_no_context_takeover; server_max_window_bits=8,"
    " permessage-deflate; server_no_context_takeover, permessage-deflate",
}
SIZES = (16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536)
"""Bytes of a message; the suite has 131,072 too, which is more than the hub takes."""
CUTS = (0, 256)
"""Bytes of a fragment; 0: in one."""
EACH = 3


class Compressed:
    """The client's side of a connection with what the hub agreed to."""

    def __init__(self, client: RawWebSocket, offer: str, agreed: str) -> None:
        self._client = client
        self._takes_over = "client_no_context_takeover" not in agreed
        self._bits = _bits(agreed, "client_max_window_bits")
        self._server_bits = _bits(agreed, "server_max_window_bits")
        offered = [_bits(each, "server_max_window_bits") for each in offer.split(",")]
        assert self._server_bits <= max(offered)
        assert "client_max_window_bits" not in agreed or "client_max" in offer
        self._compressor = self._new()

    def _new(self) -> zlib._Compress:
        return zlib.compressobj(wbits=-self._bits)

    def send(self, message: bytes, cut: int) -> None:
        if not self._takes_over:
            self._compressor = self._new()
        data = self._compressor.compress(message)
        data += self._compressor.flush(zlib.Z_SYNC_FLUSH)
        data = data.removesuffix(b"\x00\x00\xff\xff")
        pieces = [data[at : at + cut] for at in range(0, len(data), cut or len(data))]
        if not cut:
            pieces = [data]
        last = len(pieces) - 1
        for number, piece in enumerate(pieces):
            opcode, rsv = (CONTINUATION, 0) if number else (TEXT, 4)
            is_final = number == last
            self._client.send(frame(opcode, piece, is_final=is_final, rsv=rsv))

    async def answer(self) -> str:
        told = await self._client.receive()
        if told.rsv == 4:
            inflated = zlib.decompress(
                told.payload + b"\x00\x00\xff\xff", wbits=-max(9, self._server_bits)
            )
            told = RawFrame(told.opcode, inflated)
        found = orjson.loads(told.payload)
        return str(found["id"])


def _bits(parameters: str, name: str) -> int:
    """15 is what RFC 7692 7.1.2 has where nothing is said."""
    _before, found, after = parameters.partition(f"{name}=")
    return int(after.split(";")[0].split(",")[0]) if found else 15


@pytest.mark.parametrize("number", ["13.3", "13.5"])
async def test_a_window_of_256_bytes_is_declined_and_all_goes_uncompressed(
    hub: LiveHub, number: str
) -> None:
    """RFC 7692 7.1.2.1 leaves that to the server; zlib has no such window."""
    extra = f"Sec-WebSocket-Extensions: {OFFERS[number]}\r\n"
    async with raw_websocket(hub.port, extra=extra) as client:
        assert "sec-websocket-extensions" not in client.headers
        client.send(frame(TEXT, echo("plain")))
        assert answer_of(await client.receive()) == "plain"


@pytest.mark.parametrize("number", [it for it in OFFERS if it not in ("13.3", "13.5")])
async def test_compressed_messages_of_every_size_are_understood(
    hub: LiveHub, number: str
) -> None:
    extra = f"Sec-WebSocket-Extensions: {OFFERS[number]}\r\n"
    async with raw_websocket(hub.port, extra=extra) as client:
        agreed = client.headers["sec-websocket-extensions"]
        compressed = Compressed(client, OFFERS[number], agreed)
        for size, cut, turn in product(SIZES, CUTS, range(EACH)):
            id = f"{size}/{cut}/{turn} äöü€𤭢"
            compressed.send(echo(id, size), cut)
            assert await compressed.answer() == id
        compressed.send(echo("too large", 2 * LARGEST), 0)
        assert (await client.farewell()).code == TOO_LARGE
