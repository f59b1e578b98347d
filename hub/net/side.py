"""What serves one purpose: its guard, its names and its connections."""

from __future__ import annotations

import asyncio
import ssl

from hub.limits.fifo_semaphore import FifoSemaphore
from hub.net.addresses import parse_literal
from hub.net.connection import Connection, ConnectionStale, idle_limit
from hub.net.dialling import Dialler
from hub.net.guard import Guard
from hub.net.heads import request_head
from hub.net.messages import Answer, Request
from hub.net.pool import Pool
from hub.net.reception import Reception
from hub.net.resolving import GuardedResolver, Lookup
from hub.net.urls import Server, target_of
from protocols.quick import maker

_new_answer = maker(Answer)


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
        self._places = FifoSemaphore(connections)
        self._connections = connections

    async def send(self, request: Request) -> Answer:
        """See `hub.net.Network`."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        deadline = started + request.limits.seconds
        target = target_of(request.url)
        head = request_head(request, target)
        if not self._places.enter_at_once():
            await self._places.enter(deadline)
        try:
            reception = await self._exchange(request, head, target.server, deadline)
            answer = _new_answer(
                url=request.url,
                status=reception.status,
                headers=reception.headers,
                body=reception.body,
                complete=reception.is_whole,
                milliseconds=round((loop.time() - started) * 1000),
            )
            reception.forget()
            return answer
        finally:
            self._places.leave()

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

    async def _exchange(
        self, request: Request, head: bytes, server: Server, deadline: float
    ) -> Reception:
        """The answer; the connection that brought it is kept if it can be.

        A request is sent again in one case only, once, and over a new connection: the
        kept one turns out to have been closed before the server saw the request.
        RFC 9110, 9.2.2 allows it for what is idempotent, "regardless of the method":
        a notification is, delivered at least once under an id of its own.
        """
        kept = self._pool.take(server)
        if kept is not None:
            try:
                await kept.exchange(request, head, deadline)
                return self._released(kept, server)
            except ConnectionStale:
                pass
        while len(self._pool) + self._places.taken > self._connections:
            self._pool.drop_oldest()
        idle = idle_limit(request.limits)
        new = await self._dialler.dial(server, deadline=deadline, idle=idle)
        await new.exchange(request, head, deadline)
        return self._released(new, server)

    def _released(self, connection: Connection, server: Server) -> Reception:
        if connection.can_be_kept:
            self._pool.keep(server, connection)
        return connection.reception
