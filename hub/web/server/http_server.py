"""The HTTP server: uvicorn on a socket that the hub opens, stopped by the hub."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from hub.web.server.http_protocol import HttpProtocol, KeptConnections
from hub.web.server.websocket_protocol import LARGEST_MESSAGE, WebSocketProtocol

DRAIN_SECONDS = 3.0
"""How long requests under way may continue after the hub is told to stop."""
KEEP_ALIVE_SECONDS = 75.0
"""Longer than proxies keep idle connections (by default a minute): the hub must not
close first, since it cannot know of a request that is already on its way."""
BACKLOG = 16_384
"""Connections that may wait to be accepted when many arrive at once; systems allow
fewer.

A connection that finds no room is not refused but left hanging, and reset much later.
"""


class AddressUnavailable(Exception):
    """The hub cannot listen where it was told to."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"cannot listen on {host} port {port}: {reason}")


def listening_socket(host: str, port: int) -> socket.socket:
    """Open the listening socket, before the rest of the hub starts.

    Raises `AddressUnavailable`.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # a label no name can have
        raise AddressUnavailable(host, port, str(error)) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        in_use = error.errno == errno.EADDRINUSE
        reason = "another program is listening there" if in_use else str(error)
        raise AddressUnavailable(host, port, reason) from error
    return listener


Headers = list[tuple[bytes, bytes]]


class DatedState(ServerState):
    """The state that uvicorn's connections share, with a ``Date`` of the current
    second.

    uvicorn's own date may be a second old, so that ``Last-Modified`` is after it: "An
    origin server with a clock MUST NOT generate a Last-Modified date that is later than
    the server's time of message origination (Date)" (RFC 9110 8.8.2.1).
    """

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._second = -1
        self._others: Headers = []
        self._headers: Headers = []
        super().__init__()

    @property
    def default_headers(self) -> Headers:
        second = int(self._wall())
        if second != self._second:
            date = formatdate(second, usegmt=True).encode()
            self._second, self._headers = second, [(b"date", date), *self._others]
        return self._headers

    @default_headers.setter
    def default_headers(self, headers: Headers) -> None:
        self._others = [each for each in headers if each[0] != b"date"]
        self._second = -1


class HttpServer(uvicorn.Server):
    """uvicorn, told to stop by the hub instead of by signals."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = DatedState()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def stop(self, seconds: float = DRAIN_SECONDS) -> None:
        """Stop the server; requests under way have ``seconds`` to end."""
        self.config.timeout_graceful_shutdown = cast(Any, seconds)  # a float will do
        self.should_exit = True


def create_server(
    application: ASGIApp, keep_alive: float = KEEP_ALIVE_SECONDS
) -> HttpServer:
    """Create the server.

    ``keep_alive``: seconds that connections may be idle, as long as there are few.
    """
    http = partial(HttpProtocol, kept=KeptConnections(keep_alive))
    return HttpServer(
        uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # FANFARE_TRUSTED_PROXIES names whose count
            http=cast(Any, http),  # any callable that makes a protocol
            ws=WebSocketProtocol,
            backlog=BACKLOG,
            ws_max_size=LARGEST_MESSAGE,
        )
    )
