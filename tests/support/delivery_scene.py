"""The whole delivery side of a hub: SQLite, the dispatcher, real sockets, subscribers.

Tests commit here what the poller would commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hub.delivery.dispatcher import DeliveryLimits, Dispatcher
from hub.http import Answer, HttpNetwork, Network, Purpose, Request
from hub.runtime.clock import Clock, SystemClock
from hub.runtime.node_membership import NodeMembership
from protocols.model import Deletion, Entry, Feed, Status
from storage.contract import Storage
from storage.records import (
    OPERATOR,
    DocumentWrite,
    FeedId,
    FetchCommit,
    NewFeed,
    NewSubscription,
    Polling,
    Position,
    RecordKind,
    RecordWrite,
    Subscription,
)
from tests.support.chosen_engine import open_chosen
from tests.support.storage_scene import stored_at
from tests.support.subscribers import Subscribers

HUB_URL = "https://hub.example/hub"
LOOPBACK = ip_network("127.0.0.0/8")


class CappedNetwork:
    """A network in which callbacks on loopback have caps, like any others."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def send(self, request: Request) -> Answer:
        return replace(await self._network.send(request), is_exempt=False)

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return False


class DeliveryScene:
    def __init__(
        self,
        storage: Storage,
        subscribers: Subscribers,
        network: Network,
        clock: Clock,
        limits: DeliveryLimits,
    ) -> None:
        self.storage = storage
        self.subscribers = subscribers
        self.network = network
        self.clock = clock
        self.limits = limits
        self._entries = 0

    @asynccontextmanager
    async def dispatching(
        self, membership: NodeMembership | None = None
    ) -> AsyncIterator[Dispatcher]:
        """Run a dispatcher for the block; its end cancels, and so drains it.

        Its term has begun: news that was committed in the one before would be refused.
        """
        membership = membership or NodeMembership(self.storage)
        await membership.join()
        dispatcher = Dispatcher(
            self.storage,
            self.network,
            self.clock,
            HUB_URL,
            self.limits,
            membership=membership,
        )
        task = asyncio.create_task(dispatcher.run())
        try:
            yield dispatcher
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()

    async def add_feed(self, number: int = 1) -> FeedId:
        feed, _ = await self.storage.feeds.add(
            NewFeed(url=f"https://feeds.example/{number}"), self.clock.now()
        )
        return feed.id

    async def subscribe(
        self,
        feed_id: FeedId,
        name: str,
        *,
        query: str = "",
        subscribers: Subscribers | None = None,
        **fields: Any,
    ) -> Subscription:
        """Subscribe the callback of that name, of these subscribers or of others."""
        feed = await self.storage.feeds.get(feed_id)
        assert feed is not None
        new = NewSubscription(
            account=OPERATOR,
            topic=feed.url,
            feed_id=feed_id,
            callback=(subscribers or self.subscribers)[name].url + query,
            **fields,
        )
        return await self.storage.subscriptions.add(new, self.clock.now())

    async def publish(self, feed_id: FeedId, *titles: str) -> Position:
        """Commit a record with new entries of these titles (one if none is given)."""
        entries = [self._entry(title) for title in titles or ("",)]
        return await self.commit(feed_id, RecordKind.ENTRIES, entries)

    def _entry(self, title: str) -> Entry:
        self._entries += 1
        title = title or f"Entry {self._entries}"
        return Entry(key=f"key-{self._entries}", id=f"id-{self._entries}", title=title)

    async def commit(
        self,
        feed_id: FeedId,
        kind: RecordKind,
        entries: list[Entry],
        *,
        fresh: bool = True,
        deleted: bool = False,
        document: tuple[str, bytes] | None = None,
    ) -> Position:
        """Commit one record; the entries are written as they are given."""
        now = self.clock.now()
        committing = self.storage.log.commit(
            FetchCommit(
                feed_id=feed_id,
                at=now,
                next_fetch=now,
                polling=Polling(),
                head=Feed(title="A feed"),
                entries=() if deleted else tuple(entries),
                deletions=tuple(
                    Deletion(key=each.key, id=each.id) for each in entries if deleted
                ),
                records=(
                    RecordWrite(
                        kind=kind,
                        status=Status(code=200, http="Fetched", title="A feed"),
                        entries=tuple((each.key, fresh) for each in entries),
                    ),
                ),
                body=None
                if document is None
                else DocumentWrite(content_type=document[0], body=document[1]),
            )
        )
        (position,) = await stored_at(committing)
        return position

    async def is_settled(self) -> bool:
        """Whether nothing is left to be delivered to anybody."""
        backlog = await self.storage.backlog()
        return not (backlog.fanouts or backlog.chunks or backlog.retrying)


@asynccontextmanager
async def delivery_scene(
    directory: Path,
    *,
    clock: Clock | None = None,
    limits: DeliveryLimits | None = None,
) -> AsyncIterator[DeliveryScene]:
    async with (
        Subscribers() as subscribers,
        HttpNetwork(allow_callbacks=(LOOPBACK,)) as network,
    ):
        storage = await open_chosen(directory / "hub.db")
        try:
            yield DeliveryScene(
                storage,
                subscribers,
                network,
                clock or SystemClock(),
                limits or DeliveryLimits(grace=2.0),
            )
        finally:
            await storage.close()
