"""uvicorn's HTTP protocol, with limits on request heads and on idle connections.

The head of a request has a deadline and a size limit. A bounded number of connections
may idle; beyond it those idle longest are closed. `hub.web.streams.event_stream`
writes endless answers to it.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, Protocol, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

MOST_KEPT: Final = 128
"""Half of the file descriptors left for connections other than live streams
(`hub.main`)."""


class Idle(Protocol):
    """A connection on which nothing is under way."""

    def end(self) -> None:
        """Close the connection; it is then released from `KeptConnections`."""
        ...


class KeptConnections:
    """Connections that have been idle for a while and are kept open longer.

    ``seconds`` is how long a connection may be idle in total; never less than the time
    without being kept. Keeping more than ``most`` connections ends the one kept
    longest, because a proxy reuses the connection it used last.
    """

    def __init__(self, seconds: float, most: int = MOST_KEPT) -> None:
        self.seconds = seconds
        self._most = most
        self._kept: dict[Idle, None] = {}  # in the order they were added

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, connection: Idle) -> None:
        self._kept[connection] = None
        if len(self._kept) > self._most:
            longest = next(iter(self._kept))
            del self._kept[longest]
            longest.end()

    def release(self, connection: Idle) -> None:
        """Stop keeping a connection that got a request or closed; does nothing if not
        kept."""
        self._kept.pop(connection, None)


HEAD_SECONDS = 10.0
"""Seconds for a request's head to arrive, from the connection or its first byte."""
LARGEST_HEAD = 64 * 1024
"""The most bytes of a request line and headers that arrive in several pieces."""
IDLE_SECONDS = 5
"""Seconds from an answer to the next request; some connections are kept longer."""
STALL_SECONDS = 60.0
"""How long a client may take nothing of an answer that waits for it."""

_ONE_HOST = "expected one Host header, with a host and perhaps a port"
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(?::[0-9]*)?")
"""RFC 9112 3.2: "Host = uri-host [ ":" port ]"; clients may have to send it empty."""
HTTP_EXTENSION = "fanfare.http"


class HttpProtocol(HttpToolsProtocol):
    """One connection. An idle connection ends after `IDLE_SECONDS`, unless the server's
    ``kept`` connections include it."""

    idle_seconds: float = IDLE_SECONDS
    stall_seconds = STALL_SECONDS
    has_writer = False
    """Whether the answer is a live stream, whose own writer limits what waits to be
    sent."""

    _refusal = ""
    """Why a request is answered 400; "" if the parser could not read it."""

    _is_held = False
    """Whether the answer is endless or slow, so that the client may send no other
    request."""

    _unanswered: tuple[RequestResponseCycle, ...] = ()
    """The requests before the last one; uvicorn tells only the last one when the client
    disconnects."""

    _head_timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None
    _head_size = 0
    _is_in_head = False
    _is_in_body = False
    _has_advanced = False
    """Whether the last data ended a head or a message, or was part of a body."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        kept: KeptConnections | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.timeout_keep_alive = self.idle_seconds  # type: ignore[assignment]
        self._kept = kept

    def connection_made(  # type: ignore[override]  # as in the class it extends
        self, transport: asyncio.Transport
    ) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        self._is_taken()
        self._unset_keepalive_if_required()
        for each in self._unanswered:
            each.disconnected = True
            each.message_event.set()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """Keep or close a connection that has been idle for ``idle_seconds``."""
        kept = self._kept
        left = 0.0 if kept is None else kept.seconds - self.idle_seconds
        if kept is None or left <= 0 or self.transport.is_closing():
            self.end()
            return
        self.timeout_keep_alive_task = self.loop.call_later(left, self.end)
        kept.keep(self)

    def end(self) -> None:
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            self.transport.close()

    def _unset_keepalive_if_required(self) -> None:
        super()._unset_keepalive_if_required()
        if self._kept is not None:
            self._kept.release(self)

    def data_received(self, data: bytes) -> None:
        self._has_advanced, was_in_body = False, self._is_in_body
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        if self._is_idle():
            # What came is no request, or the rest of one that was answered; uvicorn
            # stops its own timer at any byte.
            self._await_head()
        # The rest of a body that was already answered is not a head, however large it
        # is.
        if self._has_advanced and (self._head_timer is None or was_in_body):
            self._head_size = 0
            return
        self._head_size += len(data)
        if self._head_size > LARGEST_HEAD and not self.transport.is_closing():
            self._refuse_head()

    def _parse(self, data: bytes) -> None:
        """Parse what arrived, ignoring an Upgrade field the hub does not accept.

        RFC 9110 7.8: "A server MAY ignore a received Upgrade header field if it wishes
        to continue using the current protocol on that connection." The parser does not
        read what follows the head of an upgrade request as part of it. If the upgrade
        is not accepted, the head is parsed again without that field.
        """
        rest = memoryview(data)
        while True:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
            if self._should_upgrade():
                self.handle_websocket_upgrade()
                return
            if not self._declines_upgrade():  # CONNECT
                return
            head = self._head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(head)

    def _declines_upgrade(self) -> bool:
        """Whether the current request asks for an upgrade that the hub does not
        accept."""
        is_offered = self.parser.should_upgrade() and not self._should_upgrade()
        return is_offered and self.parser.get_method() != b"CONNECT"

    def _should_upgrade(self) -> bool:
        """RFC 9110 7.8: "A server MUST ignore an Upgrade header field that is received
        in an HTTP/1.0 request." RFC 6455 4.1: "The method of the request MUST be GET".
        """
        offered = [
            value.strip().lower() for name, value in self.headers if name == b"upgrade"
        ]
        begun = (self.parser.get_method(), self.parser.get_http_version())
        return begun == (b"GET", "1.1") and offered == [b"websocket"]

    def _head_without_upgrade(self) -> bytes:
        version = self.parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        lines += [b"%b: %b" % each for each in self.headers if each[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_taking()

    def resume_writing(self) -> None:
        self._is_taken()
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        """Hand over to the websocket protocol, but not while an answer is under way:
        after the change, that request would not learn that the client has
        disconnected."""
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            return
        super().handle_websocket_upgrade()

    @property
    def has_body(self) -> bool:
        """Whether the bodies of all requests received so far are complete."""
        return not self.cycle.more_body

    def hold(self) -> None:
        """Mark the answer as slow or endless; a client that sends more requests is cut
        off.

        A live stream does not end for a request that waits for it, and while one waits
        nothing is read, so the hub would not notice that the client has disconnected.
        """
        self._is_held = True
        if self.pipeline:
            self.transport.abort()

    def on_message_begin(self) -> None:
        if self._is_held and not self.cycle.response_complete:
            self.transport.abort()
        super().on_message_begin()
        self._await_head()
        self._is_in_head = True
        self.has_writer = self._is_held = False
        scope = cast("dict[str, object]", self.scope)
        scope["extensions"] = {HTTP_EXTENSION: self}

    def on_header(self, name: bytes, value: bytes) -> None:
        """RFC 9112 7.1.2: a recipient "MAY selectively retain or discard the received
        trailer fields". uvicorn takes trailers for headers; the hub discards them."""
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Raises `ValueError`, which the parser turns into an error of its own."""
        if self._declines_upgrade():
            return
        self._head_is_there()
        self._is_in_head, self._is_in_body = False, True
        self._has_advanced = True
        if not self._names_its_host():
            self._refusal = _ONE_HOST
            raise ValueError(_ONE_HOST)
        earlier = (*self._unanswered, self.cycle) if self.cycle else ()
        self._unanswered = tuple(each for each in earlier if not each.response_complete)
        super().on_headers_complete()

    def _names_its_host(self) -> bool:
        """RFC 9112 3.2: "A server MUST respond with a 400 (Bad Request) status code to
        any HTTP/1.1 request message that lacks a Host header field and to any request
        message that contains more than one Host header field line or a Host header
        field with an invalid field value." RFC 9112 5.1: trailing whitespace is not
        part of the value."""
        hosts = [value for name, value in self.headers if name == b"host"]
        if not hosts:
            return bool(self.parser.get_http_version() == "1.0")
        return len(hosts) == 1 and _HOST.fullmatch(hosts[0].rstrip(b" \t")) is not None

    def send_400_response(self, msg: str) -> None:
        """Answer 400, or cut the connection while another answer is being written."""
        if self._is_answering():
            self.transport.abort()
            return
        super().send_400_response(self._refusal or msg)

    def _is_answering(self) -> bool:
        last = self.cycle
        if last is None or last.response_complete:
            return False
        is_of_before = not last.more_body  # what is wrong is not in its body
        return is_of_before or last.response_started or bool(self.pipeline)

    def on_body(self, body: bytes) -> None:
        self._has_advanced = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._declines_upgrade():
            return
        self._has_advanced, self._is_in_body = True, False
        super().on_message_complete()

    def _await_taking(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(
            self.stall_seconds, self._see_taking, waiting
        )

    def _see_taking(self, waited: int) -> None:
        """Cut the client off unless it has taken some of the answer, however little."""
        waiting = self.transport.get_write_buffer_size()
        if self.has_writer or waiting < waited:
            self._await_taking()
        elif waiting:
            self.transport.abort()

    def _is_taken(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _is_idle(self) -> bool:
        """Whether nothing is under way and the websocket protocol has not taken
        over."""
        is_done = self.cycle is not None and self.cycle.response_complete
        return is_done and self.transport.get_protocol() is self

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._cut_off)

    def _head_is_there(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse_head(self) -> None:
        """RFC 6585 5: "the server is unwilling to process the request because its
        header fields are too large". A request already being processed is cut off: its
        head was fine, and what is too large came between the pieces of its body or
        after it."""
        if self._head_timer is None:
            self.transport.abort()
            return
        reason = f"expected a request head of at most {LARGEST_HEAD} bytes"
        head = (
            "HTTP/1.1 431 Request Header Fields Too Large\r\n"
            "content-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(reason)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write((head + reason).encode())
        self.transport.close()

    def _cut_off(self) -> None:
        self._head_timer = None
        self.transport.abort()
