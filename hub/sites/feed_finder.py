"""Finds what is at a URL before it is followed: a feed, a site, or a page with feeds.

A site's own address stands for everything the site has: if that is published for
programs, it is preferred to feeds, which have only the newest entries. Any other page
stands for the feeds that it names. Requests are made one after the other, at the pace
of hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from hub.core.fetched import Fetched
from hub.ingest.document_parser import Parser
from hub.ingest.fetcher import FeedFetcher, FetchRequest, origin
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from protocols.feeds import ParseContext
from protocols.feeds.feed_links import Choice, choose, discover_in_header
from protocols.model import FeedFormat, ParsedFeed
from protocols.openfeeder.read.site_urls import LLMS, discovery_urls, urls_in_llms
from protocols.protocol_errors import FeedError, FeedLink, NotAFeed
from protocols.scp.read.sitemap_reader import read_sitemap, sitemaps_of_robots
from protocols.urls import is_web_url, selector_of
from storage.records import Credentials

MOST_SITEMAPS: Final = 3
"""Most sitemaps that are read of robots.txt, and again of those that they name."""
LARGEST_INDEX: Final = 256 * 1024
"""Bytes of a sitemap up to which it may name other sitemaps."""
LARGEST_UNPACKED: Final = 2 * 1024 * 1024

Fetch: TypeAlias = Callable[[str], Awaitable[Fetched]]
"""Fetches a URL at the pace of hosts; failures are returned as values."""
Read: TypeAlias = Callable[[Fetched], Awaitable[ParsedFeed | FeedError | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSite:
    """A site. ``link``: how it is registered; ``fetched``: the document at that URL."""

    link: FeedLink
    format: FeedFormat
    fetched: Fetched


SiteFinder: TypeAlias = Callable[[Fetched, Fetch, Read], Awaitable[FoundSite | None]]
"""Finds a site from the answer at a page's URL, with a handful of requests at most."""


async def find_openfeeder(page: Fetched, fetch: Fetch, read: Read) -> FoundSite | None:
    places = await run_in_thread(
        lambda: discovery_urls(
            page.url, page.link, page.body, is_spoken=page.speaks_openfeeder
        )
    )
    return await _find_among(places, fetch, read)


async def find_in_llms(page: Fetched, fetch: Fetch, read: Read) -> FoundSite | None:
    """Return a site that ``llms.txt`` names, or None. This is tried last of all."""
    fetched = await fetch(urljoin(page.url, LLMS))
    if fetched.error:
        return None
    places = await run_in_thread(partial(urls_in_llms, fetched.body, fetched.url))
    return await _find_among(places, fetch, read)


async def _find_among(
    places: Sequence[str], fetch: Fetch, read: Read
) -> FoundSite | None:
    for place in places:
        found = await find_at(place, FeedFormat.OPENFEEDER, fetch, read)
        if found is not None:
            return found
    return None


async def find_scp(page: Fetched, fetch: Fetch, read: Read) -> FoundSite | None:
    """Return a site with an SCP sitemap, or None.

    The sitemap is named by ``robots.txt``, is at the usual address, or is named by one
    of these.
    """
    robots = await fetch(urljoin(page.url, "/robots.txt"))
    reading = partial(sitemaps_of_robots, robots.body, robots.url)
    named = () if robots.error else await run_in_thread(reading)
    places = dict.fromkeys((*named[:MOST_SITEMAPS], urljoin(page.url, "/sitemap.xml")))
    children: dict[str, None] = {}
    for place in places:
        found, named = await _look_at_sitemap(place, fetch, read)
        if found is not None:
            return found
        children.update(dict.fromkeys(named))
    others = [url for url in children if url not in places]
    likely = sorted(others, key=lambda url: "scp" not in url)
    for place in likely[:MOST_SITEMAPS]:
        found, _ = await _look_at_sitemap(place, fetch, read)
        if found is not None:
            return found
    return None


async def _look_at_sitemap(
    url: str, fetch: Fetch, read: Read
) -> tuple[FoundSite | None, tuple[str, ...]]:
    """Return the site that a sitemap belongs to, and other sitemaps that it names."""
    fetched = await fetch(url)
    feed = await read(fetched)
    if isinstance(feed, ParsedFeed):
        return _found(fetched, feed, FeedFormat.SCP), ()
    if fetched.error or len(fetched.body) > LARGEST_INDEX:
        return None, ()
    reading = partial(read_sitemap, fetched.body, fetched.url, largest=LARGEST_UNPACKED)
    try:
        return None, (await run_in_thread(reading)).children
    except FeedError:
        return None, ()


async def find_at(
    url: str, format: FeedFormat, fetch: Fetch, read: Read
) -> FoundSite | None:
    """Return the site whose front document a URL leads to, or None."""
    fetched = await fetch(url)
    feed = await read(fetched)
    return _found(fetched, feed, format) if isinstance(feed, ParsedFeed) else None


def _found(fetched: Fetched, feed: ParsedFeed, format: FeedFormat) -> FoundSite | None:
    if feed.format is not format:
        return None
    link = FeedLink(
        href=fetched.url, title=feed.feed.title, type=feed.format.media_type
    )
    return FoundSite(link=link, format=format, fetched=fetched)


SITE_FINDERS: Final[Sequence[tuple[FeedFormat, SiteFinder]]] = (
    (FeedFormat.OPENFEEDER, find_openfeeder),
    (FeedFormat.SCP, find_scp),
    (FeedFormat.OPENFEEDER, find_in_llms),
)
"""Finders, the one for the best kind of site first."""


SECONDS: Final = 20.0
"""Deadline of one lookup in seconds, everything included."""
SITE_SECONDS: Final = 8.0
"""Seconds of the lookup for finding a site, if feeds would do as well.

A server that hangs while it is asked for a site must not keep anybody from its feeds.
"""
USUAL_PLACES: Final = ("/feed", "/feed.xml", "/atom.xml", "/rss.xml", "/feed.json")
_NOTHING = Choice(feeds=(), best=None, reason="no feed was found")


class LookupKind(StrEnum):
    """What to look for, besides the document at the URL itself."""

    ANY = ""
    FEED = "feed"
    OPENFEEDER = "openfeeder"
    SCP = "scp"

    @property
    def takes_feeds(self) -> bool:
        return self in (LookupKind.ANY, LookupKind.FEED)

    def takes(self, format: FeedFormat) -> bool:
        """Return whether sites of a format are looked for."""
        return self is LookupKind.ANY or self.value == format.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupResult:
    """What was found.

    ``fetched`` is None if the lookup took too long; ``error`` says why there is no
    ``feed``. ``at_best`` is the answer at the best of the places found, if that was
    requested too.
    """

    fetched: Fetched | None = None
    feed: ParsedFeed | None = None
    error: str = ""
    choice: Choice = _NOTHING
    site: FoundSite | None = None  # if a site is the best choice
    at_best: Fetched | None = None


class FeedFinder:
    """Finds sources at a URL; its ``fetcher`` keeps the pace of hosts."""

    def __init__(
        self,
        fetcher: FeedFetcher,
        parser: Parser,
        clock: Clock,
        user_agent: str,
        seconds: float = SECONDS,
        site_seconds: float = SITE_SECONDS,
    ) -> None:
        self._seconds = seconds
        self._site_seconds = site_seconds
        self._fetcher = fetcher
        self._parser = parser
        self._clock = clock
        self._user_agent = user_agent

    async def look(
        self,
        url: str,
        credentials: Credentials | None = None,
        kind: LookupKind = LookupKind.ANY,
    ) -> LookupResult:
        """Look for sources of a kind at a URL; raises nothing but cancellation."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._look(url, credentials, kind)
        except TimeoutError:
            return LookupResult(error=f"looking at it took over {self._seconds:g} s")

    async def _look(
        self, url: str, credentials: Credentials | None, kind: LookupKind
    ) -> LookupResult:
        fetched = await self._fetch(url, credentials)
        found = await self._read(fetched)
        if isinstance(found, ParsedFeed):
            return LookupResult(fetched=fetched, feed=found)
        is_page = isinstance(found, NotAFeed) and found.is_page
        named = () if fetched.error else discover_in_header(fetched.link, fetched.url)
        if isinstance(found, NotAFeed):
            named += found.feeds
        if not kind.takes_feeds:
            named = ()
        is_own = fetched.status and origin(fetched.url) == origin(url)
        given = credentials if is_own else None  # not for another origin
        result = LookupResult(
            fetched=fetched,
            error=fetched.error or str(found),
            choice=choose(named),
        )
        if not selector_of(url) and _may_be_site(
            fetched, is_page=is_page, is_named=bool(named)
        ):
            site = await self._find_site(fetched, given, kind)
            if site is not None:
                return _with_site(result, site)
        if not named and is_page and kind.takes_feeds:
            return await self._try_usual_places(result, fetched.url, given)
        return result

    async def _find_site(
        self, page: Fetched, credentials: Credentials | None, kind: LookupKind
    ) -> FoundSite | None:
        """Return the first site of the wanted kind; None if none is found in time."""
        try:
            async with asyncio.timeout(
                self._site_seconds if kind.takes_feeds else None
            ):
                return await self._search(page, credentials, kind)
        except TimeoutError:
            return None

    async def _search(
        self, page: Fetched, credentials: Credentials | None, kind: LookupKind
    ) -> FoundSite | None:
        home = origin(page.url)

        async def fetch(url: str) -> Fetched:
            is_own = is_web_url(url) and origin(url) == home
            return await self._fetch(url, credentials if is_own else None)

        for format, find in SITE_FINDERS:
            if kind.takes(format):
                found = await find(page, fetch, self._read)
                if found is not None:
                    return found
        return None

    async def _try_usual_places(
        self, result: LookupResult, page: str, credentials: Credentials | None
    ) -> LookupResult:
        """Return the result, with the first of the usual places that has a feed."""
        for place in USUAL_PLACES:
            fetched = await self._fetch(urljoin(page, place), credentials)
            found = await self._read(fetched)
            if isinstance(found, ParsedFeed):
                title, type = found.feed.title, found.format.media_type
                link = FeedLink(href=fetched.url, title=title, type=type)
                return replace(result, choice=choose((link,)), at_best=fetched)
        return result

    async def _fetch(self, url: str, credentials: Credentials | None) -> Fetched:
        if not is_web_url(url):  # pages and robots.txt may name anything
            now = self._clock.now()
            error = "it is not a valid URL"
            return Fetched(at=now, started=now, url=url, status=0, error=error)
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


def _may_be_site(fetched: Fetched, *, is_page: bool, is_named: bool) -> bool:
    """Return whether a site may be at the URL of an answer.

    The root of a host may be one if it answers below 500. Any other URL may if it is a
    page that names no feeds; feeds that are named are what is meant.
    """
    if not 200 <= fetched.status < 500:
        return False
    is_address = urlsplit(fetched.url).path in ("", "/")
    return is_address or (is_page and not is_named)


def _with_site(result: LookupResult, site: FoundSite) -> LookupResult:
    choice = Choice(
        feeds=(site.link, *result.choice.feeds),
        best=site.link,
        reason=f"the site publishes all its pages ({site.format})",
    )
    return replace(result, choice=choice, site=site, at_best=site.fetched)
