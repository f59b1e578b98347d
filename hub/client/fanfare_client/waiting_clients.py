"""The clients of a hub: one whose methods block, and one whose methods are awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from websockets.asyncio.client import connect as connect_async
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from . import requested_calls as calls
from .requested_calls import HubCall, HubSubscription, HubUnavailable
from .stream_position import (
    CONNECT_SECONDS,
    LARGEST_MESSAGE,
    StreamEvent,
    StreamPosition,
)

T = TypeVar("T")
SECONDS = 30.0


class HubClient:
    """A client of one hub, with the token of one account.

    Without a token it may do what anybody may. Use it as a context manager, or `close`
    it. All methods raise `RequestRefused` when the hub refuses, and `HubUnavailable`
    when it cannot be reached or cannot work now.
    """

    def __init__(self, url: str, token: str = "", *, seconds: float = SECONDS) -> None:
        """Take the hub's URL, a token, and the deadline of an answer in seconds."""
        self._url = url.rstrip("/")
        self._headers = _headers_of(token)
        self._http = httpx2.Client(
            base_url=self._url, headers=self._headers, timeout=seconds
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def _call(self, call: HubCall[T]) -> T:
        try:
            response = self._http.request(
                call.method, call.path, params=call.params, json=call.body
            )
        except httpx2.TransportError as error:
            raise HubUnavailable(f"{self._url}: {error!r}") from error
        return call.answer(response)

    def subscribe(
        self,
        topic: str,
        callback: str,
        *,
        secret: str | None = None,
        format: str = "json",
        updates: str = "fresh",
    ) -> HubSubscription:
        """Subscribe a callback to a topic: the URL of a feed, or of a track query.

        A subscription that exists is changed to what is given, but keeps its secret if
        ``secret`` is None.
        """
        return self._call(calls.subscribe(topic, callback, secret, format, updates))

    def unsubscribe(self, subscription_id: int) -> None:
        self._call(calls.unsubscribe(subscription_id))

    def replay(self, subscription_id: int, *, record: int = 0, since: str = "") -> int:
        """Have a callback sent once more what the hub has from a position or a time on.

        ``since`` is a time or an age (``2h``). Returns how many records will be sent.
        """
        return self._call(calls.replay(subscription_id, record, since))

    def retrieve(
        self, topic: str, *, count: int = 10, before: str = "", after: str = ""
    ) -> list[dict[str, Any]]:
        """Return stored entries of a topic, newest first: at most 50.

        ``before``, ``after``: only those before or after the entry with this id.
        """
        return self._call(calls.retrieve(topic, count, before, after))

    def stream(
        self, *topics: str, cursor: str = "", updates: str = "fresh"
    ) -> Iterator[StreamEvent]:
        """Yield the records of the topics in order, as they come; reconnect if needed.

        It begins after the ``cursor``, or with what comes from now on, and ends when no
        topic is left.
        """
        place = StreamPosition(
            url=self._url, topics=topics, updates=updates, cursor=cursor
        )
        while True:
            try:
                with connect(
                    place.address,
                    additional_headers=self._headers,
                    open_timeout=CONNECT_SECONDS,
                    max_size=LARGEST_MESSAGE,
                ) as connection:
                    while True:
                        if event := place.take(connection.recv()):
                            yield event
                        if not place.topics:
                            return
            except (OSError, WebSocketException) as error:
                time.sleep(place.next_wait(error))


class AsyncHubClient:
    """`HubClient` for asyncio: the same methods, which are awaited.

    Use it as an async context manager, or `aclose` it.
    """

    def __init__(self, url: str, token: str = "", *, seconds: float = SECONDS) -> None:
        """See `HubClient`."""
        self._url = url.rstrip("/")
        self._headers = _headers_of(token)
        self._http = httpx2.AsyncClient(
            base_url=self._url, headers=self._headers, timeout=seconds
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _call(self, call: HubCall[T]) -> T:
        try:
            response = await self._http.request(
                call.method, call.path, params=call.params, json=call.body
            )
        except httpx2.TransportError as error:
            raise HubUnavailable(f"{self._url}: {error!r}") from error
        return call.answer(response)

    async def subscribe(
        self,
        topic: str,
        callback: str,
        *,
        secret: str | None = None,
        format: str = "json",
        updates: str = "fresh",
    ) -> HubSubscription:
        call = calls.subscribe(topic, callback, secret, format, updates)
        return await self._call(call)

    async def unsubscribe(self, subscription_id: int) -> None:
        await self._call(calls.unsubscribe(subscription_id))

    async def replay(
        self, subscription_id: int, *, record: int = 0, since: str = ""
    ) -> int:
        return await self._call(calls.replay(subscription_id, record, since))

    async def retrieve(
        self, topic: str, *, count: int = 10, before: str = "", after: str = ""
    ) -> list[dict[str, Any]]:
        return await self._call(calls.retrieve(topic, count, before, after))

    async def stream(
        self, *topics: str, cursor: str = "", updates: str = "fresh"
    ) -> AsyncIterator[StreamEvent]:
        place = StreamPosition(
            url=self._url, topics=topics, updates=updates, cursor=cursor
        )
        while True:
            try:
                async with connect_async(
                    place.address,
                    additional_headers=self._headers,
                    open_timeout=CONNECT_SECONDS,
                    max_size=LARGEST_MESSAGE,
                ) as connection:
                    while True:
                        if event := place.take(await connection.recv()):
                            yield event
                        if not place.topics:
                            return
            except (OSError, WebSocketException) as error:
                await asyncio.sleep(place.next_wait(error))


def _headers_of(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}
