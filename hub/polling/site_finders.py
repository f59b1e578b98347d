"""Sites that offer all they have to programs, looked for from one of their pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from hub.core.fetched import Fetched
from protocols.errors import FeedError, FeedLink
from protocols.model import FeedFormat, ParsedFeed
from protocols.openfeeder.places import discovery_places

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
    for place in discovery_places(page.url, page.link, page.body):
        found = await find_at(place, FeedFormat.OPENFEEDER, fetch, read)
        if found is not None:
            return found
    return None


async def find_at(
    url: str, format: FeedFormat, fetch: Fetch, read: Read
) -> FoundSite | None:
    """The site whose front document a URL leads to, if it does."""
    fetched = await fetch(url)
    feed = await read(fetched)
    if not isinstance(feed, ParsedFeed) or feed.format is not format:
        return None
    link = FeedLink(
        href=fetched.url, title=feed.feed.title, type=feed.format.media_type
    )
    return FoundSite(link=link, format=format, fetched=fetched)


SITE_FINDERS: Final[Sequence[tuple[FeedFormat, SiteFinder]]] = (
    (FeedFormat.OPENFEEDER, find_openfeeder),
)
"""The best kind first."""
