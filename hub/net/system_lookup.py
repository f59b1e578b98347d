"""The operating system's resolver, on threads that no other work waits for."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from hub.net.zones import zone_of

THREADS = 128
"""Lookups under way, and those that nobody waits for any more: a thread that has
asked cannot be told to give up, and may wait for dead name servers half a minute."""
THREADS_OF_ZONE = 16
"""Of those, for names of one zone: it cannot hold up the lookups of others."""

Blocking = Callable[[str], list[str]]


@dataclass(slots=True, eq=False)
class _Asked:
    """A name that is looked up, or waits for a thread."""

    work: Future[list[str]]
    found: asyncio.Future[list[str]]
    waiting: int = 0


class SystemLookup:
    """A name's addresses, IPv4 and IPv6; raises OSError when there are none.

    ``look_up`` is what the threads do. A name is looked up once at a time, however
    many want it, and one whose zone has all its threads waits for one of them. What
    nobody waits for any more is not begun.
    """

    def __init__(self, look_up: Blocking | None = None) -> None:
        self._look_up = look_up or _look_up
        self._threads = ThreadPoolExecutor(THREADS, "lookup")
        self._asked: dict[str, _Asked] = {}
        self._taken: Counter[str] = Counter()
        self._freed: dict[str, asyncio.Event] = {}

    async def __call__(self, host: str) -> Sequence[str]:
        zone = zone_of(host)
        while host not in self._asked and self._taken[zone] >= THREADS_OF_ZONE:
            await self._freed.setdefault(zone, asyncio.Event()).wait()
        asked = self._asked.get(host) or self._begin(host, zone)
        asked.waiting += 1
        try:
            await asyncio.wait({asked.found})  # who gives up takes it from nobody
        finally:
            asked.waiting -= 1
            if not asked.waiting and asked.work.cancel():  # no thread has taken it up
                self._end(host, zone)
        return asked.found.result()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin(self, host: str, zone: str) -> _Asked:
        work = self._threads.submit(self._look_up, host)
        found = asyncio.wrap_future(work)
        self._asked[host] = asked = _Asked(work, found)
        self._taken[zone] += 1
        found.add_done_callback(lambda _: self._take_in(found, host, zone))
        return asked

    def _take_in(self, found: asyncio.Future[list[str]], host: str, zone: str) -> None:
        if not found.cancelled():
            found.exception()  # nobody need be waiting for what it found
            self._end(host, zone)

    def _end(self, host: str, zone: str) -> None:
        """Its place is free again."""
        del self._asked[host]
        self._taken[zone] -= 1
        if not self._taken[zone]:
            del self._taken[zone]
        if freed := self._freed.pop(zone, None):
            freed.set()


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]
