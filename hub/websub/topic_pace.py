"""How fast topics that nobody knows are looked at: by host, and by zone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from hub.limits.host_limiter import HostLimiter
from hub.runtime.clock import Clock
from protocols.domains import zone_of

MOST_OF_A_HOST: Final = 4
"""Topics of one host that wait for their turn; more of them come back later."""
MOST_OF_A_ZONE: Final = 16
"""Of all hosts of one owner: any number of them may be names of one address."""
ZONE_INTERVAL: Final = 0.1
"""Seconds between two of one zone; of one host it is a second."""


class TopicPace:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hosts = HostLimiter()
        self._zones = HostLimiter(interval=ZONE_INTERVAL)
        self._waiting: Counter[str] = Counter()
        self._waiting_of_zone: Counter[str] = Counter()

    def is_crowded(self, host: str) -> bool:
        """Whether no more should wait for that host."""
        of_zone = self._waiting_of_zone[zone_of(host)]
        return of_zone >= MOST_OF_A_ZONE or self._waiting[host] >= MOST_OF_A_HOST

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Entered when it has come; left when the topic was looked at."""
        zone, now = zone_of(host), self._clock.monotonic()
        start = max(self._hosts.reserve(host, now), self._zones.reserve(zone, now))
        self._waiting[host] += 1
        self._waiting_of_zone[zone] += 1
        try:
            await asyncio.sleep(start - now)
            yield
        finally:
            self._waiting[host] -= 1
            self._waiting_of_zone[zone] -= 1
            self._waiting += Counter()  # drops those at zero
            self._waiting_of_zone += Counter()
