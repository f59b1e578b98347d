"""A hub that streams by its real server on loopback, with feeds of tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect

from hub.web.server.http_server import listening_socket
from protocols.model import Entry, Feed, Status, Text
from storage.records import (
    OPERATOR,
    AccountId,
    ClaimTerms,
    FeedId,
    FetchCommit,
    NewFeed,
    NewSubscription,
    Polling,
    Position,
    RecordKind,
    RecordWrite,
    Retention,
    Subscription,
)
from tests.support.event_stream import EventClient, request_events
from tests.support.services import Hub, open_hub
from tests.support.storage_scene import stored_at

START = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass
class LiveHub:
    """A hub: tests publish through it, and clients connect to its ``port``."""

    hub: Hub
    port: int
    feeds: dict[str, FeedId] = field(default_factory=dict)
    clients: list[EventClient] = field(default_factory=list)

    def url(self, *topics: str, scheme: str = "ws", **query: str) -> str:
        pairs = [("topic", topic) for topic in topics] + list(query.items())
        return f"{scheme}://127.0.0.1:{self.port}/stream?{urlencode(pairs)}"

    def connect(self, *topics: str, **query: str) -> connect:
        return connect(self.url(*topics, **query))

    async def ask(self, target: str, **headers: str) -> EventClient:
        """Send a plain HTTP request; see `request_events`.

        The connection is aborted at the end of the test.
        """
        client = await request_events(self.port, target, **headers)
        self.clients.append(client)
        return client

    async def add_feed(self, topic: str, *, private: bool = False) -> None:
        new = NewFeed(url=topic, private=private)
        feed, _is_new = await self.hub.storage.feeds.add(new, START)
        self.feeds[topic] = feed.id

    async def subscribe(self, topic: str, account: AccountId) -> Subscription:
        """Subscribe a webhook of an account: this lets it read a private topic."""
        new = NewSubscription(
            account=account,
            topic=topic,
            feed_id=self.feeds[topic],
            callback="https://you.example/callback",
        )
        return await self.hub.storage.subscriptions.add(new, START)

    async def add_alias(self, topic: str, of: str) -> None:
        """Add another topic of the same feed, like one that was subscribed to once."""
        subscriptions = self.hub.storage.subscriptions
        made = await subscriptions.add(
            NewSubscription(
                account=OPERATOR,
                topic=topic,
                feed_id=self.feeds[of],
                callback="https://you.example/callback",
            ),
            START,
        )
        await subscriptions.end(made.id, "it has named the topic", START, tell=False)
        self.feeds[topic] = self.feeds[of]

    async def publish(
        self,
        topic: str,
        *keys: str,
        kind: RecordKind = RecordKind.ENTRIES,
        text: str = "",
        at: datetime = START,
    ) -> Position:
        """Commit one record with entries of these keys; return its position."""
        entries = [
            Entry(key=key, id=key, title=key, summary=Text(value=text)) for key in keys
        ]
        commit = FetchCommit(
            feed_id=self.feeds[topic],
            at=at,
            next_fetch=START + timedelta(days=365),
            polling=Polling(),
            head=Feed(title="A feed"),
            entries=tuple(entries),
            records=(
                RecordWrite(
                    kind=kind,
                    status=Status(code=200, http="OK"),
                    entries=tuple((it.key, True) for it in entries),
                ),
            ),
        )
        (position,) = await stored_at(self.hub.storage.log.commit(commit))
        return position

    async def trim(self, keep: int) -> None:
        """Remove all records but the last ones."""
        age = float(10**9)
        limits = Retention(soft_age=age, soft_count=keep, hard_age=age, hard_count=keep)
        await self._fan_out()
        await self.hub.storage.log.trim(limits, START, 10_000)

    async def _fan_out(self) -> None:
        """Let the log forget what it keeps for webhooks, of which there are none."""
        terms = ClaimTerms(lease_id=1, seconds=0, now=START, limit=10)
        while (await self.hub.storage.backlog()).fanouts:
            await self.hub.storage.deliveries.claim_chunks(terms)

    async def cursor(self, position: int) -> str:
        head = await self.hub.storage.log.end()
        return str(replace(head, position=Position(position)))


@asynccontextmanager
async def live_hub(
    directory: Path,
    *,
    ping_seconds: float = 20.0,
    pong_seconds: float | None = None,
    heartbeat_seconds: float = 25.0,
    **settings: Any,
) -> AsyncIterator[LiveHub]:
    """Run a hub with these intervals; ``pong_seconds`` None: as ``ping_seconds``."""
    async with open_hub(directory, **settings) as hub:
        stream, server = hub.built.live, hub.built.server
        stream.heartbeat_seconds = heartbeat_seconds
        server.config.ws_ping_interval = ping_seconds
        server.config.ws_ping_timeout = pong_seconds or ping_seconds
        listener = listening_socket("127.0.0.1", 0)
        with listener:
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            parts = (stream.run, hub.built.background["live watch"])
            running = [asyncio.create_task(part()) for part in parts]
            live = LiveHub(hub, listener.getsockname()[1])
            try:
                yield live
            finally:
                for client in live.clients:
                    client.abort()
                await stream.drain()
                server.stop()
                await serving
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)


async def next_message(client: ClientConnection) -> dict[str, Any]:
    """Return the next message that is no heartbeat."""
    async with asyncio.timeout(60):
        while True:
            message: dict[str, Any] = orjson.loads(await client.recv())
            if message["type"] != "heartbeat":
                return message


def titles(message: dict[str, Any]) -> list[str]:
    return [item["title"] for item in message["body"]["items"]]
