"""What serves one purpose: its guard, its names and its connections."""

from __future__ import annotations

import asyncio
import ssl

from hub.errors import TimedOut
from hub.net.addresses import parse_literal
from hub.net.connection import Connection, ConnectionStale
from hub.net.dialling import Dialler
from hub.net.guard import Guard
from hub.net.heads import request_head
from hub.net.messages import Answer, Request
from hub.net.pool import Pool
from hub.net.resolving import GuardedResolver, Lookup
from hub.net.urls import Server, target_of


class Side:
    """Sends requests, over no more than ``connections`` at once, idle ones included;
    who finds none waits for its turn."""

    def __init__(
        self, guard: Guard, lookup: Lookup, tls: ssl.SSLContext, connections: int
    ) -> None:
        self._guard = guard
        self._resolver = GuardedResolver(guard, lookup)
        self._dialler = Dialler(guard, self._resolver, tls)
        self._pool = Pool()
        self._places = asyncio.Semaphore(connections)
        self._connections = connections
        self._in_use = 0

    async def send(self, request: Request) -> Answer:
        """See `hub.net.Network`."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        deadline = started + request.limits.seconds
        target = target_of(request.url)
        head = request_head(request, target)
        await self._enter(deadline)
        try:
            answered = await self._exchange(request, head, target.server, deadline)
            reception = answered.reception
            return Answer(
                url=request.url,
                status=reception.status,
                headers=reception.headers,
                body=reception.body,
                complete=reception.is_whole,
                milliseconds=round((loop.time() - started) * 1000),
            )
        finally:
            self._in_use -= 1
            self._places.release()

    def is_exempt(self, host: str) -> bool:
        """See `hub.net.Network`."""
        if not self._guard.has_allowed_networks:
            return False
        if parse_literal(host) is not None:
            return self._guard.allows(host)
        addresses = self._resolver.last_addresses(host)
        return bool(addresses) and all(map(self._guard.allows, addresses))

    def close(self) -> None:
        self._pool.close()

    async def _enter(self, deadline: float) -> None:
        if not self._places.locked():
            await self._places.acquire()
        else:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._places.acquire()
            except TimeoutError:
                raise TimedOut("no answer in time") from None
        self._in_use += 1

    async def _exchange(
        self, request: Request, head: bytes, server: Server, deadline: float
    ) -> Connection:
        """The connection that brought the answer; it is kept if it can be.

        A request is sent again in one case only, once, and over a new connection: the
        kept one turns out to have been closed before the server saw the request.
        RFC 9110, 9.2.2 allows it for what is idempotent, "regardless of the method":
        a notification is, delivered at least once under an id of its own.
        """
        kept = self._pool.take(server)
        if kept is not None:
            try:
                return await self._exchange_over(kept, request, head, server, deadline)
            except ConnectionStale:
                pass
        while len(self._pool) + self._in_use > self._connections:
            self._pool.drop_oldest()
        new = await self._dialler.dial(server, deadline=deadline, idle=_idle(request))
        return await self._exchange_over(new, request, head, server, deadline)

    async def _exchange_over(
        self,
        connection: Connection,
        request: Request,
        head: bytes,
        server: Server,
        deadline: float,
    ) -> Connection:
        limit = None if request.cuts_body else request.limits.body_bytes
        connection.reception.expect(cut=request.cut, limit=limit)
        await connection.exchange(
            head, request.body, deadline=deadline, idle=_idle(request)
        )
        if connection.reception.is_clean:
            self._pool.keep(server, connection)
        return connection


def _idle(request: Request) -> float | None:
    """A limit between reads that adds nothing to the deadline is none."""
    limits = request.limits
    return limits.idle_seconds if limits.idle_seconds < limits.seconds else None
