"""One connection to a server: one request and its answer after the other."""

from __future__ import annotations

import asyncio
from typing import cast

from hub.errors import BadAnswer, NetworkError, TimedOut
from hub.net.failures import broken
from hub.net.reception import NOT_WHOLE, Reception

_AT_ONE_GO = 64 * 1024
"""Bytes of a body that are copied behind its head, for one write instead of two."""
STALE_SECONDS = 1.0


class ConnectionStale(Exception):
    """The server had closed the kept connection when the request was sent over it.

    That is when it is lost within a second, without a byte of an answer: servers close
    what has been idle for some time of their own choice, and the news of it may cross a
    request. What is lost later was at work on it.
    """


class Connection(asyncio.Protocol):
    """Made for a transport by ``loop.create_connection``; `exchange` does the rest."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.reception = Reception()
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._over: asyncio.Future[None] | None = None  # while an answer is due
        self._exchanges = 0
        self._sent_at = self._heard_at = self._deadline = 0.0
        self._idle: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(
        self, head: bytes, body: bytes | None, *, deadline: float, idle: float | None
    ) -> None:
        """Send a request and take in its answer, for which `reception` is waiting.

        ``deadline`` is in the loop's time, ``idle`` the longest pause in seconds. The
        connection is closed unless all of this went well and the server keeps it.
        Raises a NetworkError, or ConnectionStale.
        """
        self._over = self._loop.create_future()
        self._exchanges += 1
        self._sent_at = self._heard_at = self._loop.time()
        self._deadline, self._idle = deadline, idle
        self._timer = self._loop.call_at(self._due, self._watch)
        try:
            self._send(head, body)
            await self._over
        finally:
            self._over = None
            self._timer.cancel()
            if not self.reception.is_clean:
                self.close()

    def close(self) -> None:
        """At once; what is not sent by then will not be."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

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

    def _watch(self) -> None:
        """One timer for each request, however many pieces its answer comes in."""
        over = self._over
        if over is None or over.done():
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._watch)
            return
        what = "whole answer" if self.reception.status else "answer"
        try:
            self.reception.stop(TimedOut(f"no {what} in time"))
            over.set_result(None)
        except NetworkError as error:
            over.set_exception(error)
