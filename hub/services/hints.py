"""Hints that pages have changed: a reason to ask their feeds, and nothing more.

What a hint says is not believed: the feeds are fetched, as by a ping, and tell
themselves. Whose page nobody knows here is not looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from hub.services.websub import Pinged, WebSubService
from protocols.scp.addresses import page_address
from protocols.websub.requests import PublishRequest
from storage.interface import Storage

MOST_URLS = 100


class HintAction(StrEnum):
    """Both come to the same: the feed is asked."""

    UPSERT = "upsert"
    DELETE = "delete"


class Hint(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of ``POST /openfeeder/update``, as OpenFeeder's programs send it."""

    action: HintAction = HintAction.UPSERT
    urls: list[str]


class HintService:
    def __init__(self, storage: Storage, websub: WebSubService) -> None:
        self._storage = storage
        self._websub = websub

    async def take(self, urls: Sequence[str]) -> list[Pinged]:
        """Have the feeds of these pages, or these feeds, fetched soon.

        Coalesced and paced as pings are. Raises `TooManyWaiting`.
        """
        feeds = dict.fromkeys([await self._feed_of(url) for url in urls])
        return await self._websub.publish(PublishRequest(topics=tuple(feeds)))

    async def _feed_of(self, url: str) -> str:
        """The feed that has the page; else it is taken for that of a feed."""
        listed = await self._storage.page_list.find(page_address(url) or url)
        if listed is None:
            return url
        feed = await self._storage.feeds.get(listed.page.entry.feed_id)
        return url if feed is None else feed.url
