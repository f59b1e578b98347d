"""uvicorn's websocket protocol, able to write a frame that was built for many clients.

This avoids a queue and a task for each connection, and costs a third as much. The ASGI
application finds the writer in the scope (`websocket_of`) and uses it as a `Writer`;
everything else goes through uvicorn as usual.
"""

from __future__ import annotations

import asyncio
import logging
from codecs import IncrementalDecoder, getincrementaldecoder
from typing import Any, cast

from starlette.types import Scope
from uvicorn._types import ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState
from websockets.extensions.permessage_deflate import (
    PerMessageDeflate,
    ServerPerMessageDeflateFactory,
)
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from hub.live.live_connections import LARGEST_BACKLOG
from hub.live.prepared_message import PreparedMessage
from protocols.live.live_messages import NOT_UTF_8, POLICY, SLOW, Closing
from protocols.live.message_encoding import WINDOW_BITS

LARGEST_MESSAGE = 64 * 1024
"""Bytes of a client's whole message, after decompression."""
MOST_FRAGMENTS = 1_024
CLOSE_SECONDS = 5.0
"""How long a client may take to read what waits and answer the close."""

_EXTENSION = "fanfare.websocket"
_REASON = b"expected the handshake of a websocket, without a body"
_NO_HANDSHAKE = (
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n\r\n%b"
) % (len(_REASON), _REASON)

# uvicorn and websockets log requests with their query, which may hold a token.
_logger = logging.getLogger("hub.websocket")
_logger.setLevel(logging.WARNING)

_Utf8 = getincrementaldecoder("utf-8")

_DEFLATE = ServerPerMessageDeflateFactory(
    # Then one compressed frame suits all clients, and no connection keeps a context.
    server_no_context_takeover=True,
    client_no_context_takeover=True,
    server_max_window_bits=WINDOW_BITS,
    client_max_window_bits=WINDOW_BITS,
    compress_settings={"memLevel": 5},
)


class _Server(ServerProtocol):
    """The server side of RFC 6455, without I/O."""

    def recv_frame(self, frame: Frame) -> None:
        # 5.4: "Control frames ... MAY be injected in the middle of a fragmented
        # message." A close frame may be too, and it ends the message.
        if frame.opcode is Opcode.CLOSE:
            self.current_size = None
        super().recv_frame(frame)


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One websocket connection. ``writer`` exists once the connection is accepted."""

    writer: SocketWriter
    _decoder: IncrementalDecoder  # of a text message, which few clients send

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _logger
        self.conn = _Server(
            extensions=[_DEFLATE], max_size=LARGEST_MESSAGE, logger=_logger
        )
        self._has_failed = False

    def close(self, closing: Closing) -> None:
        """Let the client read what was written and the close reason, for a limited
        time."""
        if self.close_sent or self.transport.is_closing():
            return
        self.stop_keepalive()
        try:
            self.conn.send_close(closing.code, closing.reason)
        except InvalidState:  # the client is closing at this moment
            return
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = self.writer.is_closed = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": closing.code})
        self._end_within(CLOSE_SECONDS)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions = cast("dict[str, object]", self.scope["extensions"])
            extensions[_EXTENSION] = self.writer = SocketWriter(self)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.close_sent and message["type"] == "websocket.http.response.body":
            # A refusal with an HTTP status also ends the handshake, and is not logged
            # as an error.
            self.handshake_complete = True

    def data_received(self, data: bytes) -> None:
        if self._has_failed:
            return
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse_handshake()

    def _refuse_handshake(self) -> None:
        """Refuse a handshake that llhttp accepts and websockets does not.

        uvicorn is not told of the refusal and would otherwise wait for ever.
        """
        self._has_failed = self.handshake_complete = self.close_sent = True
        answer = b"".join(self.conn.data_to_send())
        self.transport.write(answer or _NO_HANDSHAKE)
        self._end_within(CLOSE_SECONDS)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def handle_cont(self, event: Frame) -> None:
        if self._has_failed:
            return
        if len(self.frames) >= MOST_FRAGMENTS:
            # Empty fragments escape the limit on the message's size.
            self._fail(POLICY.code, "too many fragments")
        elif self.curr_msg_data_type == "bytes" or self._is_text(event):
            super().handle_cont(event)

    def handle_text(self, event: Frame) -> None:
        self._decoder = _Utf8()
        if self._is_text(event):
            super().handle_text(event)

    def _is_text(self, event: Frame) -> bool:
        """Whether the message is valid UTF-8 so far; an invalid one is refused before
        its end."""
        try:
            self._decoder.decode(event.data, event.fin)
        except UnicodeDecodeError:
            self._fail(NOT_UTF_8.code, NOT_UTF_8.reason)
            return False
        return True

    def handle_parser_exception(self) -> None:
        """Tell a client which rule it broke, and process nothing more from it.

        What it still sends is read and dropped for a while: if a connection is closed
        with unread data, the system sends a reset and the client never sees the reason.
        """
        if self._has_failed:
            return
        self._has_failed = True
        self.frames = []
        self.stop_keepalive()
        close = self.conn.close_sent
        if close is None:  # the client did not wait for the handshake
            self.transport.abort()
            return
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close.code})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = self.writer.is_closed = True
        self._end_within(CLOSE_SECONDS)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _fail(self, code: int, reason: str) -> None:
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def _end_within(self, seconds: float) -> None:
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(seconds, self.transport.abort)

    def handle_close(self, event: Frame) -> None:
        if not self._has_failed:
            super().handle_close(event)

    def handle_ping(self) -> None:
        if self._has_failed:  # it arrived together with the data that broke the rules
            return
        super().handle_ping()
        if self.transport.get_write_buffer_size() > LARGEST_BACKLOG:
            self.transport.abort()  # the client pings and reads no answers


class SocketWriter:
    """Writes to a websocket; an `hub.live.live_connections.ClientWriter`.

    It is a separate object because writing is by far the most frequent operation, and
    the protocol has so many attributes that each use of one costs memory.
    """

    __slots__ = (
        "_protocol",
        "_takes_deflated",
        "_transport",
        "is_closed",
        "sent_bytes",
        "sent_messages",
    )

    def __init__(self, protocol: WebSocketProtocol) -> None:
        self.is_closed = False
        self.sent_messages = self.sent_bytes = 0
        self._protocol = protocol
        self._transport = protocol.transport
        self._takes_deflated = any(
            isinstance(each, PerMessageDeflate)
            and each.local_max_window_bits >= WINDOW_BITS
            for each in protocol.conn.extensions
        )

    def write(self, message: PreparedMessage) -> None:
        transport = self._transport
        if self.is_closed or transport.is_closing():
            return
        if transport.get_write_buffer_size() > LARGEST_BACKLOG:
            self._protocol.close(SLOW)
            return
        frame = message.deflated_frame if self._takes_deflated else message.frame
        transport.write(frame)
        self.sent_messages += 1
        self.sent_bytes += len(frame)

    @property
    def waiting(self) -> int:
        return self._transport.get_write_buffer_size()

    async def room(self) -> None:
        await self._protocol.writable.wait()

    def close(self, closing: Closing) -> None:
        self._protocol.close(closing)


def websocket_of(scope: Scope) -> SocketWriter:
    """Return the writer of the connection that a websocket scope came from."""
    return cast("SocketWriter", scope["extensions"][_EXTENSION])
