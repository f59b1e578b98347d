"""What readers get by OpenFeeder, over a million pages.

The floor is the same with ten thousand: no answer may cost more for what it leaves out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from hub.runtime.clock import SystemClock
from hub.services.openfeeder_documents import OpenFeederService
from protocols.openfeeder.write.content_queries import (
    IndexQuery,
    PageQuery,
    Request,
    SyncPoint,
    SyncQuery,
)
from scripts.benchmarks.growth import Ask, measure_growth
from scripts.benchmarks.measuring import Finding, Size
from scripts.benchmarks.stored_pages import APART, START, open_pages, page_url
from storage.contract import Storage

OPERATIONS: Final = 30
CHANGED: Final = 100
"""Pages that have changed since a reader was there."""
NAMES: Final = (
    "page of the index",
    "page",
    f"answer of {CHANGED} changes",
    f"window of {CHANGED} changes",
)


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """CPU of a page of the index anywhere, of one page, and of what has changed."""
    async for finding in measure_growth(
        directory,
        "openfeeder",
        {name: partial(_asking, name) for name in NAMES},
        "pages",
        size,
        opened=open_pages,
        operations=OPERATIONS,
    ):
        yield finding


def _asking(name: str, storage: Storage, count: int) -> Ask:
    """Each answer by a service of its own, which has no page at hand yet."""

    async def ask(number: int) -> None:
        service = OpenFeederService(storage, SystemClock(), "https://hub.example")
        served = await service.answer(_request(name, count, number))
        assert served.results  # noqa: S101 - or nothing was measured

    return ask


def _request(name: str, count: int, number: int) -> Request:
    match name:
        case "page of the index":
            return IndexQuery(page=1 + number // 10)
        case "page":
            return PageQuery(url=page_url(number))
    is_window = name.startswith("window")
    first = number % (count - CHANGED) if is_window else count - CHANGED
    since = START + timedelta(milliseconds=first * APART)
    until = since + timedelta(milliseconds=(CHANGED - 1) * APART)
    point = SyncPoint(moment=since)
    return SyncQuery(since=point, until=until if is_window else None)
