"""Analytics of OpenFeeder (OpenFeeder 12): reads of bots, reported to one place or
none.

An answer never waits for it: reports go through a bounded queue, and those beyond it
are lost. A failure is logged once, until it works again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from hub.http import Network, Purpose, Request, ResponseLimits
from hub.http.network_errors import NetworkError
from hub.settings import Settings
from protocols.openfeeder.write.bot_requests import (
    EVENT,
    AnalyticsEvent,
    ga4_body,
    ga4_query,
    umami_body,
)

MOST_WAITING = 1_000
SECONDS = 5.0
"""For one request to where it is told."""
GOOGLE = "https://www.google-analytics.com"
USER_AGENT = "Mozilla/5.0 (Fanfare)"
"""Umami takes no event from what names itself as a program."""

log = structlog.get_logger()


class AnalyticsSink(Protocol):
    """Where events are told. Raises `NetworkError` and `SinkRefused`."""

    async def tell(self, event: AnalyticsEvent) -> None: ...


class SinkRefused(Exception):
    """The place did not take an event; the message is its status."""


class LogSink:
    async def tell(self, event: AnalyticsEvent) -> None:
        log.info(EVENT, **event.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSink:
    """``body`` makes the request's body of an event."""

    network: Network
    url: str
    body: Callable[[AnalyticsEvent], bytes]
    token: str = ""

    async def tell(self, event: AnalyticsEvent) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        answer = await self.network.send(
            Request(
                method="POST",
                url=self.url,
                purpose=Purpose.CALLBACK,
                headers=headers,
                body=self.body(event),
                limits=ResponseLimits(seconds=SECONDS, idle_seconds=SECONDS),
                cuts_body=True,
                cut=1_024,
            )
        )
        if answer.status >= 300:
            raise SinkRefused(f"status {answer.status}")


class Analytics:
    """``sink`` None: nothing is counted. `run` is its background part."""

    def __init__(
        self, sink: AnalyticsSink | None = None, capacity: int = MOST_WAITING
    ) -> None:
        self._sink = sink
        self._waiting: asyncio.Queue[AnalyticsEvent] = asyncio.Queue(capacity)
        self._is_failing = False

    @property
    def is_on(self) -> bool:
        return self._sink is not None

    def note(self, event: AnalyticsEvent) -> None:
        """Have it told soon; at once, whatever becomes of it."""
        if self._sink is not None and not self._waiting.full():
            self._waiting.put_nowait(event)

    async def run(self) -> None:
        """Tell what was noted, until cancelled."""
        while True:
            await self._tell(await self._waiting.get())
            self._waiting.task_done()

    async def told(self) -> None:
        """Wait until all events are told."""
        await self._waiting.join()

    async def _tell(self, event: AnalyticsEvent) -> None:
        if self._sink is None:
            return
        try:
            await self._sink.tell(event)
            self._is_failing = False
        except (NetworkError, SinkRefused) as error:
            if not self._is_failing:
                log.warning("analytics_failed", error=str(error))
            self._is_failing = True


def create_sink(
    settings: Settings, network: Network, hostname: str
) -> AnalyticsSink | None:
    """As the settings have it; None: nothing is told."""
    base, site = settings.openfeeder_analytics_url, settings.openfeeder_analytics_site
    secret = settings.openfeeder_analytics_secret
    match settings.openfeeder_analytics:
        case "log":
            return LogSink()
        case "umami":
            return HttpSink(
                network=network,
                url=f"{base}/api/send",
                body=lambda event: umami_body(event, site, hostname),
                token=secret,
            )
        case "ga4":
            return HttpSink(
                network=network,
                url=f"{base or GOOGLE}/mp/collect?{ga4_query(site, secret)}",
                body=ga4_body,
            )
    return None
