"""``/stream`` and the frames of RFC 6455 and 7692, right and wrong ones.

The cases are those of the known test suites for websockets. Whoever breaks the rules is
told by a close frame with the code and a reason, and nobody else notices.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from websockets.asyncio.client import connect

from tests.support.live_hub import LiveHub, live_hub, next_message, titles
from tests.support.raw_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    DEFLATE,
    PING,
    PONG,
    TEXT,
    RawWebSocket,
    frame,
    open_websocket,
    raw_websocket,
)

NEWS = "https://news.example/feed"
SUBSCRIBE = orjson.dumps({"type": "subscribe", "topic": NEWS, "id": "ü"})
LARGEST = 64 * 1024


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[LiveHub]:
    """One that sends no pings itself, however long a test takes."""
    async with live_hub(tmp_path, ping_seconds=600) as hub:
        await hub.add_feed(NEWS)
        yield hub


@asynccontextmanager
async def misbehaving(hub: LiveHub, extra: str = "") -> AsyncIterator[RawWebSocket]:
    """A client beside another one, which must not notice."""
    async with (
        connect(hub.url(NEWS), ping_interval=None) as bystander,
        raw_websocket(hub.port, extra=extra) as client,
    ):
        await next_message(bystander)
        yield client
        await hub.publish(NEWS, "one")
        assert titles(await next_message(bystander)) == ["one"]


def deflated(payload: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-12)
    whole = compressor.compress(payload) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return whole.removesuffix(b"\x00\x00\xff\xff")


# --- what is right -------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, len(SUBSCRIBE)])
@pytest.mark.parametrize("with_pings", [False, True])
async def test_text_in_fragments_is_one_message_also_with_pings_between(
    hub: LiveHub, size: int, with_pings: bool
) -> None:
    pieces = [SUBSCRIBE[at : at + size] for at in range(0, len(SUBSCRIBE), size)]
    async with raw_websocket(hub.port) as client:
        client.send(frame(TEXT, pieces[0], is_final=False))
        for piece in pieces[1:]:
            if with_pings:
                client.send(frame(PING, b"between"))
            client.send(frame(CONTINUATION, piece, is_final=False))
        client.send(frame(CONTINUATION))
        for _ in pieces[1:] if with_pings else ():
            pong = await client.receive()
            assert (pong.opcode, pong.payload) == (PONG, b"between")
        assert (await client.receive()).message["id"] == "ü"


async def test_frames_may_come_byte_by_byte(hub: LiveHub) -> None:
    async with raw_websocket(hub.port) as client:
        for each in frame(TEXT, SUBSCRIBE):
            client.send(bytes([each]))
            await client.drain()
        assert (await client.receive()).message["type"] == "subscribed"


@pytest.mark.parametrize("payload", [b"", b"hello", bytes(range(125))])
async def test_pings_are_answered_with_what_they_carried(
    hub: LiveHub, payload: bytes
) -> None:
    async with raw_websocket(hub.port) as client:
        client.send(frame(PING, payload))
        pong = await client.receive()
    assert (pong.opcode, pong.payload) == (PONG, payload)


async def test_pongs_that_nobody_asked_for_are_passed_over(hub: LiveHub) -> None:
    async with raw_websocket(hub.port) as client:
        client.send(frame(PONG, b"unasked"), frame(TEXT, SUBSCRIBE))
        assert (await client.receive()).message["type"] == "subscribed"


async def test_the_largest_message_is_taken(hub: LiveHub) -> None:
    async with raw_websocket(hub.port) as client:
        client.send(frame(TEXT, SUBSCRIBE.ljust(LARGEST)))
        assert (await client.receive()).message["type"] == "subscribed"


async def test_a_compressed_message_is_understood(hub: LiveHub) -> None:
    async with raw_websocket(hub.port, extra=DEFLATE) as client:
        whole = deflated(SUBSCRIBE)
        client.send(frame(TEXT, whole[:9], is_final=False, rsv=4))
        client.send(frame(PING), frame(CONTINUATION, whole[9:]))
        assert (await client.receive()).opcode == PONG
        assert (await client.receive()).message["type"] == "subscribed"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        *(code.to_bytes(2) for code in (1000, 1001, 1002, 1003, 1007, 1011, 1014)),
        *(code.to_bytes(2) for code in (3000, 3999, 4000, 4999)),
        (1000).to_bytes(2) + "ü".encode() * 61,
    ],
)
async def test_a_close_is_answered_alike(hub: LiveHub, payload: bytes) -> None:
    async with misbehaving(hub) as client:
        client.send(frame(CLOSE, payload), frame(TEXT, SUBSCRIBE))
        told = await client.farewell()
    assert told.payload == payload


async def test_a_close_inside_a_message_is_answered_alike(hub: LiveHub) -> None:
    async with misbehaving(hub) as client:
        client.send(frame(TEXT, SUBSCRIBE[:9], is_final=False))
        client.send(
            frame(CLOSE, (1000).to_bytes(2)), frame(CONTINUATION, SUBSCRIBE[9:])
        )
        assert (await client.farewell()).code == 1000


# --- what is wrong --------------------------------------------------------------------

_CONTROL = (CLOSE, PING, PONG)
PROTOCOL_ERRORS = {
    **{f"opcode {code}": frame(code) for code in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    **{f"reserved bits {bits}": frame(TEXT, b"{}", rsv=bits) for bits in range(1, 8)},
    **{f"control {code} of 126": frame(code, bytes(126)) for code in _CONTROL},
    **{f"fragmented control {code}": frame(code, is_final=False) for code in _CONTROL},
    "not masked": frame(TEXT, b"{}", is_masked=False),
    "nothing to continue": frame(CONTINUATION, b"{}"),
    "a message inside a message": frame(TEXT, b"{", is_final=False) + frame(TEXT),
    "bytes inside a message": frame(TEXT, b"{", is_final=False) + frame(BINARY),
    "a close of one byte": frame(CLOSE, b"\x03"),
    **{
        f"close code {code}": frame(CLOSE, code.to_bytes(2))
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535)
    },
}
"""RFC 6455 5.2, 5.4, 5.5 and 7.4."""


@pytest.mark.parametrize("name", PROTOCOL_ERRORS)
async def test_a_breach_of_the_protocol_is_closed_as_one(
    hub: LiveHub, name: str
) -> None:
    async with misbehaving(hub) as client:
        client.send(PROTOCOL_ERRORS[name])
        told = await client.farewell()
    assert told.code == 1002
    assert told.payload[2:], "a reason"


@pytest.mark.parametrize(
    "broken",
    [
        frame(TEXT, b"\x07" * 50, rsv=4),
        frame(TEXT, deflated(SUBSCRIBE), is_final=False, rsv=4)
        + frame(CONTINUATION, rsv=4),
        frame(PING, rsv=4),
        frame(TEXT, rsv=2),
    ],
    ids=["not deflate", "bit on a continuation", "bit on a ping", "another bit"],
)
async def test_a_breach_of_the_compression_is_closed_as_one(
    hub: LiveHub, broken: bytes
) -> None:
    async with misbehaving(hub, DEFLATE) as client:
        client.send(broken)
        assert (await client.farewell()).code == 1002


@pytest.mark.parametrize(
    "text",
    [b"\xff", b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xc0\xaf"', b'"\xc3'],
    ids=["no start", "surrogate", "beyond Unicode", "overlong", "cut off"],
)
@pytest.mark.parametrize("in_fragments", [False, True])
async def test_text_that_is_not_utf_8_is_closed_as_such(
    hub: LiveHub, text: bytes, in_fragments: bool
) -> None:
    whole = [frame(TEXT, text)]
    if in_fragments:
        whole = [frame(TEXT, text[:2], is_final=False), frame(CONTINUATION, text[2:])]
    async with misbehaving(hub) as client:
        client.send(*whole)
        told = await client.farewell()
    assert told.code == 1007
    assert told.payload[2:], "a reason"


@pytest.mark.parametrize(
    "frames",
    [
        [frame(TEXT, b"\xff"), frame(TEXT, b"\xff"), frame(TEXT, SUBSCRIBE)],
        [frame(TEXT, b"\xff"), frame(PING, b"there?"), frame(PONG, b"there")],
        [frame(TEXT, b"\xff", is_final=False), frame(CONTINUATION, b"more")],
        [frame(TEXT, b"\xff", is_final=False), frame(PING), frame(CONTINUATION)],
    ],
    ids=["more text", "ping and pong", "its rest", "ping and its rest"],
)
async def test_what_comes_in_one_piece_with_such_a_text_changes_nothing(
    hub: LiveHub, caplog: pytest.LogCaptureFixture, frames: list[bytes]
) -> None:
    async with misbehaving(hub) as client:
        client.send(b"".join(frames))
        told = await client.farewell()
    assert told.code == 1007
    assert "Fatal error" not in caplog.text


async def test_a_close_reason_that_is_not_utf_8_is_closed_as_such(
    hub: LiveHub,
) -> None:
    async with misbehaving(hub) as client:
        client.send(frame(CLOSE, (1000).to_bytes(2) + b"\xff"))
        assert (await client.farewell()).code == 1007


# --- what is too much -----------------------------------------------------------------

_HALF = SUBSCRIBE.ljust(LARGEST // 2 + 1)
TOO_LARGE = {
    "claimed": frame(TEXT, b"{", length=LARGEST + 1),
    "claimed to be huge": frame(TEXT, b"{", length=2**62),
    "sent": frame(TEXT, bytes(LARGEST + 1)),
    "sent on and on": frame(TEXT, bytes(32 * 2**20)),
    "in fragments": frame(TEXT, _HALF, is_final=False) + frame(CONTINUATION, _HALF),
}


@pytest.mark.parametrize("name", TOO_LARGE)
async def test_a_message_that_is_too_large_is_closed_with_a_reason(
    hub: LiveHub, name: str
) -> None:
    async with misbehaving(hub) as client:
        client.send(TOO_LARGE[name])
        told = await client.farewell()
    assert told.code == 1009
    assert told.payload[2:], "a reason"


@pytest.mark.parametrize("in_fragments", [False, True])
async def test_a_small_message_that_inflates_to_a_huge_one_is_too_large(
    hub: LiveHub, in_fragments: bool
) -> None:
    bomb = deflated(bytes(50 * 2**20))
    assert len(bomb) < LARGEST
    whole = [frame(TEXT, bomb, rsv=4)]
    if in_fragments:
        half = len(bomb) // 2
        whole = [
            frame(TEXT, bomb[:half], is_final=False, rsv=4),
            frame(CONTINUATION, bomb[half:]),
        ]
    async with misbehaving(hub, DEFLATE) as client:
        client.send(*whole)
        assert (await client.farewell()).code == 1009


@pytest.mark.parametrize("payload", [b"", b" "])
async def test_a_message_of_very_many_fragments_is_closed_with_a_reason(
    hub: LiveHub, payload: bytes
) -> None:
    async with misbehaving(hub) as client:
        client.send(frame(TEXT, b"{", is_final=False))
        client.send(frame(CONTINUATION, payload, is_final=False) * 100_000)
        told = await client.farewell()
    assert (told.code, told.payload[2:]) == (1008, b"too many fragments")


@pytest.mark.bulk
async def test_a_hundred_thousand_subscribe_messages_are_closed_with_a_reason(
    hub: LiveHub,
) -> None:
    async with misbehaving(hub) as client:
        client.send(frame(TEXT, SUBSCRIBE) * 100_000)
        told = await client.farewell()
    assert (told.code, told.payload[2:]) == (1008, b"too many messages")


async def test_garbage_is_closed_with_a_reason(hub: LiveHub) -> None:
    garbage = random.Random(1).randbytes(100_000)
    async with misbehaving(hub) as client:
        client.send(b"\xf0" + garbage)
        assert (await client.farewell()).code == 1002


async def test_who_is_silent_and_answers_no_ping_is_closed_with_a_reason(
    tmp_path: Path,
) -> None:
    async with (
        live_hub(tmp_path, ping_seconds=0.2) as hub,
        raw_websocket(hub.port) as client,
    ):
        assert (await client.receive()).opcode == PING
        told = await client.farewell()
    assert (told.code, told.payload[2:]) == (1011, b"keepalive ping timeout")


async def test_who_answers_pings_stays_whatever_it_has_sent(tmp_path: Path) -> None:
    """The hub goes on reading, after a message too: the next ping shows it."""
    async with (
        live_hub(tmp_path, ping_seconds=0.05, pong_seconds=600) as hub,
        raw_websocket(hub.port) as client,
    ):
        await hub.add_feed(NEWS)
        client.send(frame(TEXT, SUBSCRIBE))
        answered = 0
        while answered < 10:
            told = await client.receive()
            if told.opcode == PING:
                client.send(frame(PONG, told.payload))
                answered += 1
        await hub.publish(NEWS, "one")
        assert titles(await client.message("notification")) == ["one"]


async def test_who_goes_without_a_word_in_the_middle_of_a_frame_is_forgotten(
    hub: LiveHub,
) -> None:
    async with misbehaving(hub):
        client = await open_websocket(hub.port, "/stream")
        client.send(frame(TEXT, SUBSCRIBE)[:9])
        await client.drain()
        client.abort()
