"""Publisher, hub and subscribers together: a whole scene on real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from tests.support.hub_process import TOKEN, HubProcess
from tests.support.publisher import PublishedFeed, Publisher
from tests.support.subscribers import Subscriber, Subscribers


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    hub: HubProcess
    api: HubApi
    publisher: Publisher
    subscribers: Subscribers

    async def add_feed(self) -> tuple[int, PublishedFeed]:
        """A feed with one entry, its baseline fetched; the hub's id of it first."""
        feed = self.publisher.add_feed()
        return await self.api.add_feed(self.publisher.url(feed)), feed

    async def subscribe(
        self, name: str, feed: PublishedFeed, *, format: str = "json", **more: object
    ) -> Subscriber:
        subscriber = self.subscribers.add(
            name, feed=feed.number, topic=self.publisher.url(feed), format=format
        )
        await self.api.subscribe(
            callback=subscriber.callback,
            topic=subscriber.topic,
            secret=subscriber.secret,
            format=format,
            **more,
        )
        return subscriber

    async def publish(self, feed_id: int, feed: PublishedFeed) -> int:
        """A new entry, fetched; its number."""
        number = self.publisher.publish(feed)
        await self.api.fetch(feed_id)
        return number


@asynccontextmanager
async def open_stage(directory: Path) -> AsyncIterator[Stage]:
    async with (
        Publisher() as publisher,
        Subscribers() as subscribers,
        HubProcess(directory=directory) as hub,
        HubApi(hub) as api,
    ):
        yield Stage(hub=hub, api=api, publisher=publisher, subscribers=subscribers)


class HubApi:
    """The administration API, as a client. Use it as an async context manager.

    Methods raise `aiohttp.ClientError` when the hub is gone or answers an error.
    """

    def __init__(self, hub: HubProcess, seconds: float = 30.0) -> None:
        """``seconds``: for an answer to be there."""
        self._session = aiohttp.ClientSession(
            base_url=hub.url,
            headers={"Authorization": f"Bearer {TOKEN}"},
            raise_for_status=True,
            timeout=aiohttp.ClientTimeout(total=seconds),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def request(self, method: str, path: str, **values: object) -> Any:
        async with self._session.request(method, path, json=values or None) as answer:
            text = await answer.text()
            return await answer.json() if text else None

    async def add_feed(self, url: str) -> int:
        return int((await self.request("POST", "/api/feeds", url=url))["id"])

    async def feed(self, feed_id: int) -> dict[str, Any]:
        found: dict[str, Any] = await self.request("GET", f"/api/feeds/{feed_id}")
        return found

    async def fetch(self, feed_id: int) -> None:
        await self.request("POST", f"/api/feeds/{feed_id}/fetch")

    async def subscribe(self, **subscription: object) -> int:
        made = await self.request("POST", "/api/subscriptions", **subscription)
        return int(made["id"])

    async def subscription(self, subscription_id: int) -> dict[str, Any]:
        found: dict[str, Any] = await self.request(
            "GET", f"/api/subscriptions/{subscription_id}"
        )
        return found

    async def subscriptions(self) -> dict[str, int]:
        """Ids of the active ones, the first thousand, by callback."""
        listed = await self.request("GET", "/api/subscriptions?limit=1000")
        return {each["callback"]: each["id"] for each in listed["subscriptions"]}

    async def deliveries(self) -> dict[str, list[dict[str, Any]]]:
        listed: dict[str, list[dict[str, Any]]] = await self.request(
            "GET", "/api/deliveries"
        )
        return listed

    async def retry(self, subscription_id: int) -> None:
        """Make a straggler due now; one that is no longer open is left alone."""
        async with self._session.post(
            "/api/deliveries/retry",
            json={"subscription": subscription_id},
            raise_for_status=False,
        ):
            pass
