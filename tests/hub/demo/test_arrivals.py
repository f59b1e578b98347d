"""The account of what came by which way."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from hub.demo.arrivals import Arrival, Arrivals, Way
from hub.demo.samples import FeedKind, SampleEntry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def entry(number: int, kind: FeedKind = FeedKind.ATOM) -> SampleEntry:
    return SampleEntry(kind=kind, number=number, published=NOW)


async def test_all_is_there_when_every_entry_came_by_every_way() -> None:
    arrivals = Arrivals(lambda arrival: None)
    assert not arrivals.is_complete
    arrivals.publish(entry(1), 10.0)
    for way in Way:
        assert not arrivals.is_complete
        arrivals.arrive(way, entry(1).id, 11.0)
    assert arrivals.is_complete
    async with asyncio.timeout(1):
        await arrivals.wait_complete()
    arrivals.publish(entry(2), 12.0)
    assert not arrivals.is_complete


async def test_each_arrival_is_told_once_with_its_delay() -> None:
    told: list[Arrival] = []
    arrivals = Arrivals(told.append)
    arrivals.publish(entry(1), 10.0)
    arrivals.arrive(Way.SSE, entry(1).id, 10.5)
    arrivals.arrive(Way.SSE, entry(1).id, 11.5)
    arrivals.arrive(Way.SSE, "tag:another", 11.5)
    assert told == [Arrival(way=Way.SSE, entry=entry(1), delay=0.5)]


async def test_the_summary_says_what_is_missing_and_how_long_it_took() -> None:
    arrivals = Arrivals(lambda arrival: None)
    for number, kind in enumerate(FeedKind):
        arrivals.publish(entry(number, kind), 10.0)
        arrivals.arrive(Way.WEBHOOK, entry(number, kind).id, 11.0 + number)
    webhook, websocket, _ = arrivals.summaries()
    assert webhook.came == {FeedKind.RSS: 1, FeedKind.ATOM: 1, FeedKind.JSON: 1}
    assert (webhook.missing, webhook.median, webhook.slowest) == (0, 2.0, 3.0)
    assert (websocket.missing, websocket.median, websocket.slowest) == (3, None, None)
