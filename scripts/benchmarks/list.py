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
from storage.records import ListingSearch

PAGE: Final = 20


async def measure(directory: Path, *, is_quick: bool) -> list[Finding]:
    """CPU of a page: the first, of a topic, and of a callback's host."""
    many, few = (MANY // 10, FEW // 10) if is_quick else (MANY, FEW)
    large = await open_stored(directory / "large.db", many)
    small = await open_stored(directory / "small.db", few)
    findings = []
    try:
        for name in ("first page", "page of a topic", "page of a callback's host"):
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
                    MOST_GROWTH,
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
            await storage.listings.page(ACCOUNT, search, skip=0, limit=PAGE)
        return watch.sample(OPERATIONS)

    return run


def _search(name: str, number: int) -> ListingSearch:
    match name:
        case "first page":
            return ListingSearch()
        case "page of a topic":
            return ListingSearch(topic=topic_of(1 + number // PER_FEED))
        case _:
            host = callback_of(number).partition("://")[2].partition("/")[0]
            return ListingSearch(callback_host=host)
