"""Whether a topic names this hub (WebSub 4): in its header, or else in its document."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hub.core.fetched import Fetched
from hub.core.push.hub_offers import hubs_of_feed, hubs_of_header
from hub.ingest.document_parser import Parser
from protocols.feeds import ParseContext
from protocols.feeds.feed_links import discover
from protocols.model import Feed
from protocols.protocol_errors import FeedError, NotAFeed
from protocols.urls import normal_url
from storage.records import Polling


class Discovery:
    def __init__(self, parser: Parser, hub_url: str) -> None:
        self._parser = parser
        self._hub_url = normal_url(hub_url)

    async def is_named(self, fetched: Fetched) -> bool:
        """Subscribers "MUST first check for HTTP Link headers"; so does the hub."""
        hubs = hubs_of_header(fetched) or await self._hubs_of_document(fetched)
        return self._is_among(hubs)

    def is_named_by(self, polling: Polling, head: Feed) -> bool:
        """By a feed that is known: its last document, and that one's header."""
        return self._is_among(polling.hubs or hubs_of_feed(head))

    def _is_among(self, hubs: Sequence[str]) -> bool:
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
        return hubs_of_feed(document.feed)
