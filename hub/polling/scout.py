"""What is at a URL, before it is followed: a feed, or a page that names some.

Where a page names none, the places that most sites have theirs at are tried, one
after the other and no faster than a host is ever asked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin

from hub.clock import Clock
from hub.core.fetched import Fetched
from hub.parsing import Parser
from hub.polling.fetcher import FetchRequest
from hub.polling.hops import origin
from hub.polling.visitor import FeedFetcher
from protocols.errors import FeedError, FeedLink, NotAFeed
from protocols.feeds import ParseContext
from protocols.feeds.choosing import Choice, choose
from protocols.feeds.discovery import discover_in_header
from protocols.model import ParsedFeed
from storage.records import Credentials

SECONDS: Final = 20.0
"""For one look, everything included."""
USUAL_PLACES: Final = ("/feed", "/feed.xml", "/atom.xml", "/rss.xml", "/feed.json")
_NOTHING = Choice(feeds=(), best=None, reason="no feed was found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was found. ``fetched`` is None if the look took too long; ``trouble`` says
    why there is no ``feed``."""

    fetched: Fetched | None = None
    feed: ParsedFeed | None = None
    trouble: str = ""
    choice: Choice = _NOTHING


class Scout:
    """``fetcher`` keeps the pace of hosts."""

    def __init__(
        self,
        fetcher: FeedFetcher,
        parser: Parser,
        clock: Clock,
        user_agent: str,
        seconds: float = SECONDS,
    ) -> None:
        self._seconds = seconds
        self._fetcher = fetcher
        self._parser = parser
        self._clock = clock
        self._user_agent = user_agent

    async def look(self, url: str, credentials: Credentials | None = None) -> Sight:
        """Look at a URL; raises nothing but cancellation."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._look(url, credentials)
        except TimeoutError:
            return Sight(trouble=f"looking at it took over {self._seconds:g} s")

    async def _look(self, url: str, credentials: Credentials | None) -> Sight:
        fetched = await self._fetch(url, credentials)
        found = await self._read(fetched)
        if isinstance(found, ParsedFeed):
            return Sight(fetched=fetched, feed=found)
        if fetched.error:
            return Sight(fetched=fetched, trouble=fetched.error)
        named = discover_in_header(fetched.link, fetched.url)
        if isinstance(found, NotAFeed):
            named += found.feeds
        if not named and isinstance(found, NotAFeed) and found.is_page:
            is_own = origin(fetched.url) == origin(url)
            given = credentials if is_own else None  # they are for no other
            named = await self._try_usual_places(fetched.url, given)
        return Sight(fetched=fetched, trouble=str(found), choice=choose(named))

    async def _try_usual_places(
        self, page: str, credentials: Credentials | None
    ) -> tuple[FeedLink, ...]:
        """The first of them that a feed is at."""
        for place in USUAL_PLACES:
            fetched = await self._fetch(urljoin(page, place), credentials)
            found = await self._read(fetched)
            if isinstance(found, ParsedFeed):
                title, type = found.feed.title, found.format.media_type
                return (FeedLink(href=fetched.url, title=title, type=type),)
        return ()

    async def _fetch(self, url: str, credentials: Credentials | None) -> Fetched:
        return await self._fetcher.fetch(
            FetchRequest(url=url, user_agent=self._user_agent, credentials=credentials)
        )

    async def _read(self, fetched: Fetched) -> ParsedFeed | FeedError | None:
        if fetched.error:
            return None
        context = ParseContext(
            url=fetched.url, content_type=fetched.content_type, now=self._clock.now()
        )
        try:
            return await self._parser.parse(fetched.body, context)
        except FeedError as error:
            return error
