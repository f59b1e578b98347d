"""Fetchers in front of the real one: at the pace of hosts, and by robots.txt.

Whether robots.txt is obeyed is a setting: feeds that somebody subscribes to are
commonly fetched without it. A site's robots.txt is fetched once a day, before its
feeds, with the same User-Agent and at the same pace.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urljoin, urlsplit

from hub.core.fetched import Fetched
from hub.ingest.fetcher import FeedFetcher, FetchRequest, bare_url
from hub.limits.host_limiter import HostLimiter, RequestKind
from hub.runtime.clock import Clock
from hub.runtime.offloading import run_in_thread
from protocols.http import Robots, read_robots
from protocols.urls import host_name

KEPT: Final = 86_400.0
"""RFC 9309 2.4: "Crawlers SHOULD NOT use the cached version for more than 24 hours"."""
KEPT_UNREACHABLE: Final = 3_600.0
"""Seconds until a robots.txt that could not be fetched is asked for again."""
MOST_SITES: Final = 10_000
MOST_RULES: Final = 200_000
"""Rules kept of all sites together; each takes some 300 bytes."""
_INLINE_BYTES: Final = 16 * 1024
_INLINE_PARTS: Final = 500
"""Parts between the asterisks of all rules: searching a path for one takes up to 10
µs."""


class RateLimitedFetcher:
    """Fetches through another fetcher, each request when its host's turn has come.

    ``kind`` says how urgent the requests are.
    """

    def __init__(
        self, fetcher: FeedFetcher, limiter: HostLimiter, kind: RequestKind
    ) -> None:
        self._fetcher = fetcher
        self._limiter = limiter
        self._kind = kind

    async def fetch(self, request: FetchRequest) -> Fetched:
        await self._limiter.wait(host_name(request.url), self._kind)
        return await self._fetcher.fetch(request)


@dataclass(frozen=True, slots=True)
class _Known:
    robots: Robots | None  # None: the file could not be fetched
    until: float
    is_long: bool = False  # matching a path against it takes milliseconds

    @property
    def rules(self) -> int:
        return len(self.robots.rules) if self.robots else 0


class RobotsFetcher:
    """Fetches through another fetcher what robots.txt allows.

    The caller has waited for the host's turn. ``files`` is the fetcher of the
    robots.txt files, which are small. Only the requested URL is checked, not the target
    of a redirect.
    """

    def __init__(
        self,
        fetcher: FeedFetcher,
        files: FeedFetcher,
        limiter: HostLimiter,
        clock: Clock,
    ) -> None:
        self._fetcher = fetcher
        self._files = files
        self._limiter = limiter
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._rules = 0

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Make one fetch; a URL that is not allowed fails without a request."""
        url = bare_url(request.url)
        site = urljoin(url, "/")
        known = await self._robots_of(site, request.user_agent)
        if known.robots is None:
            return self._refused(url, "its robots.txt cannot be read")
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        asking = partial(known.robots.allows, path)
        if not (await run_in_thread(asking) if known.is_long else asking()):
            return self._refused(url, "its robots.txt disallows fetching it")
        return await self._fetcher.fetch(request)

    async def _robots_of(self, site: str, user_agent: str) -> _Known:
        known = self._known.get(site)
        if known is None or known.until <= self._clock.monotonic():
            known = await self._ask(site, user_agent)
            self._keep(site, known)
            # The robots.txt has used up the turn that the caller waited for. The next
            # turn is taken even if the host wants no requests for a while: the caller
            # has dealt with that before.
            await self._limiter.wait(host_name(site), RequestKind.LOOK)
        else:
            self._known.move_to_end(site)
        return known

    def _keep(self, site: str, known: _Known) -> None:
        """Remember a site's rules, and forget those that are unused for the longest."""
        if (before := self._known.pop(site, None)) is not None:
            self._rules -= before.rules
        self._known[site] = known
        self._rules += known.rules
        while len(self._known) > MOST_SITES or self._rules > MOST_RULES:
            _, oldest = self._known.popitem(last=False)
            self._rules -= oldest.rules

    async def _ask(self, site: str, user_agent: str) -> _Known:
        request = FetchRequest(url=urljoin(site, "robots.txt"), user_agent=user_agent)
        fetched = await self._files.fetch(request)
        now = self._clock.monotonic()
        if _is_unreachable(fetched):
            return _Known(None, now + KEPT_UNREACHABLE)
        product = user_agent.partition("/")[0]
        reading = partial(read_robots, fetched.body, product)
        is_large = len(fetched.body) > _INLINE_BYTES
        robots = await run_in_thread(reading) if is_large else reading()
        parts = sum(len(rule.parts) for rule in robots.rules)
        return _Known(robots, now + KEPT, is_long=parts > _INLINE_PARTS)

    def _refused(self, url: str, reason: str) -> Fetched:
        now = self._clock.now()
        return Fetched(at=now, started=now, url=url, status=0, error=reason)


def _is_unreachable(fetched: Fetched) -> bool:
    """Whether everything is forbidden because the file could not be fetched.

    RFC 9309 2.3.1.4: "If the robots.txt file is unreachable due to server or network
    errors, … the crawler MUST assume complete disallow." 2.3.1.3: any other status than
    success means that there is no such file, and everything is allowed.
    """
    return fetched.status >= 500 or (not fetched.status and bool(fetched.error))
