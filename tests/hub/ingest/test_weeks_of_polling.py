"""Weeks of polling by the real poller, in simulated time, judged by the origins.

Only the clock, the network and the storage are played: each site publishes by its own
rhythm, answers conditional requests by the book, and writes down when it was asked.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random

import pytest

from hub.core.fetched import Fetched
from hub.core.schedule.budget import Budget
from hub.core.schedule.poll_period import PollingRules
from hub.ingest.fetcher import FetchRequest
from hub.ingest.poller import Poller
from protocols.feeds import ParseContext
from protocols.model import Hints, ParsedFeed
from tests.support.clock import ManualClock
from tests.support.documents import a_document, an_entry
from tests.support.fetch_targets import START, a_feed, an_answer
from tests.support.polled import PolledStorage, a_limiter
from tests.support.waiting import eventually

DAYS = 20
SETTLED = START + timedelta(days=8)
"""Before, the price is on its way, and nothing is known of the days of the week."""
SETTLED_IN = timedelta(minutes=16)
"""After its first poll a site is new no more."""
A_DAY = 12.0
"""Polls of a feed, on average."""
END = START + timedelta(days=DAYS)
DAY, HOUR = 86_400.0, 3_600.0
NIGHT = (0, 1, 2, 3, 4, 5)
WINDOW = 20

pytestmark = pytest.mark.bulk


@dataclass
class Site:
    """Posts so many entries a day, in office hours only if it ``sleeps``."""

    url: str
    a_day: float
    sleeps: bool = False
    max_age: int = 0
    hints: Hints = field(default_factory=Hints)
    asked: list[datetime] = field(default_factory=list)

    def __post_init__(self) -> None:
        draw = Random(self.url)
        at, self.posts = -30 * DAY, []
        while at < DAYS * DAY:
            at += draw.expovariate(self.posts_at_best / DAY)
            if not self.sleeps or 8 <= at / HOUR % 24 < 18:
                self.posts.append(at)

    @property
    def posts_at_best(self) -> float:
        """Entries a day, as they come while it is awake."""
        return self.a_day * 24 / 10 if self.sleeps else self.a_day

    def count(self, now: datetime) -> int:
        return bisect_right(self.posts, (now - START).total_seconds())

    def answer(self, request: FetchRequest, now: datetime) -> Fetched:
        self.asked.append(now)
        etag = f'"{self.count(now)}"'
        is_known = request.validators is not None and request.validators.etag == etag
        return an_answer(
            304 if is_known else 200,
            b"" if is_known else etag.encode(),
            at=now,
            url=self.url,
            etag=etag,
            cache_control=f"max-age={self.max_age}" if self.max_age else "",
        )

    def document(self, now: datetime) -> ParsedFeed:
        newest = self.count(now)
        return a_document(
            *(
                an_entry(
                    str(number),
                    published=START + timedelta(seconds=self.posts[number]),
                )
                for number in range(newest - 1, max(0, newest - WINDOW) - 1, -1)
            ),
            hints=self.hints,
        )

    @property
    def gaps(self) -> list[float]:
        """Since it was new no more."""
        asked = [at for at in self.asked if at >= self.asked[0] + SETTLED_IN]
        return [(b - a).total_seconds() for a, b in pairwise(asked)]


class World:
    """All sites, and the poller that asks them; time passes from poll to poll."""

    def __init__(self) -> None:
        self.sites = [
            Site(
                url=f"https://s{number}.exempt/",
                a_day=0.5 * 1.5**number,
                sleeps=number % 2 == 1,
                max_age=3 * 3_600 if number % 6 == 0 else 0,
                hints=Hints(skip_hours=NIGHT if number % 4 == 3 else ()),
            )
            for number in range(12)
        ]
        self._by_url = {site.url: site for site in self.sites}
        self.clock = ManualClock()
        self.storage = PolledStorage()
        for number, site in enumerate(self.sites, 1):
            self.storage.put(a_feed(number, site.url))
        self.poller = Poller(
            self.storage,
            self,
            self,
            a_limiter(self.clock),
            self.clock,
            PollingRules(),
            budget=Budget(polls_per_feed_day=A_DAY),
        )

    async def fetch(self, request: FetchRequest) -> Fetched:
        return self._by_url[request.url].answer(request, self.clock.now())

    async def parse(self, body: bytes, context: ParseContext) -> ParsedFeed:
        return self._by_url[context.url].document(self.clock.now())

    async def pass_weeks(self) -> None:
        """Each poll in its turn, and everything that is due at once."""
        polling = asyncio.create_task(self.poller.run())
        try:
            while (due := self._next_due()) < END:
                self.clock.advance((due - self.clock.now()).total_seconds())
                self.poller.wake()
                await self._until_polled()
        finally:
            polling.cancel()
            await asyncio.gather(polling, return_exceptions=True)

    async def _until_polled(self) -> None:
        for _ in range(100):  # turns of the loop: far more than it takes
            await asyncio.sleep(0)
            if self._next_due() > self.clock.now():
                return
        await eventually(lambda: self._next_due() > self.clock.now())

    def _next_due(self) -> datetime:
        return min(target.feed.next_fetch for target in self.storage.known.values())


@pytest.fixture(scope="module")
def world() -> World:
    world = World()
    asyncio.run(world.pass_weeks())
    return world


def test_no_site_is_asked_sooner_than_it_earned_nor_forgotten(world: World) -> None:
    rules = PollingRules()
    longest = rules.max_period * 1.05 + len(NIGHT) * HOUR + HOUR
    for site in world.sites:
        floor = rules.earned_floor
        if site.posts_at_best >= rules.expected_rate / 2:
            floor = rules.expected_floor
        if site.posts_at_best >= rules.fast_rate / 2:
            floor = rules.min_period
        assert min(site.gaps) >= floor
        assert max(site.gaps) <= longest


def test_no_site_is_asked_before_its_answer_is_stale(world: World) -> None:
    strict = [site for site in world.sites if site.max_age]
    assert strict
    for site in strict:
        assert min(site.gaps) >= site.max_age


def test_no_site_is_asked_in_hours_it_wants_skipped(world: World) -> None:
    hinted = [site for site in world.sites if site.hints.skip_hours]
    assert hinted
    for site in hinted:
        assert not {at.hour for at in site.asked[1:]} & set(NIGHT)


def test_as_many_polls_are_spent_as_the_budget_has(world: World) -> None:
    polls = sum(at >= SETTLED for site in world.sites for at in site.asked)
    days = (END - SETTLED).total_seconds() / DAY * len(world.sites)
    assert polls / days == pytest.approx(A_DAY, rel=0.03)


def test_who_posts_more_is_asked_more(world: World) -> None:
    free = [s for s in world.sites if not s.max_age and not s.hints.skip_hours]
    rare, frequent = free[:3], free[-3:]
    assert sum(len(s.asked) for s in frequent) > 1.5 * sum(len(s.asked) for s in rare)


def test_every_post_since_the_first_look_was_told_once(world: World) -> None:
    told = [
        (commit.feed_id, key)
        for commit in world.storage.commits
        for record in commit.records
        if record.kind == "entries"
        for key, _fresh in record.entries
    ]
    assert len(told) == len(set(told))
    posted = sum(
        site.count(site.asked[-1]) - site.count(site.asked[0]) for site in world.sites
    )
    assert len(told) == posted
