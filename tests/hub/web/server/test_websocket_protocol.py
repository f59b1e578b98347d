"""What reaches the websocket's protocol before the handshake is answered."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from hub.web.server.websocket_protocol import WebSocketProtocol
from tests.support.raw_websocket import CLOSE, TEXT, frame

HANDSHAKE = (
    b"GET /stream HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\n"
    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


class Wire(asyncio.Transport):
    """The hub's end of a connection, nobody at the other."""

    def __init__(self) -> None:
        super().__init__()
        self.has_ended = False

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return self.has_ended

    def close(self) -> None:
        self.has_ended = True

    def abort(self) -> None:
        self.has_ended = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def never_answers(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "impatient",
    [b"\xff" * 20, frame(TEXT, b"\xff"), frame(CLOSE), frame(CLOSE, b"\0")],
    ids=["garbage", "text that is none", "a close", "a wrong close"],
)
async def test_who_breaks_the_rules_before_the_handshake_is_cut_off(
    impatient: bytes,
) -> None:
    config = uvicorn.Config(never_answers, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    protocol, wire = WebSocketProtocol(config, state, {}), Wire()
    protocol.connection_made(wire)
    protocol.data_received(HANDSHAKE)
    protocol.data_received(impatient)
    protocol.data_received(impatient)
    assert wire.has_ended
    for task in state.tasks:
        task.cancel()
