"""The HTTP client: HTTP/1.1 on httptools, with a guard and connections per purpose."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Coroutine, Iterable
from typing import Any

from hub.http.client_connections import (
    ClientConnection,
    ConnectionPool,
    ConnectionStale,
    idle_limit,
)
from hub.http.dialling import Dialler, system_tls
from hub.http.exchange import (
    Answer,
    Purpose,
    Request,
    ServerAddress,
    request_head,
    target_of,
)
from hub.http.guard import DENIED_PORTS, AddressRange, Guard, parse_literal
from hub.http.network_errors import TimedOut
from hub.http.resolver import GuardedResolver, Lookup, SystemLookup
from hub.limits.fifo_semaphore import FifoSemaphore
from hub.runtime.background import AsyncResource


class PurposeClient:
    """Sends requests over at most ``connections`` connections, idle ones included; a
    request that finds none free waits for its turn."""

    def __init__(
        self, guard: Guard, lookup: Lookup, tls: ssl.SSLContext, connections: int
    ) -> None:
        self._guard = guard
        self._resolver = GuardedResolver(guard, lookup)
        self._dialler = Dialler(guard, self._resolver, tls)
        self._pool = ConnectionPool()
        self._places = FifoSemaphore(connections)
        self._connections = connections

    async def send(self, request: Request) -> Answer:
        """See `hub.http.Network`.

        A request is sent again in one case only, once, and over a new connection: the
        kept one turns out to have been closed before the server saw the request.
        RFC 9110, 9.2.2 allows it for what is idempotent, "regardless of the method":
        a notification is, delivered at least once under an id of its own.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        deadline = started + request.limits.seconds
        target = target_of(request.url)
        head = request_head(request, target)
        if not self._places.enter_at_once():
            await self._wait_for_place(deadline)
        try:
            connection = self._pool.take(target.server, started)
            try:
                if connection is None:
                    connection = await self._dial(request, target.server, deadline)
                await connection.exchange(request, head, deadline)
            except ConnectionStale:
                connection = await self._dial(request, target.server, deadline)
                await connection.exchange(request, head, deadline)
            ended = loop.time()
            if connection.can_be_kept:
                self._pool.keep(target.server, connection, ended)
            return _answer(request, connection, round((ended - started) * 1000))
        finally:
            self._places.leave()

    def is_exempt(self, host: str) -> bool:
        """See `hub.http.Network`."""
        if not self._guard.has_allowed_networks:
            return False
        if parse_literal(host) is not None:
            return self._guard.allows(host)
        addresses = self._resolver.last_addresses(host)
        return bool(addresses) and all(map(self._guard.allows, addresses))

    def close(self) -> None:
        self._pool.close()

    async def _wait_for_place(self, deadline: float) -> None:
        try:
            await self._places.enter(deadline)
        except TimeoutError:
            raise TimedOut("no answer in time") from None

    async def _dial(
        self, request: Request, server: ServerAddress, deadline: float
    ) -> ClientConnection:
        while len(self._pool) + self._places.taken > self._connections:
            self._pool.drop_oldest()
        return await self._dialler.dial(
            server,
            deadline=deadline,
            idle=idle_limit(request.limits),
            progress=request.progress,
        )


def _answer(
    request: Request, connection: ClientConnection, milliseconds: int
) -> Answer:
    reception = connection.reception
    answer = Answer(
        url=request.url,
        status=reception.status,
        headers=reception.headers,
        body=reception.body,
        complete=reception.is_whole,
        milliseconds=milliseconds,
        version=reception.version,
        reason=reception.reason,
        is_exempt=connection.is_exempt,
    )
    reception.forget()
    return answer


class HttpNetwork(AsyncResource):
    """Sends requests. Use it as an async context manager.

    ``allow_topics``, ``allow_callbacks`` and ``allow_hubs`` are the networks exempt
    from the guard, each for its purpose. ``connections`` bounds those of each purpose.
    ``tls`` replaces the system's trust, ``lookup`` its resolver. It has no cookies,
    follows nothing, and knows of no proxies.
    """

    def __init__(
        self,
        *,
        allow_topics: Iterable[AddressRange] = (),
        allow_callbacks: Iterable[AddressRange] = (),
        allow_hubs: Iterable[AddressRange] = (),
        denied_ports: frozenset[int] = DENIED_PORTS,
        connections: int = 2000,
        tls: ssl.SSLContext | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        self._system_lookup = SystemLookup()
        self._sides = {
            purpose: PurposeClient(
                Guard(allowed, denied_ports),
                lookup or self._system_lookup,
                tls or system_tls(),
                connections,
            )
            for purpose, allowed in (
                (Purpose.TOPIC, allow_topics),
                (Purpose.CALLBACK, allow_callbacks),
                (Purpose.HUB, allow_hubs),
            )
        }

    async def aclose(self) -> None:
        """See `AsyncResource`."""
        for side in self._sides.values():
            side.close()
        self._system_lookup.close()

    def send(self, request: Request) -> Coroutine[Any, Any, Answer]:
        """See `hub.http.Network`."""
        return self._sides[request.purpose].send(request)

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        """See `hub.http.Network`."""
        return self._sides[purpose].is_exempt(host)
