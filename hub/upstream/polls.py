"""Polls of feeds that are not pushed any more."""

from __future__ import annotations

from collections.abc import Callable

from hub.core.schedule.poll_period import Plan
from storage.contract import Storage
from storage.records import FeedId, FeedState, StoredFeed


class Polls:
    """What is needed of the poller: feeds that are not pushed any more are polled."""

    def __init__(
        self,
        storage: Storage,
        explain: Callable[[StoredFeed], Plan],
        wake: Callable[[], None],
    ) -> None:
        self._feeds = storage.feeds
        self._explain = explain
        self._wake = wake

    async def resume(self, feed_id: FeedId) -> None:
        """As often as if nobody had pushed it, from its last fetch on."""
        feed = await self._feeds.get(feed_id)
        if feed is None or feed.state is not FeedState.ACTIVE:
            return
        due = self._explain(feed).next_fetch
        if due < feed.next_fetch:
            await self._feeds.defer([(feed_id, due)])
            self._wake()
