"""Feeds whose publishers took long the last time, whatever came of it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from hub.core.fetched import Fetched
from hub.polling.lanes import PATIENCE
from storage.records import FeedId

MOST_FEEDS: Final = 10_000


class SlowFeeds:
    """The latest ``most`` of them, since this process began; a quick answer, and a feed
    is forgotten. So a publisher who drips, and is never without an answer for long, is
    known as one that never answers is."""

    def __init__(self, most: int = MOST_FEEDS) -> None:
        self._most = most
        self._slow: OrderedDict[FeedId, None] = OrderedDict()

    def __contains__(self, feed_id: FeedId) -> bool:
        return feed_id in self._slow

    def note(self, feed_id: FeedId, fetched: Fetched) -> None:
        """By what it took to ask for the feed, and to get the whole answer."""
        self._slow.pop(feed_id, None)
        if (fetched.at - fetched.started).total_seconds() < PATIENCE:
            return
        self._slow[feed_id] = None
        if len(self._slow) > self._most:
            self._slow.popitem(last=False)
