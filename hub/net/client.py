"""The network: HTTP/1.1 on httptools, guarded where connections are made."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from hub.net.addresses import AddressRange
from hub.net.dialling import system_tls
from hub.net.guard import DENIED_PORTS, Guard
from hub.net.messages import Answer, Purpose, Request
from hub.net.resolving import Lookup
from hub.net.side import Side
from hub.net.system_lookup import SystemLookup


class HttpNetwork:
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
            purpose: Side(
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for side in self._sides.values():
            side.close()
        self._system_lookup.close()

    async def send(self, request: Request) -> Answer:
        """See `hub.net.Network`."""
        return await self._sides[request.purpose].send(request)

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        """See `hub.net.Network`."""
        return self._sides[purpose].is_exempt(host)
