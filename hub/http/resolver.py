"""Host names to addresses, within a deadline, and only permitted ones.

`SystemLookup` asks the operating system, on threads of its own.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from hub.http.guard import Guard
from hub.runtime.caching import BoundedDict
from protocols.domains import zone_of

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""From a name to its addresses, IPv4 and IPv6; raises OSError when there are none."""

LOOKUP_SECONDS = 5.0
NAMES_KEPT = 10.0
"""Seconds for which a lookup's result is kept, even if there is no address. Each
address is judged again each time."""
_REMEMBERED_NAMES = 10_000
_MOST_ADDRESSES = 16  # of one name; more are not tried


class AddressBlocked(OSError):
    """The guard refuses to connect."""


class LookupFailed(OSError):
    """The name has no address, or its servers do not answer in time."""


class GuardedResolver:
    """Resolves names to the addresses that the guard permits.

    Names only: literal addresses never come here, which is why the guard is asked
    again when one is dialled. Requests for a name that is being looked up wait for
    the same answer, which is kept for ``NAMES_KEPT`` seconds, whether it has an address
    or not. The last addresses of names are remembered for longer.
    """

    def __init__(
        self, guard: Guard, lookup: Lookup, *, seconds: float = LOOKUP_SECONDS
    ) -> None:
        self._guard = guard
        self._lookup = lookup
        self._seconds = seconds
        self._resolved: BoundedDict[str, tuple[float, tuple[str, ...]]]
        self._resolved = BoundedDict(_REMEMBERED_NAMES)
        self._failed: BoundedDict[str, tuple[float, str]]
        self._failed = BoundedDict(_REMEMBERED_NAMES)
        self._lookups: dict[str, asyncio.Future[None]] = {}

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
            lookup = self._lookups.get(host)
            if lookup is None:
                return await self._ask(host)
            await asyncio.shield(lookup)  # nothing is known if who asked was cancelled

    async def _ask(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        lookup = self._lookups[host] = loop.create_future()
        try:
            addresses = await self._look_up(host)
            self._failed.pop(host, None)
            self._resolved[host] = loop.time() + NAMES_KEPT, addresses
        except LookupFailed as failure:
            self._failed[host] = loop.time() + NAMES_KEPT, str(failure)
            lookup.set_exception(failure)
            lookup.exception()  # nobody need be waiting for it
            raise
        finally:
            del self._lookups[host]
            if not lookup.done():
                lookup.set_result(None)
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


THREADS: Final = 128
"""Threads for lookups, including those nobody waits for any more: a thread that has
asked cannot be told to give up, and may wait for dead name servers for half a minute.
"""
THREADS_OF_ZONE: Final = 16
"""The most of these threads for names of one zone. A zone also gets only a part of what
is free, so that many zones leave some to the next one."""
_PART_OF_FREE: Final = 8
LEFT_BY_NEW: Final = 32
LEFT_BY_SLOW: Final = 64
"""Threads that slow zones leave to others: zones of which nothing is known leave so
many to those that answered in time the last time; zones that did not, to both."""
SLOW_SECONDS: Final = 1.0
_REMEMBERED_ZONES: Final = 10_000

Blocking = Callable[[str], list[str]]


@dataclass(slots=True, eq=False)
class _Lookup:
    """A name that is being looked up, or waits for a thread."""

    found: asyncio.Future[list[str]]
    waiting: int = 0


@dataclass(slots=True, eq=False)
class _Zone:
    """A zone's names that are being looked up, with when each began, and those that
    wait."""

    begun: dict[str, float] = field(default_factory=dict)
    line: dict[str, _Lookup] = field(default_factory=dict)


class SystemLookup:
    """Looks up a name's addresses, IPv4 and IPv6; raises OSError when there are none.

    ``look_up`` is what the threads call, ``now`` tells seconds. A name has one lookup
    at a time, however many callers want it, and waits until there is a thread that its
    zone may use. A lookup that nobody waits for any more is not begun.
    """

    def __init__(
        self, look_up: Blocking | None = None, now: Callable[[], float] = monotonic
    ) -> None:
        self._look_up = look_up or _look_up
        self._now = now
        self._threads = ThreadPoolExecutor(THREADS, "lookup")
        self._free = THREADS
        self._lookups: dict[str, _Lookup] = {}
        self._zones: dict[str, _Zone] = {}
        self._line: dict[str, None] = {}  # zones with names that wait, by turns
        self._lasted: BoundedDict[str, float] = BoundedDict(_REMEMBERED_ZONES)

    async def __call__(self, host: str) -> Sequence[str]:
        lookup = self._lookups.get(host) or self._ask(host)
        lookup.waiting += 1
        try:
            await asyncio.wait({lookup.found})  # who gives up takes it from nobody
        finally:
            lookup.waiting -= 1
            if not lookup.waiting:
                self._leave_line(host, lookup)
        return lookup.found.result()

    def close(self) -> None:
        self._line.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, host: str) -> _Lookup:
        name = zone_of(host)
        found = asyncio.get_running_loop().create_future()
        self._lookups[host] = lookup = _Lookup(found)
        zone = self._zones.setdefault(name, _Zone())
        zone.line[host] = lookup
        self._line[name] = None
        self._begin_of(name, zone)  # for others nothing has changed
        return lookup

    def _leave_line(self, host: str, lookup: _Lookup) -> None:
        """Take the name out of the line, if it is there and not waited for again by
        others."""
        name = zone_of(host)
        zone = self._zones.get(name)
        if zone is not None and zone.line.get(host) is lookup:
            del zone.line[host], self._lookups[host]
            self._tidy(name, zone)

    def _begin_some(self) -> None:
        """Begin lookups, those that waited longest first."""
        for name in list(self._line):
            if not self._free:
                return
            self._begin_of(name, self._zones[name])

    def _begin_of(self, name: str, zone: _Zone) -> None:
        """Begin as many lookups of the zone as it may have at once; then the zone is
        last in line."""
        while zone.line and len(zone.begun) < self._most(name, zone):
            self._begin(name, zone)
            del self._line[name]
            self._line[name] = None
        self._tidy(name, zone)

    def _most(self, name: str, zone: _Zone) -> int:
        """The most lookups that a zone may have under way now."""
        room = self._free - self._left_by(name, zone)
        return min(THREADS_OF_ZONE, max(1, room // _PART_OF_FREE)) if room > 0 else 0

    def _left_by(self, name: str, zone: _Zone) -> int:
        oldest = next(iter(zone.begun.values()), None)
        lasted = 0.0 if oldest is None else self._now() - oldest
        lasted = max(lasted, self._lasted.get(name, 0.0))
        if lasted > SLOW_SECONDS:
            return LEFT_BY_SLOW
        return 0 if name in self._lasted else LEFT_BY_NEW

    def _begin(self, name: str, zone: _Zone) -> None:
        host = next(iter(zone.line))
        lookup = zone.line.pop(host)
        zone.begun[host] = self._now()
        self._free -= 1
        work = asyncio.wrap_future(self._threads.submit(self._look_up, host))
        work.add_done_callback(lambda work: self._end(work, host, name, lookup))

    def _end(
        self, work: asyncio.Future[list[str]], host: str, name: str, lookup: _Lookup
    ) -> None:
        """Free the place of a finished lookup."""
        if work.cancelled():  # all of it is being closed
            return
        del self._lookups[host]
        zone = self._zones[name]
        self._lasted[name] = self._now() - zone.begun.pop(host)
        self._free += 1
        self._tidy(name, zone)
        _hand_over(work, lookup.found)
        self._begin_some()

    def _tidy(self, name: str, zone: _Zone) -> None:
        if not zone.line:
            self._line.pop(name, None)
            if not zone.begun:
                del self._zones[name]


def _hand_over(
    work: asyncio.Future[list[str]], found: asyncio.Future[list[str]]
) -> None:
    if (error := work.exception()) is None:
        found.set_result(work.result())
    else:
        found.set_exception(error)
        found.exception()  # nobody need be waiting for it


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]
