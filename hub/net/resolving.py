"""Names to addresses, within a deadline, and only to those that are permitted."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from hub.net.guard import Guard

Known = TypeVar("Known")
Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""From a name to its addresses, IPv4 and IPv6; raises OSError when there are none."""

LOOKUP_SECONDS = 5.0
NAMES_KEPT = 10.0
"""Seconds, also of one that has no address. Every address is judged again each time."""
_REMEMBERED_NAMES = 10_000
_MOST_ADDRESSES = 16  # of one name; more are not tried


class AddressBlocked(OSError):
    """The guard refuses to connect."""


class LookupFailed(OSError):
    """The name has no address, or its servers do not answer in time."""


class GuardedResolver:
    """Resolves names to the addresses that the guard permits.

    Names only: literal addresses never come here, which is why the guard is asked
    again when one is dialled. Whoever asks for a name while it is looked up waits for
    the same answer, and for ``NAMES_KEPT`` seconds nobody asks again, whether there was
    an address or none. What names were last resolved to is remembered for longer.
    """

    def __init__(
        self, guard: Guard, lookup: Lookup, *, seconds: float = LOOKUP_SECONDS
    ) -> None:
        self._guard = guard
        self._lookup = lookup
        self._seconds = seconds
        self._resolved: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()
        self._failed: OrderedDict[str, tuple[float, str]] = OrderedDict()
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
            until, reason = self._failed.get(host, (0.0, ""))
            if reason and loop.time() < until:
                raise LookupFailed(reason)
            asked = self._asked.get(host)
            if asked is None:
                return await self._ask(host)
            await asyncio.shield(asked)  # nothing is known if who asked was cancelled

    async def _ask(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        asked = self._asked[host] = loop.create_future()
        try:
            addresses = await self._look_up(host)
            self._failed.pop(host, None)
            _remember(self._resolved, host, (loop.time() + NAMES_KEPT, addresses))
        except LookupFailed as failure:
            _remember(self._failed, host, (loop.time() + NAMES_KEPT, str(failure)))
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


def _remember(names: OrderedDict[str, Known], host: str, what: Known) -> None:
    names[host] = what
    names.move_to_end(host)
    if len(names) > _REMEMBERED_NAMES:
        names.popitem(last=False)
