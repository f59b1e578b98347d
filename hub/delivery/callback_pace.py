"""At most one question or denial a second for each callback host, whoever sends it.

And ten questions for each zone: who owns one can give somebody else's address any
number of names, and callbacks that are asked have not agreed to anything yet.

Notifications are not counted: who gets them has asked for them. Exempt hosts are not
paced.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from hub.http import Network, Purpose
from hub.limits.host_limiter import HostLimiter
from hub.runtime.clock import Clock
from protocols.domains import zone_of

ZONE_INTERVAL: Final = 0.1
"""Seconds between two requests to hosts of one zone."""


class Kind(StrEnum):
    """Who waits for a host. One of each kind at a time, and they take turns."""

    QUESTION = "question"
    DENIAL = "denial"


class CallbackPace:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._network = network
        self._clock = clock
        self._sleep = sleep
        self._pacer = HostLimiter()
        self._zones = HostLimiter(interval=ZONE_INTERVAL)
        self._waiting: Counter[tuple[Kind, str]] = Counter()

    def is_exempt(self, callback: str) -> bool:
        return self._network.is_exempt(host_of(callback), Purpose.CALLBACK)

    def is_waited_for(self, callback: str, kind: Kind) -> bool:
        """Whether one of that kind is already waiting for the host's next turn."""
        return bool(self._waiting) and (kind, host_of(callback)) in self._waiting

    async def wait(self, callback: str, kind: Kind) -> None:
        """Until the callback's host may get one more request."""
        if self.is_exempt(callback):
            return
        host, now = host_of(callback), self._clock.monotonic()
        start = self._pacer.reserve(host, now)
        if kind is Kind.QUESTION:
            start = max(start, self._zones.reserve(zone_of(host), now))
        self._waiting[kind, host] += 1
        try:
            await self._sleep(start - now)
        finally:
            self._waiting[kind, host] -= 1
            if not self._waiting[kind, host]:
                del self._waiting[kind, host]


@lru_cache(1024)
def host_of(callback: str) -> str:
    return urlsplit(callback).hostname or ""
