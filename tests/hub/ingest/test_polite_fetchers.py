"""Requests for what is no feed yet keep the pace of their hosts.

With the setting, feeds are left alone that a site's robots.txt disallows.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from hub.core.fetched import Fetched
from hub.ingest.fetcher import FetchRequest
from hub.ingest.polite_fetchers import (
    KEPT,
    KEPT_UNREACHABLE,
    MOST_RULES,
    MOST_SITES,
    RateLimitedFetcher,
    RobotsFetcher,
)
from hub.limits.host_limiter import INTERVAL, HostLimiter, RequestKind
from protocols.http.robots import MOST_RULES as MOST_RULES_OF_ONE
from protocols.urls import host_name
from tests.support.clock import ManualClock
from tests.support.fake_fetcher import FakeFetcher
from tests.support.fetch_targets import an_answer
from tests.support.played_time import PlayedTime


@pytest.mark.parametrize(("host", "asked"), [("a.exempt", 3), ("a.example", 2)])
async def test_a_host_is_asked_once_a_second_unless_it_is_exempt(
    host: str, asked: int
) -> None:
    time = PlayedTime()
    fetcher = FakeFetcher(time.clock)
    limiter = HostLimiter(
        time.clock, lambda host: host.endswith(".exempt"), sleep=time.sleep
    )
    limited = RateLimitedFetcher(fetcher, limiter, RequestKind.LOOK)
    request = FetchRequest(url=f"https://{host}/", user_agent="Fanfare")

    asking = [asyncio.create_task(limited.fetch(request)) for _ in range(3)]
    await time.pass_by(1.5)

    assert len(fetcher.requests) == asked
    await time.pass_by(1)
    await asyncio.gather(*asking)


FEED = "https://site.example/feed.xml?n=1"
DISALLOWED = b"User-agent: Fanfare\nDisallow: /feed.xml?n=1$\n"


@dataclass
class Guest:
    """A fetcher before a site of a robots.txt and feeds, each fetch of which has had
    the host's turn; the pauses that were made then are kept, during which time passes.
    """

    robots: Fetched
    clock: ManualClock = field(default_factory=ManualClock)
    pauses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site = FakeFetcher(self.clock, self._answer)
        self._limiter = HostLimiter(
            self.clock, lambda host: host.endswith(".exempt"), sleep=self._pause
        )
        self._fetcher = RobotsFetcher(self.site, self.site, self._limiter, self.clock)

    def _answer(self, request: FetchRequest) -> Fetched:
        is_robots = request.url.endswith("/robots.txt")
        return self.robots if is_robots else an_answer(200, b"feed")

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)

    async def fetch(self, url: str = FEED) -> Fetched:
        self.clock.advance(INTERVAL)
        await self._limiter.wait(host_name(url), RequestKind.POLL)
        return await self._fetcher.fetch(
            FetchRequest(url=url, user_agent="Fanfare/1.0 (1 subscriber)")
        )


async def test_a_feed_that_is_disallowed_is_not_asked_for() -> None:
    guest = Guest(an_answer(200, DISALLOWED))
    fetched = await guest.fetch()
    assert (fetched.status, fetched.error) == (
        0,
        "its robots.txt disallows fetching it",
    )
    assert guest.site.urls == ["https://site.example/robots.txt"]


async def test_a_feed_is_held_against_thousands_of_rules() -> None:
    rules = b"Disallow: /*a*b\n" * MOST_RULES_OF_ONE
    guest = Guest(an_answer(200, DISALLOWED + rules))
    assert (await guest.fetch()).error == "its robots.txt disallows fetching it"
    assert (await guest.fetch("https://site.example/feed.xml")).body == b"feed"


async def test_any_other_feed_is_a_second_after_the_file() -> None:
    guest = Guest(an_answer(200, DISALLOWED))
    fetched = await guest.fetch("https://site.example/feed.xml")
    assert fetched.body == b"feed"
    assert guest.pauses == [1.0]


async def test_an_exempt_host_does_not_wait() -> None:
    guest = Guest(an_answer(200, b""))
    assert (await guest.fetch("https://site.exempt/feed.xml")).body == b"feed"
    assert guest.pauses == []


async def test_the_file_is_asked_for_by_the_name_that_asks_for_the_feed() -> None:
    guest = Guest(an_answer(200, b""))
    await guest.fetch()
    names = {request.user_agent for request in guest.site.requests}
    assert names == {"Fanfare/1.0 (1 subscriber)"}


@pytest.mark.parametrize(
    "answer",
    [
        *map(an_answer, [204, 301, 401, 403, 404, 410, 429]),
        an_answer(200, error="the answer is larger than 5 bytes"),
    ],
    ids=lambda answer: answer.error or str(answer.status),
)
async def test_a_site_without_a_file_that_can_be_read_allows_all(
    answer: Fetched,
) -> None:
    guest = Guest(answer)
    assert (await guest.fetch()).body == b"feed"


@pytest.mark.parametrize(
    "trouble",
    [an_answer(500), an_answer(503), an_answer(0, error="connection refused")],
)
async def test_a_file_that_cannot_be_had_disallows_all_for_an_hour(
    trouble: Fetched,
) -> None:
    guest = Guest(trouble)
    for _ in range(2):
        assert (await guest.fetch()).error == "its robots.txt cannot be read"
    assert len(guest.site.requests) == 1
    guest.robots = an_answer(200, b"")
    guest.clock.advance(KEPT_UNREACHABLE)
    assert (await guest.fetch()).body == b"feed"


async def test_the_file_is_asked_for_once_a_day() -> None:
    guest = Guest(an_answer(200, b""))
    for _ in range(3):
        await guest.fetch()
    guest.clock.advance(KEPT - 10)
    await guest.fetch()
    assert guest.site.urls.count("https://site.example/robots.txt") == 1
    guest.clock.advance(10)
    await guest.fetch()
    assert guest.site.urls.count("https://site.example/robots.txt") == 2


async def assert_remembered(guest: Guest, most: int) -> None:
    """Of one site more the first has been forgotten, and the second has not."""
    for number in range(most + 1):
        await guest.fetch(f"https://s{number}.exempt/feed")
    guest.site.requests.clear()
    await guest.fetch("https://s1.exempt/feed")
    await guest.fetch("https://s0.exempt/feed")
    assert guest.site.urls == [
        "https://s1.exempt/feed",
        "https://s0.exempt/robots.txt",
        "https://s0.exempt/feed",
    ]


@pytest.mark.bulk
async def test_files_of_so_many_sites_are_remembered_and_the_oldest_forgotten() -> None:
    guest = Guest(an_answer(404))
    await assert_remembered(guest, MOST_SITES)


@pytest.mark.bulk
async def test_of_many_long_files_only_the_latest_are_remembered() -> None:
    """One of as many rules as it may have takes a megabyte."""
    rules = b"User-agent: *\n" + b"Disallow: /x\n" * MOST_RULES_OF_ONE
    guest = Guest(an_answer(200, rules))
    await assert_remembered(guest, MOST_RULES // MOST_RULES_OF_ONE)


async def test_a_look_at_a_host_that_wants_no_requests_waits_for_no_file() -> None:
    """Once, and its robots.txt is kept: the next look asks for it no more."""
    time = PlayedTime()
    site = FakeFetcher(time.clock, lambda request: an_answer(200, b""))
    limiter = HostLimiter(time.clock, sleep=time.sleep)
    robots = RobotsFetcher(site, site, limiter, time.clock)
    looking = RateLimitedFetcher(robots, limiter, RequestKind.LOOK)
    limiter.hold("site.example", 3_600)

    for _ in range(2):
        request = FetchRequest(url=FEED, user_agent="Fanfare/1")
        look = asyncio.create_task(looking.fetch(request))
        await time.pass_by(5)
        assert look.done()
    assert site.urls == ["https://site.example/robots.txt", FEED, FEED]
