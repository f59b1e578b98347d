"""Listing an account's subscriptions, of which it has a million, and feeds, of which
the hub has a hundred thousand.

The floor is the same with ten thousand: what a page costs must not grow with the
account, nor with the hub.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from scripts.benchmarks.engines import Engine
from scripts.benchmarks.growth import Ask, measure_growth
from scripts.benchmarks.measuring import Finding, Size
from scripts.benchmarks.stored_hubs import (
    ACCOUNT,
    PER_FEED,
    START,
    address_of,
    callback_of,
    category_of,
    open_feeds,
    topic_of,
)
from storage.contract import Storage
from storage.records import FeedFilter, FeedHealth, FeedSort, Format, ListingSearch

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

MANY_FEEDS: Final = 100_000
FEED_PAGE: Final = 100
FEED_OPERATIONS: Final = 50
TURNED: Final = 500
"""Feeds that are otherwise than a moment ago, however many there are."""
_FAILING: Final = (FeedHealth.FAILING,)
_SOUGHT: Final = "sought"
"""Stands for a part of the URL of one of them."""
FEED_PAGES: Final[Mapping[str, tuple[FeedFilter, FeedSort]]] = {
    "page of feeds": (FeedFilter(), FeedSort.ID),
    "page of feeds by URL": (FeedFilter(), FeedSort.URL),
    "page of failing feeds": (FeedFilter(health=_FAILING), FeedSort.ID),
    "page of failing feeds, the longest first": (
        FeedFilter(health=_FAILING),
        FeedSort.SINCE,
    ),
    "page of a category by URL": (FeedFilter(category=category_of(7)), FeedSort.URL),
    "page of a category's failing feeds": (
        FeedFilter(health=_FAILING, category=category_of(0)),
        FeedSort.LAST_SINCE,
    ),
    "page of feeds that were otherwise a moment ago": (
        FeedFilter(after=START),
        FeedSort.URL,
    ),
    "page of feeds with a part of a URL": (FeedFilter(text=_SOUGHT), FeedSort.URL),
    "page of feeds with a part that all have": (
        FeedFilter(text="example"),
        FeedSort.URL,
    ),
}


async def measure(
    directory: Path, size: Size, engine: Engine = Engine.SQLITE
) -> AsyncIterator[Finding]:
    """What a page with its total costs: the first and the last, and of each search."""
    async for finding in measure_growth(
        directory,
        "list",
        {name: partial(_listing, name) for name in PAGES},
        "subscriptions",
        size,
        targets={PART: OF_PARTS},
        engine=engine,
    ):
        yield finding
    (directory / "feeds").mkdir()
    is_glimpse = size is Size.SMALLEST  # else there are more of each than a page has
    async for finding in measure_growth(
        directory / "feeds",
        "list",
        {name: partial(_selecting, *asked) for name, asked in FEED_PAGES.items()},
        "feeds",
        Size.SMALLEST if is_glimpse else Size.FULL,
        opened=open_feeds,
        operations=FEED_OPERATIONS,
        most=MANY_FEEDS,
        engine=engine,
    ):
        yield finding


def _listing(name: str, storage: Storage, count: int) -> Ask:
    skip = count - PAGE if name in LATE else 0

    async def ask(number: int) -> None:
        search = _search(name, number)
        found = await storage.listings.page(ACCOUNT, search, skip=skip, limit=PAGE)
        assert found.items  # noqa: S101 - or nothing was measured

    return ask


def _selecting(wanted: FeedFilter, sort: FeedSort, storage: Storage, count: int) -> Ask:
    if wanted.after is not None:
        latest = START + timedelta(milliseconds=max(0, count - TURNED))
        wanted = replace(wanted, after=latest)

    async def ask(number: int) -> None:
        sought = wanted
        if wanted.text == _SOUGHT:
            text = address_of(number + 1).removeprefix("https://")[:10]
            sought = FeedFilter(text=text)
        select = storage.feed_selections
        found = await select.page(sought, sort, after=None, limit=FEED_PAGE)
        assert found.feeds  # noqa: S101 - or nothing was measured

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
