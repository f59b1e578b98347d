"""Who reads is told to one place, and no answer waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from structlog.testing import capture_logs

from hub.http import Purpose
from hub.http.network_errors import Unreachable
from hub.publishing.openfeeder_analytics import (
    Analytics,
    HttpSink,
    LogSink,
    create_sink,
)
from hub.settings import Settings
from protocols.openfeeder.write.bot_requests import AnalyticsEvent, Endpoint
from tests.support.application_client import client_of
from tests.support.documents import an_entry
from tests.support.fake_network import FakeNetwork
from tests.support.public_feeds import PublicFeeds
from tests.support.services import open_hub

EVENT = AnalyticsEvent(bot_name="B", bot_family="f", endpoint=Endpoint.INDEX)
BOT = {"User-Agent": "GPTBot/1.0", "X-OpenFeeder-Intent": "answer-question"}


@dataclass
class Collector:
    """A sink that keeps what it is told, or fails as often as it is told to."""

    told: list[AnalyticsEvent] = field(default_factory=list)
    failures: int = 0
    gate: asyncio.Event | None = None

    async def tell(self, event: AnalyticsEvent) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise Unreachable("nobody is there")
        self.told.append(event)


@asynccontextmanager
async def running(analytics: Analytics) -> AsyncIterator[None]:
    task = asyncio.create_task(analytics.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_requests_of_bots_are_told_with_all_eight_fields(tmp_path: Path) -> None:
    async with (
        open_hub(tmp_path, openfeeder_analytics="log") as hub,
        running(hub.services.analytics),
        client_of(hub.application) as client,
    ):
        feeds = PublicFeeds(hub.storage)
        feed = await feeds.add()
        await feeds.publish(feed, an_entry("a"), an_entry("b"))
        await hub.services.collections.build(snapshots=False)
        page = {"url": "https://example.org/a", "q": "content"}
        with capture_logs() as logs:
            for query in ({}, {"q": "cheese"}, page, {"since": "2020-01-01T00:00:00Z"}):
                await client.get("/openfeeder", params=query, headers=BOT)
            await client.get("/.well-known/openfeeder.json", headers=BOT)
            # Neither people nor what was refused.
            await client.get("/openfeeder", headers={"User-Agent": "Firefox/140.0"})
            await client.get("/openfeeder?page=x", headers=BOT)
            await hub.services.analytics.told()
    told = [each for each in logs if each["event"] == "openfeeder_request"]
    assert [
        (each["endpoint"], each["query"], each["results"], each["cached"])
        for each in told
    ] == [
        (Endpoint.INDEX, "", 2, False),
        (Endpoint.SEARCH, "cheese", 0, False),
        (Endpoint.FETCH, "content", 1, True),
        (Endpoint.INDEX, "", 2, False),
        (Endpoint.DISCOVERY, "", 0, False),
    ]
    for each in told:
        assert (each["bot_name"], each["bot_family"]) == ("GPTBot", "openai")
        assert each["intent"] == "answer-question"
        assert each["response_ms"] >= 0


async def test_what_does_not_fit_is_lost_and_nobody_waits() -> None:
    collector = Collector(gate=asyncio.Event())
    analytics = Analytics(collector, capacity=2)
    for _ in range(5):
        analytics.note(EVENT)
    assert collector.gate is not None
    collector.gate.set()
    async with running(analytics):
        await analytics.told()
    assert len(collector.told) == 2


async def test_failures_are_logged_once_until_it_works_again() -> None:
    collector = Collector(failures=3)
    analytics = Analytics(collector)
    with capture_logs() as logs:
        async with running(analytics):
            for _ in range(4):
                analytics.note(EVENT)
            await analytics.told()
            collector.failures = 1
            analytics.note(EVENT)
            await analytics.told()
    failed = [each for each in logs if each["event"] == "analytics_failed"]
    assert len(failed) == 2
    assert len(collector.told) == 1


async def test_by_default_nothing_is_told() -> None:
    analytics = Analytics(create_sink(Settings(), FakeNetwork(), "hub.example"))
    assert not analytics.is_on
    analytics.note(EVENT)
    await analytics.told()


async def test_umami_is_told_through_the_guarded_network() -> None:
    network = FakeNetwork()
    settings = Settings(
        openfeeder_analytics="umami",
        openfeeder_analytics_url="https://umami.example",
        openfeeder_analytics_site="w",
        openfeeder_analytics_secret="t",
    )
    sink = create_sink(settings, network, "hub.example")
    assert sink is not None
    await sink.tell(EVENT)
    [asked] = network.requests
    assert (asked.method, asked.url) == ("POST", "https://umami.example/api/send")
    assert asked.purpose is Purpose.CALLBACK
    assert asked.headers["Authorization"] == "Bearer t"
    assert asked.limits.seconds == 5.0
    assert json.loads(asked.body or b"")["payload"]["website"] == "w"


async def test_google_is_told_by_the_measurement_protocol() -> None:
    network = FakeNetwork(204)
    settings = Settings(
        openfeeder_analytics="ga4",
        openfeeder_analytics_site="G-1",
        openfeeder_analytics_secret="s",
    )
    sink = create_sink(settings, network, "hub.example")
    assert sink is not None
    await sink.tell(EVENT)
    [asked] = network.requests
    assert asked.url == (
        "https://www.google-analytics.com/mp/collect?measurement_id=G-1&api_secret=s"
    )
    assert "Authorization" not in asked.headers


async def test_a_place_that_refuses_is_a_failure() -> None:
    sink = HttpSink(network=FakeNetwork(403), url="https://u.example/", body=_body)
    analytics = Analytics(sink)
    with capture_logs() as logs:
        async with running(analytics):
            analytics.note(EVENT)
            await analytics.told()
    assert [each["error"] for each in logs] == ["status 403"]


async def test_the_log_has_the_eight_fields() -> None:
    sink = create_sink(Settings(openfeeder_analytics="log"), FakeNetwork(), "")
    assert isinstance(sink, LogSink)
    with capture_logs() as logs:
        await sink.tell(EVENT)
    [line] = logs
    assert line["event"] == "openfeeder_request"
    assert EVENT.members.items() <= line.items()


def _body(event: AnalyticsEvent) -> bytes:
    return b"{}"
