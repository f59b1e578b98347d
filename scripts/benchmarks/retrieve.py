"""Reading entries back, over a million of them and of subscriptions.

The floor is the same with ten thousand of each: what a page costs must not grow with
what is stored beside it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Final, cast

from hub.publishing.local_topics import LocalTopics
from hub.runtime.clock import SystemClock
from hub.services.entry_notifications import render
from hub.services.entry_retrieval import EntryRange, RetrievalRequest, RetrievalService
from hub.services.feed_registration import FeedService
from hub.services.token_authentication import Principal
from hub.services.topic_addresses import TrackTopics
from protocols.live.live_messages import BodyFormat
from scripts.benchmarks.engines import Engine
from scripts.benchmarks.growth import Ask, measure_growth
from scripts.benchmarks.measuring import Finding, Size
from scripts.benchmarks.stored_hubs import ACCOUNT, PER_FEED, callback_of, topic_of
from storage.contract import Storage
from storage.records import Account, StoredFeed, TokenScope

OWNER: Final = Principal(
    account=Account(id=ACCOUNT, name="me"), scopes=frozenset({TokenScope.RETRIEVE})
)
NAMES: Final = ("topic", "topic, before an entry", "callback of 10 topics")


async def measure(
    directory: Path, size: Size, engine: Engine = Engine.SQLITE
) -> AsyncIterator[Finding]:
    """What a page costs, of a topic, after an entry and of a callback's ten topics."""
    asks = {f"page of a {name}": partial(_reading, name) for name in NAMES}
    async for finding in measure_growth(
        directory, "retrieve", asks, "entries", size, engine=engine
    ):
        yield finding


class _KnownFeeds:
    """All feeds were fetched before."""

    async def fetched(self, feed: StoredFeed) -> StoredFeed:
        return feed


def _reading(name: str, storage: Storage, count: int) -> Ask:
    feeds = cast("FeedService", _KnownFeeds())
    hub = "https://hub.example"
    tracks = TrackTopics(storage.tracking, SystemClock(), hub)
    retrieval = RetrievalService(storage, feeds, tracks, LocalTopics(hub), f"{hub}/hub")

    async def read(number: int) -> None:
        wanted, page = _wish(name, number)
        selection = await retrieval.select(OWNER, wanted)
        collected = await retrieval.collect(selection, page)
        await render(collected, BodyFormat.JSON)

    return read


def _wish(name: str, number: int) -> tuple[RetrievalRequest, EntryRange]:
    feed = number // PER_FEED
    topic = topic_of(1 + feed)
    match name:
        case "topic":
            return RetrievalRequest(topic=topic), EntryRange()
        case "callback of 10 topics":
            return RetrievalRequest(callback=callback_of(number)), EntryRange()
        case _:
            return RetrievalRequest(topic=topic), EntryRange(
                before=str(feed * PER_FEED + 40)
            )
