"""Connections to servers: one exchange after the other, and connections kept for reuse.

Errors are told in words, as a `hub.http.network_errors.NetworkError`.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections import OrderedDict
from typing import cast

from hub.http.exchange import Request, ResponseLimits, ServerAddress
from hub.http.network_errors import (
    BadAnswer,
    Blocked,
    NetworkError,
    TimedOut,
    Unreachable,
    Untrusted,
)
from hub.http.resolver import AddressBlocked, LookupFailed
from hub.http.response_parser import NOT_WHOLE, ResponseParser
from protocols.http import RequestStage

_FIRST_BYTE = RequestStage.FIRST_BYTE  # to look it up takes as long as much else
_ERRORS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "no route to the host",
}


def not_connected(failure: OSError | UnicodeError) -> NetworkError:
    """The hub's own error for a connection that could not be made."""
    if isinstance(failure, AddressBlocked):
        return Blocked()
    if isinstance(failure, LookupFailed):
        return Unreachable(str(failure))
    if isinstance(failure, ssl.SSLCertVerificationError):
        why = failure.verify_message
        return Untrusted(f"the server's certificate is not valid: {why}")
    if isinstance(failure, ssl.SSLError):
        return Unreachable("the TLS handshake failed")
    if isinstance(failure, UnicodeError):  # a name that TLS cannot ask for
        return Unreachable("the request cannot be made")
    return Unreachable(f"cannot connect: {_words(failure)}")


def broken(failure: Exception) -> NetworkError:
    """The hub's own error for a connection that was lost before there was an answer."""
    return Unreachable(f"the connection was lost: {_words(failure)}")


def _words(failure: Exception) -> str:
    number = failure.errno if isinstance(failure, OSError) else None
    return _ERRORS.get(number or 0, "the network failed")


_AT_ONE_GO = 64 * 1024
"""Bodies up to so many bytes are copied behind the head, for one write instead of
two."""
STALE_SECONDS = 1.0
_TURN_SECONDS = 0.001
"""A timer that another timer sets fires only after one more look at the sockets."""


class ConnectionStale(Exception):
    """The server had closed the kept connection when the request was sent over it.

    That is when it is lost within a second, without a byte of an answer: servers close
    what has been idle for some time of their own choice, and the news of it may cross a
    request. What is lost later was at work on it.
    """


class ClientConnection(asyncio.Protocol):
    """Made for a transport by ``loop.create_connection``; `exchange` does the rest."""

    __slots__ = (
        "_deadline",
        "_exchanges",
        "_heard_at",
        "_idle",
        "_is_last_look",
        "_loop",
        "_over",
        "_sent_at",
        "_timer",
        "_timer_due",
        "_transport",
        "is_exempt",
        "reception",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, is_exempt: bool = False
    ) -> None:
        """``is_exempt``: it leads into an allowed network."""
        self.is_exempt = is_exempt
        self.reception = ResponseParser()
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._over: asyncio.Future[None] | None = None  # while an answer is due
        self._exchanges = 0
        self._sent_at = self._heard_at = self._deadline = 0.0
        self._idle: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._is_last_look = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def can_be_kept(self) -> bool:
        """Whether the last answer ended well, after all of its request was sent: a
        server may answer early, and then read no more of the request."""
        transport = self._transport
        if transport is None or not self.reception.is_clean:
            return False
        return not transport.get_write_buffer_size()

    async def exchange(self, request: Request, head: bytes, deadline: float) -> None:
        """Send a request under this head; its answer is in `reception` afterwards.

        ``deadline`` is in the loop's time. The connection is closed unless all of this
        went well and the server keeps it. Raises a NetworkError, or ConnectionStale.
        """
        limit = None if request.cuts_body else request.limits.body_bytes
        self.reception.expect(
            cut=request.cut,
            limit=limit,
            sink=request.sink,
            allowance=request.allowance,
        )
        over = self._over = self._loop.create_future()
        self._exchanges += 1
        self._sent_at = self._heard_at = self._loop.time()
        self._deadline, self._idle = deadline, idle_limit(request.limits)
        self._is_last_look = False
        self._wind_up()
        if request.progress is not None:
            request.progress.stage = _FIRST_BYTE
        try:
            if self._sent_at >= deadline:  # it would not be waited for at all
                raise TimedOut("no time was left for the request")
            self._send(head, request.body)
            await over
        except (NetworkError, asyncio.CancelledError):
            if request.progress is not None and self.reception.has_begun:
                has_head = self.reception.status > 0
                stage = RequestStage.BODY if has_head else RequestStage.HEAD
                request.progress.stage = stage
            raise
        finally:
            self._over = None
            if not self.can_be_kept:
                self.close()

    def change_transport(self, transport: asyncio.BaseTransport) -> None:
        """Switch to the transport that TLS has put over the first."""
        self._transport = cast(asyncio.Transport, transport)

    def close(self) -> None:
        """Close at once; bytes not sent by then are never sent."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
            self.reception.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- called by the transport -------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        over = self._over
        if over is None or over.done():
            self.close()  # nobody has asked: this is no answer to the next request
            return
        if self._idle is not None:
            self._heard_at = self._loop.time()
        try:
            if self.reception.feed(data):
                over.set_result(None)
        except NetworkError as error:
            over.set_exception(error)

    def eof_received(self) -> None:
        self._lose(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(exc)

    # -----------------------------------------------------------------------------

    def _send(self, head: bytes, body: bytes | None) -> None:
        if self._transport is None:
            self._lose(None)  # it was closed since it was taken
        elif body and len(body) > _AT_ONE_GO:
            self._transport.writelines((head, body))
        else:
            self._transport.write(head + body if body else head)

    def _lose(self, exc: Exception | None) -> None:
        over = self._over
        self.close()
        if over is None or over.done():
            return
        if self._is_stale:
            over.set_exception(ConnectionStale())
            return
        try:
            if exc is None:
                self.reception.end()
            else:
                had_status = self.reception.status > 0
                self.reception.stop(BadAnswer(NOT_WHOLE) if had_status else broken(exc))
            over.set_result(None)
        except NetworkError as error:
            over.set_exception(error)

    @property
    def _is_stale(self) -> bool:
        is_kept = self._exchanges > 1 and not self.reception.has_begun
        return is_kept and self._loop.time() - self._sent_at < STALE_SECONDS

    @property
    def _due(self) -> float:
        """When to give up, unless something comes."""
        if self._idle is None:
            return self._deadline
        return min(self._deadline, self._heard_at + self._idle)

    def _wind_up(self) -> None:
        """Make sure that a timer is set that fires in time.

        One timer for each request would cost as much as its answer. This one stays over
        the requests of a kept connection, and is set again when it fires too early.
        """
        due = self._due
        if self._timer is None or self._timer_due > due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due = due
            self._timer = self._loop.call_at(due, self._watch)

    def _watch(self) -> None:
        self._timer = None
        over = self._over
        if over is None or over.done():
            return
        if self._loop.time() < self._due:
            self._is_last_look = False
            self._wind_up()
        elif self._is_last_look:
            self._give_up(over)
        else:
            self._look_again()

    def _look_again(self) -> None:
        """What has come lies in the socket, if this process was held up or stopped:
        libuv runs timers before it reads. What was delivered then would be sent twice.
        """
        self._is_last_look = True
        self._timer_due = self._loop.time() + _TURN_SECONDS
        self._timer = self._loop.call_later(_TURN_SECONDS, self._watch)

    def _give_up(self, over: asyncio.Future[None]) -> None:
        what = "whole answer" if self.reception.status else "answer"
        try:
            self.reception.stop(TimedOut(f"no {what} in time"))
            over.set_result(None)
        except NetworkError as error:
            over.set_exception(error)


def idle_limit(limits: ResponseLimits) -> float | None:
    """The longest pause, in seconds; one that adds nothing to the deadline is none."""
    return limits.idle_seconds if limits.idle_seconds < limits.seconds else None


KEPT_SECONDS = 15.0


class ConnectionPool:
    """Idle connections by server; the one used last is used next.

    Never shared between purposes: a connection that was permitted for one must not be
    used for the other.
    """

    def __init__(self, *, seconds: float = KEPT_SECONDS) -> None:
        self._seconds = seconds
        self._by_server: dict[ServerAddress, list[ClientConnection]] = {}
        self._since: OrderedDict[ClientConnection, tuple[float, ServerAddress]] = (
            OrderedDict()
        )
        self._sweep: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._since)

    def take(self, server: ServerAddress, now: float) -> ClientConnection | None:
        """A connection that was open a moment ago, if there is any; the caller owns it
        then.

        ``now`` is in the loop's time.
        """
        latest = now - self._seconds
        while kept := self._by_server.get(server):
            connection = kept.pop()
            if not kept:
                del self._by_server[server]
            since, _ = self._since.pop(connection)
            if connection.is_open and since > latest:
                return connection
            connection.close()
        return None

    def keep(
        self, server: ServerAddress, connection: ClientConnection, now: float
    ) -> None:
        """Keep a connection until it is taken, or for some seconds from ``now`` on."""
        self._by_server.setdefault(server, []).append(connection)
        self._since[connection] = now, server
        if self._sweep is None:
            loop = asyncio.get_running_loop()
            self._sweep = loop.call_later(self._seconds, self._close_old)

    def drop_oldest(self) -> None:
        """Make room for another connection."""
        oldest = next(iter(self._since), None)
        if oldest is not None:
            self._forget(oldest)
            oldest.close()

    def close(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        while self._since:
            self.drop_oldest()

    def _close_old(self) -> None:
        loop = asyncio.get_running_loop()
        latest = loop.time() - self._seconds
        self._sweep = None
        while self._since:
            since, _ = next(iter(self._since.values()))
            if since > latest:
                due = since + self._seconds
                self._sweep = loop.call_at(due, self._close_old)
                return
            self.drop_oldest()

    def _forget(self, connection: ClientConnection) -> None:
        _, server = self._since.pop(connection)
        kept = self._by_server[server]
        kept.remove(connection)
        if not kept:
            del self._by_server[server]
