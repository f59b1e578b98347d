"""The only place where connections are opened, if the guard permits it."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Sequence
from functools import cache, partial
from itertools import chain, zip_longest
from typing import NamedTuple

from hub.http.client_connections import ClientConnection, not_connected
from hub.http.exchange import RequestProgress, ServerAddress
from hub.http.guard import Guard, parse_literal
from hub.http.network_errors import TimedOut
from hub.http.resolver import AddressBlocked, GuardedResolver
from protocols.http import RequestStage

NEXT_ADDRESS_SECONDS = 0.25
"""RFC 8305, 8: how long to wait for one address before the next is tried as well."""

_NUMBERS = re.compile(r"[\d.]*")


@cache
def system_tls() -> ssl.SSLContext:
    """A TLS context with the system's trust; servers must prove their names."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class _Trial(NamedTuple):
    """What is the same for all addresses of a server."""

    server: ServerAddress
    deadline: float
    idle: float | None
    progress: RequestProgress | None


class Dialler:
    """Opens connections for one purpose."""

    def __init__(
        self, guard: Guard, resolver: GuardedResolver, tls: ssl.SSLContext
    ) -> None:
        self._guard = guard
        self._resolver = resolver
        self._tls = tls

    async def dial(
        self,
        server: ServerAddress,
        *,
        deadline: float,
        idle: float | None,
        progress: RequestProgress | None = None,
    ) -> ClientConnection:
        """A connection to the server, TLS agreed on where it is asked for.

        Several addresses are tried one after the other, IPv6 and IPv4 in turn: the next
        when one fails, or has not answered for a moment. ``deadline`` is in the loop's
        time; ``idle`` bounds each try, in seconds. ``progress`` is that of the last one
        that failed. Raises a NetworkError.
        """
        try:
            addresses = _literal(server.host)
            if addresses is None:
                _note(progress, RequestStage.DNS)
                addresses = await self._look_up(server, deadline)
            trial = _Trial(server, deadline, idle, progress)
            if len(addresses) == 1:
                return await self._connect(trial, addresses[0])
            return await self._race(trial, _in_turn(addresses))
        except (OSError, UnicodeError) as failure:
            if isinstance(failure, AddressBlocked):
                _note(progress, RequestStage.GUARD)
            raise not_connected(failure) from failure

    async def _look_up(self, server: ServerAddress, deadline: float) -> Sequence[str]:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._resolver.resolve(server.host, server.port)
        except TimeoutError:
            raise TimedOut("no answer in time") from None

    async def _connect(self, trial: _Trial, address: str) -> ClientConnection:
        # the last word, on the very text that is dialled: a literal, or it is refused
        if not self._guard.permits(address, trial.server.port):
            raise AddressBlocked
        deadline, idle = trial.deadline, trial.idle
        patience = deadline
        if idle is not None:
            patience = asyncio.get_running_loop().time() + idle
        try:
            async with asyncio.timeout_at(min(deadline, patience)):
                return await self._connected(trial, address)
        except TimeoutError:
            prefix = "cannot connect: " if patience < deadline else ""
            raise TimedOut(f"{prefix}no answer in time") from None

    async def _connected(self, trial: _Trial, address: str) -> ClientConnection:
        loop = asyncio.get_running_loop()
        is_exempt = self._guard.allows(address)
        stage = RequestStage.CONNECT
        _note(trial.progress, stage)
        try:
            transport, connection = await loop.create_connection(
                partial(ClientConnection, loop, is_exempt=is_exempt),
                address,
                trial.server.port,
            )
            if trial.server.is_tls:
                stage = RequestStage.TLS
                _note(trial.progress, stage)
                await self._secure(connection, transport, trial.server.host)
        except (Exception, asyncio.CancelledError):
            _note(trial.progress, stage)
            raise
        return connection

    async def _secure(
        self, connection: ClientConnection, transport: asyncio.Transport, host: str
    ) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                connection,
                self._tls,
                # certificates have names without the dot of a full one
                server_hostname=host.rstrip("."),
            )
        except (Exception, asyncio.CancelledError):
            transport.abort()
            raise
        if secured is None:  # it was lost as TLS was agreed on
            raise ConnectionResetError
        connection.change_transport(secured)

    async def _race(self, trial: _Trial, addresses: Sequence[str]) -> ClientConnection:
        """The first connection that comes about; the last failure if none does."""
        waiting = list(reversed(addresses))
        tries: set[asyncio.Task[ClientConnection]] = set()
        try:
            while True:
                if waiting:
                    attempt = self._connect(trial, waiting.pop())
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


def _note(progress: RequestProgress | None, stage: RequestStage) -> None:
    if progress is not None:
        progress.stage = stage


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
    """Alternate between the address families, starting with the first address's (RFC
    8305, 4)."""
    first = ":" in addresses[0]
    same = [text for text in addresses if (":" in text) is first]
    other = [text for text in addresses if (":" in text) is not first]
    pairs = chain.from_iterable(zip_longest(same, other))
    return [text for text in pairs if text is not None]
