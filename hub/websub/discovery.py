"""Whether a topic names this hub (WebSub 4): in its header, or else in its document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hub.core.fetched import Fetched
from hub.parsing import Parser
from protocols.errors import FeedError, NotAFeed
from protocols.feeds import ParseContext
from protocols.feeds.discovery import discover
from protocols.http import parse_link_header
from protocols.urls import normal_url


class Discovery:
    def __init__(self, parser: Parser, hub_url: str) -> None:
        self._parser = parser
        self._hub_url = normal_url(hub_url)

    async def is_named(self, fetched: Fetched) -> bool:
        """Subscribers "MUST first check for HTTP Link headers"; so does the hub."""
        hubs: Sequence[str] = [
            link.href
            for link in parse_link_header(fetched.link, fetched.url)
            if link.rel == "hub"
        ]
        hubs = hubs or await self._hubs_of_document(fetched)
        return self._hub_url in map(normal_url, hubs)

    async def _hubs_of_document(self, fetched: Fetched) -> Sequence[str]:
        context = ParseContext(
            url=fetched.url, content_type=fetched.content_type, now=fetched.at
        )
        try:
            document = await self._parser.parse(fetched.body, context)
        except NotAFeed:
            page = await asyncio.to_thread(discover, fetched.body, fetched.url)
            return page.hubs
        except FeedError:
            return ()
        return [link.href for link in document.feed.links if link.rel == "hub"]
