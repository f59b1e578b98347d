"""Names to addresses, within a deadline and on threads of its own."""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

from hub.net.guard import Guard

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""From a name to its addresses, IPv4 and IPv6; raises OSError when there are none."""

LOOKUP_SECONDS = 5.0
_LOOKUP_THREADS = 16
_REMEMBERED_NAMES = 10_000
_MOST_ADDRESSES = 16  # of one name; more are not tried


class AddressBlocked(OSError):
    """The guard refused to connect; travels through aiohttp as the OSError it is."""


class LookupFailed(OSError):
    """The name has no address, or its servers do not answer in time."""


class SystemLookup:
    """The operating system's resolver, on threads that no other work waits for."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOKUP_THREADS, "lookup")

    async def __call__(self, host: str) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _look_up, host)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


class GuardedResolver(AbstractResolver):
    """Resolves names to the addresses that the guard permits.

    Names only: literal addresses never come here, which is why the guard is asked
    again when a socket is opened. Remembers what names were last resolved to.
    """

    def __init__(
        self, guard: Guard, lookup: Lookup, *, seconds: float = LOOKUP_SECONDS
    ) -> None:
        self._guard = guard
        self._lookup = lookup
        self._seconds = seconds
        self._resolved: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def last_addresses(self, host: str) -> tuple[str, ...]:
        return self._resolved.get(host, ())

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,
    ) -> list[ResolveResult]:
        addresses = await self._look_up(host)
        self._remember(host, addresses)
        permitted = [text for text in addresses if self._guard.permits(text, port)]
        if not permitted:
            raise AddressBlocked
        return [_result(host, text, port) for text in permitted]

    async def close(self) -> None:
        """Nothing is held here; the lookup is closed by its owner."""

    async def _look_up(self, host: str) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(self._seconds):
                found = await self._lookup(host)
        except TimeoutError:
            raise LookupFailed("the lookup of the host's name took too long") from None
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise LookupFailed("the host's name cannot be resolved")
        return tuple(dict.fromkeys(found))[:_MOST_ADDRESSES]

    def _remember(self, host: str, addresses: tuple[str, ...]) -> None:
        self._resolved[host] = addresses
        self._resolved.move_to_end(host)
        if len(self._resolved) > _REMEMBERED_NAMES:
            self._resolved.popitem(last=False)


def _result(host: str, address: str, port: int) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=socket.IPPROTO_TCP,
        flags=socket.AI_NUMERICHOST,
    )
