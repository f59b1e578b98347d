"""Listing an account's subscriptions, of which it has a million.

The floor is the same with ten thousand: what a page costs must not grow with the
account.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Stopwatch,
    alternate,
    cpu_finding,
)
from scripts.benchmarks.retrieve import FEW, MANY, MOST_GROWTH, OPERATIONS
from scripts.benchmarks.stored_hubs import (
    ACCOUNT,
    PER_FEED,
    callback_of,
    open_stored,
    topic_of,
)
from storage.interface import Storage
from storage.records import Format, ListingSearch

PAGE: Final = 20
PART: Final = "page of a part of a callback"
OF_PARTS: Final = 4.0
"""Of a hundred times the subscriptions: trigrams are looked up that many share."""
LATE: Final = ("last page", "last page of a format")
PAGES: Final = (
    *("first page", *LATE, "page of a topic", "page of a topic's host"),
    *("page of a callback", "page of a callback's host"),
    PART,
)


async def measure(directory: Path, *, is_quick: bool) -> list[Finding]:
    """CPU of a page with its total: the first and the last, and of each search."""
    many, few = (MANY // 10, FEW // 10) if is_quick else (MANY, FEW)
    large = await open_stored(directory / "large.db", many)
    small = await open_stored(directory / "small.db", few)
    findings = []
    try:
        for name in PAGES:
            samples = await alternate(
                3 if is_quick else 9,
                large=_listing(large, many, name),
                small=_listing(small, few, name),
            )
            findings.append(
                cpu_finding(
                    "list",
                    f"{name}, {many:,} subscriptions (floor: {few:,})",
                    samples["large"],
                    samples["small"],
                    OF_PARTS if name == PART else MOST_GROWTH,
                )
            )
    finally:
        await large.close()
        await small.close()
    return findings


def _listing(
    storage: Storage, count: int, name: str
) -> Callable[[], Awaitable[Sample]]:
    chance = random.Random(1)  # noqa: S311 - hides nothing

    async def run() -> Sample:
        watch = Stopwatch()
        for _ in range(OPERATIONS):
            search = _search(name, chance.randrange(count))
            skip = count - PAGE if name in LATE else 0
            found = await storage.listings.page(ACCOUNT, search, skip=skip, limit=PAGE)
            assert found.items  # noqa: S101 - or nothing was measured
        return watch.sample(OPERATIONS)

    return run


def _search(name: str, number: int) -> ListingSearch:
    callback = callback_of(number)
    match name:
        case "first page" | "last page":
            return ListingSearch()
        case "last page of a format":
            return ListingSearch(format=Format.JSON)
        case "page of a topic":
            return ListingSearch(topic=topic_of(1 + number // PER_FEED))
        case "page of a topic's host":
            host = topic_of(1 + number // PER_FEED).partition("://")[2]
            return ListingSearch(topic_host=host.partition("/")[0])
        case "page of a callback":
            return ListingSearch(callback=callback)
        case "page of a part of a callback":
            return ListingSearch(callback_contains=callback.partition("://")[2][:-4])
        case _:
            host = callback.partition("://")[2].partition("/")[0]
            return ListingSearch(callback_host=host)
