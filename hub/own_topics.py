"""Topics that are this hub's own pages: ``PUBLIC_URL/topics/{id}.atom`` and ``.json``.

Whoever subscribes to one gets the feed that is behind it. The hub never fetches its
own pages: it would poll itself to learn what it knows.
"""

from __future__ import annotations

import re
from functools import lru_cache

from protocols.topic_pages import TopicFormat
from protocols.urls import resource_url
from storage.interface import FeedStore
from storage.records import FeedId, FeedState, Format, StoredFeed

_PAGE = re.compile(r"/topics/([0-9]{1,18})\.(atom|json)(?:\?.*)?")


class OwnTopics:
    """``public_url`` "" : there are none."""

    def __init__(self, public_url: str = "") -> None:
        self._root = resource_url(public_url).rstrip("/") if public_url else ""
        self._read = lru_cache(1_024)(self._parse)

    def owns(self, topic: str) -> bool:
        """Whether it is any page of this hub, in whatever spelling."""
        asked = resource_url(topic)
        return bool(self._root) and f"{asked}/".startswith(f"{self._root}/topics/")

    def format(self, topic: str) -> Format | None:
        """What subscribers of the page expect to be sent."""
        found = self._read(topic)
        return None if found is None else found[1]

    async def find(self, feeds: FeedStore, topic: str) -> StoredFeed | None:
        """The feed behind a topic; of a page of this hub the one that it shows."""
        if not self.owns(topic):
            return await feeds.find(topic)
        found = self._read(topic)
        feed = None if found is None else await feeds.get(found[0])
        return None if feed is None or feed.state is FeedState.REMOVED else feed

    async def find_public(self, feeds: FeedStore, topic: str) -> StoredFeed | None:
        """The same, but of this hub's pages only those that everybody can read."""
        feed = await self.find(feeds, topic)
        is_hidden = feed is not None and feed.private and self.owns(topic)
        return None if is_hidden else feed

    def _parse(self, topic: str) -> tuple[FeedId, Format] | None:
        if not self.owns(topic):
            return None
        found = _PAGE.fullmatch(resource_url(topic)[len(self._root) :])
        if found is None:
            return None
        is_atom = found[2] == TopicFormat.ATOM
        return FeedId(int(found[1])), Format.ATOM if is_atom else Format.JSON
