"""Hints that pages have changed: a reason to ask their feeds, and nothing more.

What a hint says is not believed: the feeds are fetched, as by a ping, and tell
themselves. Whose page nobody knows here is not looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from hub.core.standing import site_at
from hub.services.websub import Pinged, WebSubService
from protocols.scp.addresses import page_address
from protocols.websub.requests import PublishRequest
from storage.contract import Storage

MOST_URLS = 100
MOST_FEEDS_OF_SITE = 10


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
        """Have these feeds, or those of these pages and sites, fetched soon.

        Coalesced and paced as pings are. Raises `TooManyWaiting`.
        """
        found = [feed for url in urls for feed in await self._feeds_of(url)]
        feeds = tuple(dict.fromkeys(found))
        return await self._websub.publish(PublishRequest(topics=feeds))

    async def _feeds_of(self, url: str) -> Sequence[str]:
        """The feed that has the page; public ones whose site it is; or it is a feed,
        or a page that parts are followed of."""
        listed = await self._storage.page_list.find(page_address(url) or url)
        if listed is not None:
            ids = [listed.page.entry.feed_id]
        elif await self._storage.feeds.find(url) is not None:
            return [url]
        else:
            site = site_at(url)
            ids = await self._storage.standings.of_site(site, MOST_FEEDS_OF_SITE)
        feeds = [await self._storage.feeds.get(each) for each in ids]
        found = [feed.url for feed in feeds if feed is not None]
        has_parts = bool(await self._storage.feeds.parts(url, 1))
        return [*found, url] if has_parts or not found else found
