"""The network through aiohttp, guarded where connections are made."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from types import TracebackType
from typing import Self

from aiohttp import (
    AddrInfoType,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)

from hub.errors import NetworkError
from hub.net.addresses import AddressRange, parse_literal
from hub.net.bodies import read_beginning, read_whole
from hub.net.failures import AIOHTTP_FAILURES, explain
from hub.net.guard import DENIED_PORTS, Guard
from hub.net.messages import MEBIBYTE, Answer, Limits, Purpose, Request
from hub.net.resolving import AddressBlocked, GuardedResolver, Lookup, SystemLookup
from hub.net.urls import wire_url

_AUTOMATIC_HEADERS = ("User-Agent", "Accept", "Accept-Encoding")
"""What aiohttp adds by itself; to all but a bare GET a Content-Type as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What serves one purpose. Nothing is shared: a connection that was permitted for
    one purpose must not be reused for the other."""

    guard: Guard
    resolver: GuardedResolver
    session: ClientSession


class AiohttpNetwork:
    """Sends requests; the only user of aiohttp. Use it as an async context manager.

    ``allow_topics`` and ``allow_callbacks`` are the networks exempt from the guard,
    each for its purpose. ``connections`` bounds those of each purpose. ``tls`` replaces
    the system's trust, ``lookup`` its resolver.
    """

    def __init__(
        self,
        *,
        allow_topics: Iterable[AddressRange] = (),
        allow_callbacks: Iterable[AddressRange] = (),
        denied_ports: frozenset[int] = DENIED_PORTS,
        connections: int = 1000,
        tls: ssl.SSLContext | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        self._guards = {
            Purpose.TOPIC: Guard(allow_topics, denied_ports),
            Purpose.CALLBACK: Guard(allow_callbacks, denied_ports),
        }
        self._connections = connections
        self._tls = tls
        self._system_lookup = SystemLookup()
        self._lookup = lookup or self._system_lookup
        self._sides: Mapping[Purpose, _Side] = {}

    async def __aenter__(self) -> Self:
        self._sides = {
            purpose: self._open(guard) for purpose, guard in self._guards.items()
        }
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for side in self._sides.values():
            await side.session.close()
        self._system_lookup.close()

    async def send(self, request: Request) -> Answer:
        """See `hub.net.Network`."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        url = wire_url(request.url)
        try:
            response = await self._sides[request.purpose].session.request(
                request.method,
                url,
                headers=request.headers,
                skip_auto_headers=_unwanted_headers(request),
                data=_sendable(request.body),
                allow_redirects=False,
                timeout=_client_timeout(request.limits),
            )
        except AIOHTTP_FAILURES as failure:
            raise explain(failure) from failure
        body, complete = await _read(response, request)
        return Answer(
            url=request.url,
            status=response.status,
            headers=response.headers,
            body=body,
            complete=complete,
            milliseconds=round((loop.time() - started) * 1000),
        )

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        """See `hub.net.Network`."""
        guard = self._guards[purpose]
        if not guard.has_allowed_networks:
            return False
        if parse_literal(host) is not None:
            return guard.allows(host)
        side = self._sides.get(purpose)
        addresses = side.resolver.last_addresses(host) if side else ()
        return bool(addresses) and all(map(guard.allows, addresses))

    def _open(self, guard: Guard) -> _Side:
        resolver = GuardedResolver(guard, self._lookup)

        def open_socket(info: AddrInfoType) -> socket.socket:
            family, kind, protocol, _, (host, port, *_) = info
            if not guard.permits(str(host), int(port)):
                raise AddressBlocked
            return socket.socket(family, kind, protocol)

        connector = TCPConnector(
            resolver=resolver,
            socket_factory=open_socket,
            limit=self._connections,
            ssl=self._tls or True,
        )
        session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
        return _Side(guard=guard, resolver=resolver, session=session)


def _unwanted_headers(request: Request) -> list[str] | None:
    """What aiohttp must be told not to add; None is its fast way."""
    given = request.headers
    unwanted = [name for name in _AUTOMATIC_HEADERS if name not in given]
    is_bare = request.method == "GET" and request.body is None
    if not is_bare and "Content-Type" not in given:
        unwanted.append("Content-Type")
    return unwanted or None


async def _read(response: ClientResponse, request: Request) -> tuple[bytes, bool]:
    """The body and whether it is all; only a 2xx has one that is wanted whole.

    A connection whose answer was not read to its end is closed, not reused.
    """
    complete = False
    try:
        if request.cuts_body or not 200 <= response.status < 300:
            body, complete = await read_beginning(response, request.cut)
        else:
            body = await read_whole(response, request.limits.body_bytes)
            complete = True
    except NetworkError as error:
        error.status = response.status
        raise
    except AIOHTTP_FAILURES as failure:
        raise explain(failure, response.status) from failure
    finally:
        if not complete:
            response.close()
    return body, complete


def _sendable(body: bytes | None) -> bytes | BytesIO | None:
    """aiohttp writes bytes at one go and warns when they are many."""
    return BytesIO(body) if body is not None and len(body) > MEBIBYTE else body


@lru_cache(64)
def _client_timeout(limits: Limits) -> ClientTimeout:
    """A limit between reads costs a timer for each; one that adds nothing is none."""
    is_idle_shorter = limits.idle_seconds < limits.seconds
    return ClientTimeout(
        total=limits.seconds,
        sock_connect=limits.idle_seconds if is_idle_shorter else None,
        sock_read=limits.idle_seconds if is_idle_shorter else None,
    )
