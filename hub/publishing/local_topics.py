"""Local topics, which are pages of this hub.

They are ``PUBLIC_URL/topics/{id}.atom``, ``.json`` and ``.normalized.json``.

A subscription to a local topic is a subscription to the feed behind it. The hub never
fetches its own pages: it would poll itself for what it knows already, and send the
entries of all its feeds once more.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec.structs import replace

from protocols.model import Notification
from protocols.topic_pages import TopicFormat, notified_links
from protocols.urls import resource_url
from storage.contract import FeedStore
from storage.records import AccountId, FeedId, FeedState, Format, StoredFeed

_PAGE = re.compile(r"/topics/([0-9]{1,18})\.(atom|(?:normalized\.)?json)(?:\?.*)?")
_OWN = re.compile(
    r"/(?:topics|scp|openfeeder|stream|hub|hubbub|upstream|myPublicFeeds\.opml)"
    r"(?:[/?].*)?",
    re.DOTALL,
)
"""Paths that belong to the hub alone. Others, like ``/sitemap.xml`` and ``/``, may
belong to a site that a proxy serves under the same origin; those of them that lead to
the hub are refused when they are requested (`hub.web.middleware`)."""
PLAYGROUND_PATH = "/playground/"
"""The beginning of topics and callbacks of the WebSub playground. Such a topic counts
as a publisher's: its content is known nowhere else, so the hub fetches it."""
_UNSEEN = (FeedState.REMOVED, FeedState.EVENTS)
_LOCAL = re.compile(r"http://localhost(?=[:/]|$)")
_LOOPBACK = re.compile(r"http://(?:127\.0\.0\.1|\[::1\])(?=[:/]|$)")


class LocalTopics:
    """Recognizes local topics. Without a ``public_url`` there are none."""

    def __init__(self, public_url: str = "") -> None:
        self._root = resource_url(public_url).rstrip("/") if public_url else ""
        self._is_local = _LOCAL.match(self._root) is not None
        self._read = lru_cache(1_024)(self._parse)

    def owns(self, topic: str) -> bool:
        """Whether the topic is any page of this hub, however its URL is spelled."""
        path = self._path(topic) if self._root else ""
        if path.startswith(PLAYGROUND_PATH):
            return False
        if self._is_local:
            return path.startswith("/")
        return _OWN.fullmatch(path) is not None

    def format(self, topic: str) -> Format | None:
        """The format that subscribers of the page are sent; None for other topics."""
        found = self._read(topic)
        return None if found is None else found[1]

    async def find(self, feeds: FeedStore, topic: str) -> StoredFeed | None:
        """The feed behind a topic; for a page of this hub, the feed that the page
        shows."""
        if not self.owns(topic):
            return await feeds.find(topic)
        found = self._read(topic)
        feed = None if found is None else await feeds.get(found[0])
        is_hidden = feed is not None and feed.state in _UNSEEN
        return None if is_hidden else feed

    async def find_readable(
        self, feeds: FeedStore, topic: str, viewer: AccountId | None
    ) -> StoredFeed | None:
        """Like `find`, but None if the viewer may not read it: see
        `FeedStore.find_readable`."""
        if not self.owns(topic):
            return await feeds.find_readable(topic, viewer)
        feed = await self.find(feeds, topic)
        if feed is None or not await feeds.readable([(viewer, feed.id)]):
            return None
        return feed

    async def find_public(self, feeds: FeedStore, topic: str) -> StoredFeed | None:
        """Like `find`, but of this hub's pages only those that everybody may read."""
        feed = await self.find(feeds, topic)
        is_hidden = feed is not None and feed.private and self.owns(topic)
        return None if is_hidden else feed

    def _path(self, topic: str) -> str:
        """The path of a URL of this hub, with its query; "" for any other server.

        A hub that is reached only on this machine has three names, and owns its whole
        origin.
        """
        url = resource_url(topic)
        if self._is_local:
            url = _LOOPBACK.sub("http://localhost", url)
        return url.removeprefix(self._root) if url.startswith(self._root) else ""

    def _parse(self, topic: str) -> tuple[FeedId, Format] | None:
        if not self.owns(topic):
            return None
        found = _PAGE.fullmatch(self._path(topic))
        if found is None:
            return None
        is_atom = found[2] == TopicFormat.ATOM
        return FeedId(int(found[1])), Format.ATOM if is_atom else Format.JSON


def name_topic(notification: Notification) -> Notification:
    """The notification of a local topic, with links to the page and this hub.

    The publisher's own document and hub are not named; this agrees with the headers of
    the delivery.
    """
    topic, hub = notification.topic, notification.hub
    if _of_hub(hub.removesuffix("/hub")).format(topic) is None:
        return notification
    links = notified_links(notification.feed.links, topic, hub)
    return replace(notification, feed=replace(notification.feed, links=links))


@lru_cache(8)
def _of_hub(public_url: str) -> LocalTopics:
    return LocalTopics(public_url)
