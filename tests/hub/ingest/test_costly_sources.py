"""Which documents wait in the line of the slow, and which are not tried at all."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hub.ingest.document_parser import KEPT, MOST_KEPT, REST, CostlySources, WaitingLine
from protocols.feeds import ParseContext
from protocols.protocol_errors import LimitExceeded
from tests.support.waiting import eventually

FEED = ParseContext(url="https://a.x.example/f", now=datetime(2026, 1, 1, tzinfo=UTC))
PART = replace(FEED, selector="$.a")
ELSEWHERE = replace(FEED, url="https://y.example/")
SENT = replace(FEED, url="")


def test_an_owner_whose_document_was_slow_is_slow_for_a_day() -> None:
    sources = CostlySources()
    sources.was_slow(FEED, 5.0)

    assert sources.is_slow(replace(FEED, url="https://b.x.example/"), 4.0 + KEPT)
    assert not sources.is_slow(FEED, 5.0 + KEPT)
    assert not sources.is_slow(ELSEWHERE, 5.0)
    assert not sources.is_at_rest(FEED, 5.0)


def test_a_part_is_always_slow_and_makes_nobody_else_so() -> None:
    sources = CostlySources()
    assert sources.is_slow(PART, 0.0)
    sources.failed(PART, 0.0)

    assert not sources.is_slow(FEED, 0.0)
    assert sources.is_at_rest(PART, REST - 1)
    assert not sources.is_at_rest(replace(PART, selector="$.b"), 0.0)
    assert not sources.is_at_rest(PART, REST)


def test_documents_without_a_url_are_nobody_s() -> None:
    sources = CostlySources()
    sources.failed(SENT, 0.0)
    assert not sources.is_slow(SENT, 0.0)
    assert not sources.is_at_rest(SENT, 0.0)


def test_the_oldest_of_too_many_sources_is_forgotten() -> None:
    sources = CostlySources()
    for number in range(MOST_KEPT + 1):
        sources.failed(replace(FEED, url=f"https://{number}.example/"), 0.0)
    first, last = (
        replace(FEED, url=f"https://{number}.example/") for number in (0, MOST_KEPT)
    )
    assert not sources.is_slow(first, 0.0)
    assert not sources.is_at_rest(first, 0.0)
    assert sources.is_at_rest(last, 0.0)


async def test_what_waits_is_bounded_in_number_and_in_bytes() -> None:
    line = WaitingLine(workers=1, most=2, most_bytes=10)
    entered: list[int] = []

    async def stand(size: int) -> None:
        async with line.turn(size):
            entered.append(size)

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(line.turn(99))
        first = asyncio.create_task(stand(20))  # alone it may have any size
        await asyncio.sleep(0)
        with pytest.raises(LimitExceeded, match="bytes"):
            await stand(1)
        first.cancel()
        await eventually(first.done)
        both = [asyncio.create_task(stand(size)) for size in (4, 6)]
        await asyncio.sleep(0)
        with pytest.raises(LimitExceeded, match="limit of 2"):
            await stand(0)
    await asyncio.gather(*both)
    assert entered == [4, 6]


async def test_nobody_waits_in_line_for_longer_than_its_seconds() -> None:
    """Nor is a turn lost that came too late."""
    line = WaitingLine(workers=1, most=2, seconds=0.02)
    async with line.turn(1):
        with pytest.raises(LimitExceeded, match="the seconds to wait"):
            async with line.turn(1):
                raise AssertionError("it is another's turn")
    async with asyncio.timeout(60), line.turn(1):
        pass
