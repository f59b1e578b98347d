"""Connections are opened here and nowhere else, where the guard permits it."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Sequence
from functools import cache
from itertools import chain, zip_longest

from hub.http.client_connections import ClientConnection, not_connected
from hub.http.guard import Guard, parse_literal
from hub.http.network_errors import TimedOut
from hub.http.request_head import ServerAddress
from hub.http.resolver import AddressBlocked, GuardedResolver

NEXT_ADDRESS_SECONDS = 0.25
"""RFC 8305, 8: how long to wait for one address before the next is tried as well."""

_NUMBERS = re.compile(r"[\d.]*")


@cache
def system_tls() -> ssl.SSLContext:
    """The system's trust; servers must prove their names."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialler:
    """Opens connections for one purpose."""

    def __init__(
        self, guard: Guard, resolver: GuardedResolver, tls: ssl.SSLContext
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._tls = tls

    async def dial(
        self, server: ServerAddress, *, deadline: float, idle: float | None
    ) -> ClientConnection:
        """A connection to the server, TLS agreed on where it is asked for.

        Several addresses are tried one after the other, IPv6 and IPv4 in turn: the next
        when one fails, or has not answered for a moment. ``deadline`` is in the loop's
        time; ``idle`` bounds each try, in seconds. Raises a NetworkError.
        """
        try:
            addresses = _literal(server.host)
            if addresses is None:
                addresses = await self._look_up(server, deadline)
            if len(addresses) == 1:
                return await self._connect(server, addresses[0], deadline, idle)
            return await self._race(server, _in_turn(addresses), deadline, idle)
        except (OSError, UnicodeError) as failure:
            raise not_connected(failure) from failure

    async def _look_up(self, server: ServerAddress, deadline: float) -> Sequence[str]:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._resolver.resolve(server.host, server.port)
        except TimeoutError:
            raise TimedOut("no answer in time") from None

    async def _connect(
        self, server: ServerAddress, address: str, deadline: float, idle: float | None
    ) -> ClientConnection:
        # the last word, on the very text that is dialled: a literal, or it is refused
        if not self._guard.permits(address, server.port):
            raise AddressBlocked
        loop = asyncio.get_running_loop()
        patience = deadline if idle is None else loop.time() + idle
        try:
            async with asyncio.timeout_at(min(deadline, patience)):
                _, connection = await loop.create_connection(
                    lambda: ClientConnection(loop),
                    address,
                    server.port,
                    ssl=self._tls if server.is_tls else None,
                    # certificates have names without the dot of a full one
                    server_hostname=server.host.rstrip(".") if server.is_tls else None,
                )
        except TimeoutError:
            trouble = "cannot connect: " if patience < deadline else ""
            raise TimedOut(f"{trouble}no answer in time") from None
        return connection

    async def _race(
        self,
        server: ServerAddress,
        addresses: Sequence[str],
        deadline: float,
        idle: float | None,
    ) -> ClientConnection:
        """The first connection that comes about; the last failure if none does."""
        waiting = list(reversed(addresses))
        tries: set[asyncio.Task[ClientConnection]] = set()
        try:
            while True:
                if waiting:
                    attempt = self._connect(server, waiting.pop(), deadline, idle)
                    tries.add(asyncio.create_task(attempt))
                done, _ = await asyncio.wait(
                    tries,
                    timeout=NEXT_ADDRESS_SECONDS if waiting else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for each in done:
                    tries.discard(each)
                    failure = each.exception()
                    if failure is None:
                        return each.result()
                    if not waiting and not tries:
                        raise failure
        finally:
            await _call_off(tries)


async def _call_off(tries: set[asyncio.Task[ClientConnection]]) -> None:
    for each in tries:
        each.cancel()
    for late in await asyncio.gather(*tries, return_exceptions=True):
        if isinstance(late, ClientConnection):
            late.close()


def _literal(host: str) -> Sequence[str] | None:
    """The host itself if it is an address; None if it is a name.

    Raises AddressBlocked for what only some resolvers read as an address: 127.1, or
    2130706433.
    """
    if parse_literal(host) is not None:
        return (host,)
    if ":" in host or _NUMBERS.fullmatch(host):
        raise AddressBlocked
    return None


def _in_turn(addresses: Sequence[str]) -> Sequence[str]:
    """RFC 8305, 4: alternating between the families, beginning with the first's."""
    first = ":" in addresses[0]
    same = [text for text in addresses if (":" in text) is first]
    other = [text for text in addresses if (":" in text) is not first]
    pairs = chain.from_iterable(zip_longest(same, other))
    return [text for text in pairs if text is not None]
