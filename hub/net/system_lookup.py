"""The operating system's resolver, on threads that no other work waits for."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from hub.net.zones import zone_of

THREADS = 128
"""Lookups under way, and those that nobody waits for any more: a thread that has
asked cannot be told to give up, and may wait for dead name servers half a minute."""
THREADS_OF_ZONE = 16
"""Of those, for names of one zone: it cannot hold up the lookups of others."""

Blocking = Callable[[str], list[str]]


class SystemLookup:
    """A name's addresses, IPv4 and IPv6; raises OSError when there are none.

    ``look_up`` is what the threads do. A name is looked up once at a time, however
    many want it, and one whose zone has all its threads waits for one of them.
    """

    def __init__(self, look_up: Blocking | None = None) -> None:
        self._look_up = look_up or _look_up
        self._threads = ThreadPoolExecutor(THREADS, "lookup")
        self._asked: dict[str, asyncio.Future[list[str]]] = {}
        self._taken: Counter[str] = Counter()
        self._freed: dict[str, asyncio.Event] = {}

    async def __call__(self, host: str) -> Sequence[str]:
        zone = zone_of(host)
        while host not in self._asked and self._taken[zone] >= THREADS_OF_ZONE:
            await self._freed.setdefault(zone, asyncio.Event()).wait()
        asked = self._asked.get(host) or self._begin(host, zone)
        await asyncio.wait({asked})  # who gives up takes it from nobody
        return asked.result()

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin(self, host: str, zone: str) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._threads, self._look_up, host)
        self._asked[host] = asked
        self._taken[zone] += 1
        asked.add_done_callback(lambda _: self._end(host, zone))
        return asked

    def _end(self, host: str, zone: str) -> None:
        """Its thread is free again; nobody need be waiting for what it found."""
        asked = self._asked.pop(host)
        if not asked.cancelled():
            asked.exception()
        self._taken[zone] -= 1
        if not self._taken[zone]:
            del self._taken[zone]
        if freed := self._freed.pop(zone, None):
            freed.set()


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]
