"""A publisher, a hub and subscribers together on real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.hub_process import LOOPBACK, HubApi, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscriber, Subscribers


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    subscribers: Subscribers

    async def add_feed(self) -> tuple[int, PublishedFeed]:
        """Add a feed with one entry, and fetch its baseline; return its id and it."""
        feed = self.publisher.add_feed()
        return await self.api.add_feed(self.publisher.url(feed)), feed

    async def subscribe(
        self, name: str, feed: PublishedFeed, *, format: str = "json", **more: Any
    ) -> Subscriber:
        subscriber = self.subscribers.add(
            name,
            feed=feed.number,
            topic=self.publisher.url(feed),
            secret=f"the secret of {name}",
            format=format,
        )
        await self.api.subscribe(
            callback=subscriber.url,
            topic=subscriber.topic,
            secret=subscriber.secret,
            format=format,
            **more,
        )
        return subscriber

    async def publish(self, feed_id: int, feed: PublishedFeed) -> int:
        """Publish a new entry and have it fetched; return its number."""
        number = self.publisher.publish(feed)
        await self.api.fetch(feed_id)
        return number


@asynccontextmanager
async def open_stage(
    directory: Path, settings: Mapping[str, str] = LOOPBACK
) -> AsyncIterator[Stage]:
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        HubProcess(directory, settings) as hub,
        HubApi(hub.url) as api,
    ):
        yield Stage(hub=hub, api=api, publisher=publisher, subscribers=subscribers)
