"""Requests for what is no feed yet, no faster than a host is ever asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from hub.core.fetched import Fetched
from hub.http import Network, Purpose
from hub.limits.host_limiter import HostLimiter
from hub.polling.fetcher import FeedFetcher, FetchRequest
from hub.runtime.clock import Clock


class PacedFetcher:
    """Fetches through another fetcher; hosts that are exempt do not wait."""

    def __init__(
        self,
        fetcher: FeedFetcher,
        network: Network,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sleep = sleep
        self._fetcher = fetcher
        self._network = network
        self._clock = clock
        self._pacer = HostLimiter()

    async def fetch(self, request: FetchRequest) -> Fetched:
        """One fetch, when it is its turn."""
        host = urlsplit(request.url).hostname or ""
        if not self._network.is_exempt(host, Purpose.TOPIC):
            now = self._clock.monotonic()
            await self._sleep(self._pacer.reserve(host, now) - now)
        return await self._fetcher.fetch(request)
