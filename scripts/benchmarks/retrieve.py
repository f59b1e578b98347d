"""Reading entries back, over a million of them and of subscriptions.

The floor is the same with ten thousand of each: what a page costs must not grow with
what is stored beside it.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from hub.clock import SystemClock
from hub.services.feeds import FeedService
from hub.services.retrieval import RetrievalService
from hub.services.selections import Page, Wanted
from hub.services.tokens import Principal
from hub.services.tracking import TrackTopics
from protocols.live.messages import BodyFormat
from scripts.benchmarks.measuring import (
    Finding,
    Sample,
    Stopwatch,
    alternate,
    cpu_finding,
)
from scripts.benchmarks.stored_hubs import (
    ACCOUNT,
    PER_FEED,
    callback_of,
    open_stored,
    topic_of,
)
from storage.interface import Storage
from storage.records import Account, Right, StoredFeed

MANY: Final = 1_000_000
FEW: Final = 10_000
MOST_GROWTH: Final = 2.0
OPERATIONS: Final = 300
OWNER: Final = Principal(
    account=Account(id=ACCOUNT, name="me"), rights=frozenset({Right.RETRIEVE})
)

Operation = Callable[[int], Awaitable[object]]


async def measure(directory: Path, *, is_quick: bool) -> list[Finding]:
    """CPU of a page, of a topic, after an entry and of a callback's ten topics."""
    many, few = (MANY // 10, FEW // 10) if is_quick else (MANY, FEW)
    large = await open_stored(directory / "large.db", many)
    small = await open_stored(directory / "small.db", few)
    findings = []
    try:
        for name in ("topic", "topic, before an entry", "callback of 10 topics"):
            samples = await alternate(
                3 if is_quick else 9,
                large=_reading(_Reader(large, many), name),
                small=_reading(_Reader(small, few), name),
            )
            measured = f"page of a {name}, {many:,} entries (floor: {few:,})"
            findings.append(
                cpu_finding(
                    "retrieve",
                    measured,
                    samples["large"],
                    samples["small"],
                    MOST_GROWTH,
                )
            )
    finally:
        await large.close()
        await small.close()
    return findings


def _reading(reader: _Reader, name: str) -> Callable[[], Awaitable[Sample]]:
    operation = reader.operation(name)
    chance = random.Random(1)  # noqa: S311 - hides nothing

    async def run() -> Sample:
        watch = Stopwatch()
        for _ in range(OPERATIONS):
            await operation(chance.randrange(reader.count))
        return watch.sample(OPERATIONS)

    return run


class _KnownFeeds:
    """All feeds were fetched before."""

    def __init__(self, storage: Storage) -> None:
        self.find = storage.feeds.find

    async def fetched(self, feed: StoredFeed) -> StoredFeed:
        return feed


@dataclass(frozen=True)
class _Reader:
    storage: Storage
    count: int

    def operation(self, name: str) -> Operation:
        feeds = cast("FeedService", _KnownFeeds(self.storage))
        hub = "https://hub.example"
        tracks = TrackTopics(self.storage.tracking, SystemClock(), hub)
        retrieval = RetrievalService(self.storage, feeds, tracks, f"{hub}/hub")

        async def read(number: int) -> None:
            wanted, page = self._wish(name, number)
            selection = await retrieval.select(OWNER, wanted)
            collected = await retrieval.collect(selection, page)
            await retrieval.render(collected, BodyFormat.JSON)

        return read

    def _wish(self, name: str, number: int) -> tuple[Wanted, Page]:
        feed = number // PER_FEED
        topic = topic_of(1 + feed)
        match name:
            case "topic":
                return Wanted(topic=topic), Page()
            case "callback of 10 topics":
                return Wanted(callback=callback_of(number)), Page()
            case _:
                return Wanted(topic=topic), Page(before=str(feed * PER_FEED + 40))
