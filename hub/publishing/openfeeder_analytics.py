"""Analytics of OpenFeeder (OpenFeeder 12): reads by bots, reported to one service or
none.

An answer never waits for a report. Reports go through a bounded queue; those that it
has no room for are lost. A failure is logged once, until reports succeed again.
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
"""Seconds for one request to the analytics service."""
GOOGLE = "https://www.google-analytics.com"
USER_AGENT = "Mozilla/5.0 (Fanfare)"
"""Umami accepts no events from a User-Agent that names a program."""

log = structlog.get_logger()


class AnalyticsSink(Protocol):
    """An analytics service. Raises `NetworkError` and `SinkRefused`."""

    async def tell(self, event: AnalyticsEvent) -> None: ...


class SinkRefused(Exception):
    """The service did not accept an event; the message is the status of its answer."""


class LogSink:
    async def tell(self, event: AnalyticsEvent) -> None:
        log.info(EVENT, **event.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSink:
    """Sends events by HTTP; ``body`` makes the body of a request from an event."""

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
    """Reports events; nothing if ``sink`` is None. `run` is its background part."""

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
        """Queue an event; returns at once, and drops the event if the queue is full."""
        if self._sink is not None and not self._waiting.full():
            self._waiting.put_nowait(event)

    async def run(self) -> None:
        """Report queued events, until cancelled."""
        while True:
            await self._tell(await self._waiting.get())
            self._waiting.task_done()

    async def told(self) -> None:
        """Wait until all queued events are reported."""
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
    """The sink that the settings name; None if nothing is to be reported."""
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
