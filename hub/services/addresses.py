"""A first look by the address guard, before anything is stored.

It only spares people the wait for a request that would be refused: the guard that
protects works where connections are made, on the very address that is dialled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import urlsplit

from hub.http.guard import Guard, parse_literal
from hub.http.resolver import LOOKUP_SECONDS, Lookup
from hub.ingest.fetcher import BlockedHosts
from hub.services.errors import AddressRefused
from protocols.errors import InvalidValue

DEFAULT_PORTS = {"http": 80, "https": 443}


class AddressCheck:
    def __init__(
        self,
        *,
        topics: Guard,
        callbacks: Guard,
        lookup: Lookup,
        opt_outs: BlockedHosts | None = None,
    ) -> None:
        self._opt_outs = opt_outs or BlockedHosts()
        self._topics = topics
        self._callbacks = callbacks
        self._lookup = lookup

    async def check_topic(self, field: str, url: str) -> None:
        """Raises `AddressRefused` if no address of the host may be fetched from, and
        `InvalidValue` if the operator lists it among those that want no requests."""
        if self._opt_outs.cover(url):
            expected = "a host that is not listed in FANFARE_BLOCKED_HOSTS"
            raise InvalidValue(field, expected)
        if not await self._permits(self._topics, url):
            raise AddressRefused(field, url, "FANFARE_ALLOW_TOPIC_NETWORKS")

    async def check_callback(self, field: str, url: str) -> None:
        """Raises `AddressRefused` if no address of the host may be delivered to."""
        if not await self._permits(self._callbacks, url):
            raise AddressRefused(field, url, "FANFARE_ALLOW_CALLBACK_NETWORKS")

    async def _permits(self, guard: Guard, url: str) -> bool:
        """A name that cannot be resolved now passes: it is no question of the guard."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        addresses = await self._addresses(host)
        return not addresses or any(guard.permits(each, port) for each in addresses)

    async def _addresses(self, host: str) -> Sequence[str]:
        if parse_literal(host) is not None:
            return (host,)
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await self._lookup(host)
        except (OSError, UnicodeError):
            return ()
