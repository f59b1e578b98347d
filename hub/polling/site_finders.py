"""Sites that offer all they have to programs, looked for from one of their pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urljoin

from hub.core.fetched import Fetched
from hub.runtime.offloading import run_in_thread
from protocols.errors import FeedError, FeedLink
from protocols.model import FeedFormat, ParsedFeed
from protocols.openfeeder.places import LLMS, discovery_places, places_in_llms
from protocols.scp.reading.robots import sitemaps_of_robots
from protocols.scp.reading.sitemaps import read_sitemap

MOST_SITEMAPS: Final = 3
"""That are looked at: of those named by robots.txt, and by others."""
LARGEST_INDEX: Final = 256 * 1024
"""Bytes of a sitemap that may name others."""
LARGEST_UNPACKED: Final = 2 * 1024 * 1024

Fetch: TypeAlias = Callable[[str], Awaitable[Fetched]]
"""By the pace of hosts; failures are values."""
Read: TypeAlias = Callable[[Fetched], Awaitable[ParsedFeed | FeedError | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSite:
    """``link`` is what the site is registered by, ``fetched`` the document there."""

    link: FeedLink
    format: FeedFormat
    fetched: Fetched


SiteFinder: TypeAlias = Callable[[Fetched, Fetch, Read], Awaitable[FoundSite | None]]
"""From the answer at a page's address. Asks a handful of times at most."""


async def find_openfeeder(page: Fetched, fetch: Fetch, read: Read) -> FoundSite | None:
    places = await run_in_thread(
        lambda: discovery_places(
            page.url, page.link, page.body, is_spoken=page.speaks_openfeeder
        )
    )
    return await _find_among(places, fetch, read)


async def find_in_llms(page: Fetched, fetch: Fetch, read: Read) -> FoundSite | None:
    """Where ``llms.txt`` says; it is asked for last of all."""
    fetched = await fetch(urljoin(page.url, LLMS))
    if fetched.error:
        return None
    places = await run_in_thread(partial(places_in_llms, fetched.body, fetched.url))
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
    """In a sitemap that ``robots.txt`` names, or the usual one, or one that these
    name."""
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
    """The site that it is of, or other sitemaps that it names."""
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
    """The site whose front document a URL leads to, if it does."""
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
"""The best kind first."""
