"""Names to addresses, within a deadline and on threads of its own."""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hub.net.guard import Guard

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""From a name to its addresses, IPv4 and IPv6; raises OSError when there are none."""

LOOKUP_SECONDS = 5.0
NAMES_KEPT = 10.0
"""Seconds. Every address is judged again each time."""
_LOOKUP_THREADS = 16
_REMEMBERED_NAMES = 10_000
_MOST_ADDRESSES = 16  # of one name; more are not tried


class AddressBlocked(OSError):
    """The guard refuses to connect."""


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


class GuardedResolver:
    """Resolves names to the addresses that the guard permits.

    Names only: literal addresses never come here, which is why the guard is asked
    again when one is dialled. Whoever asks for a name while it is looked up waits for
    the same answer, and for ``NAMES_KEPT`` seconds nobody asks again. What names were
    last resolved to is remembered for longer.
    """

    def __init__(
        self, guard: Guard, lookup: Lookup, *, seconds: float = LOOKUP_SECONDS
    ) -> None:
        self._guard = guard
        self._lookup = lookup
        self._seconds = seconds
        self._resolved: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()
        self._asked: dict[str, asyncio.Future[None]] = {}

    def last_addresses(self, host: str) -> tuple[str, ...]:
        return self._resolved.get(host, (0.0, ()))[1]

    async def resolve(self, host: str, port: int) -> list[str]:
        """Raises AddressBlocked if none is permitted, LookupFailed if there is none."""
        addresses = await self._addresses(host)
        permitted = [text for text in addresses if self._guard.permits(text, port)]
        if not permitted:
            raise AddressBlocked
        return permitted

    async def _addresses(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        while True:
            until, addresses = self._resolved.get(host, (0.0, ()))
            if addresses and loop.time() < until:
                return addresses
            asked = self._asked.get(host)
            if asked is None:
                return await self._ask(host)
            await asyncio.shield(asked)  # nothing is known if who asked was cancelled

    async def _ask(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        asked = self._asked[host] = loop.create_future()
        try:
            addresses = await self._look_up(host)
            self._remember(host, loop.time() + NAMES_KEPT, addresses)
        except LookupFailed as failure:
            asked.set_exception(failure)
            asked.exception()  # nobody need be waiting for it
            raise
        finally:
            del self._asked[host]
            if not asked.done():
                asked.set_result(None)
        return addresses

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

    def _remember(self, host: str, until: float, addresses: tuple[str, ...]) -> None:
        self._resolved[host] = until, addresses
        self._resolved.move_to_end(host)
        if len(self._resolved) > _REMEMBERED_NAMES:
            self._resolved.popitem(last=False)
