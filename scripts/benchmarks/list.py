"""Listing an account's subscriptions, of which it has a million.

The floor is the same with ten thousand: what a page costs must not grow with the
account.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final

from scripts.benchmarks.growth import Ask, measure_growth
from scripts.benchmarks.measuring import Finding, Size
from scripts.benchmarks.stored_hubs import ACCOUNT, PER_FEED, callback_of, topic_of
from storage.contract import Storage
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


async def measure(directory: Path, size: Size) -> AsyncIterator[Finding]:
    """CPU of a page with its total: the first and the last, and of each search."""
    async for finding in measure_growth(
        directory,
        "list",
        {name: partial(_listing, name) for name in PAGES},
        "subscriptions",
        size,
        targets={PART: OF_PARTS},
    ):
        yield finding


def _listing(name: str, storage: Storage, count: int) -> Ask:
    skip = count - PAGE if name in LATE else 0

    async def ask(number: int) -> None:
        search = _search(name, number)
        found = await storage.listings.page(ACCOUNT, search, skip=skip, limit=PAGE)
        assert found.items  # noqa: S101 - or nothing was measured

    return ask


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
