"""Ending live connections and topics soon after the permission to listen has ended.

Tokens are revoked, and feeds are removed or made private, perhaps by another process on
the same database, or at the moment when somebody begins to listen. So all tokens and
feeds with listeners are checked every few seconds, and at once when the control log
tells of access that ended. This takes two reads, however many clients listen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Set
from typing import Final

import structlog

from hub.live.live_connections import UnknownTopic
from hub.live.live_stream import LiveStream
from hub.live.prepared_message import PreparedMessage
from hub.runtime.background import wait_for
from protocols.live.live_messages import TOKEN_ENDED, Unsubscribed
from storage.contract import FeedStore, TokenStore
from storage.errors import StorageClosed, StorageError
from storage.records import AccountId, FeedId, TokenId

EVERY_SECONDS = 5.0
PAGE = 2_000
"""Pairs of a viewer and a feed that are checked in one read."""

NONE: Final[Set[tuple[AccountId | None, FeedId]]] = frozenset()

log = structlog.get_logger()


class LiveWatch:
    """Ends connections and topics without permission. `run` is its background part."""

    def __init__(
        self,
        stream: LiveStream,
        feeds: FeedStore,
        tokens: TokenStore,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._stream = stream
        self._feeds = feeds
        self._tokens = tokens
        self._every_seconds = every_seconds
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Check at once: a token or a feed was changed just now."""
        self._woken.set()

    async def run(self) -> None:
        while True:
            await wait_for(self._woken, self._every_seconds)
            self._woken.clear()
            try:
                await self._look()
            except StorageClosed:
                raise
            except StorageError as error:
                log.warning("live_watch_failed", error=str(error))

    async def _look(self) -> None:
        if tokens := self._stream.registry.tokens:
            for token in await self._tokens.ended(tokens):
                self._dismiss(token)
        if feeds := self._stream.registry.feeds:
            hidden = await self._feeds.hidden(feeds)
            for feed_id in hidden.removed:
                self._end_topics(feed_id)
            await self._end_unreadable(hidden.private)

    def _dismiss(self, token: TokenId) -> None:
        holders = self._stream.registry.holders(token)
        for connection in holders:
            connection.writer.close(TOKEN_ENDED)
        log.info("live_token_ended", token=token, connections=len(holders))

    async def _end_unreadable(self, feeds: Collection[FeedId]) -> None:
        """End private feeds for listeners that may not read them, or no longer."""
        listened = {
            (each.connection.client.viewer, feed_id)
            for feed_id in feeds
            for each in self._stream.registry.listeners(feed_id)
        }
        readable: set[tuple[AccountId | None, FeedId]] = set()
        pairs = list(listened)
        for start in range(0, len(pairs), PAGE):
            page = pairs[start : start + PAGE]
            readable |= await self._feeds.readable(page)
        for feed_id in feeds:
            self._end_topics(feed_id, readable)

    def _end_topics(
        self, feed_id: FeedId, readable: Set[tuple[AccountId | None, FeedId]] = NONE
    ) -> None:
        """Tell listeners that a topic is gone, or gone for them.

        Both look alike: a topic that may not be read counts as one that does not exist.
        """
        ending = [
            each
            for each in self._stream.registry.listeners(feed_id)
            if (each.connection.client.viewer, feed_id) not in readable
        ]
        farewells = {
            topic: PreparedMessage(
                Unsubscribed(topic=topic, reason=str(UnknownTopic(topic)))
            )
            for topic in {each.key.topic for each in ending}
        }
        for each in ending:
            self._stream.drop(each, farewells[each.key.topic])
        if ending:
            log.info("live_topic_ended", feed=feed_id, subscriptions=len(ending))
