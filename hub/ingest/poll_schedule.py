"""Which feeds are visited next: due feeds are read from storage into the queue.

The feed that is latest relative to its own period comes first, so after a standstill
those polls come first that end the longest waits. Due feeds are read in pages, each
from where the last one ended, so that feeds under way are not read again. From time to
time reading starts over, for feeds that have become due before that point.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from datetime import datetime, timedelta

from hub.core.schedule.budget import Budget
from hub.ingest.due_queue import Deferrals, Due, DueQueue
from hub.ingest.poll_budget import poll_tokens
from hub.limits.host_circuit_breaker import HostCircuitBreaker
from hub.limits.host_limiter import INTERVAL, HostLimiter, RequestKind
from hub.runtime.caching import BoundedDict
from hub.runtime.clock import Clock
from protocols.urls import host_name
from storage.contract import FeedStore
from storage.records import DueFeed, FeedId, Pace

CAPACITY = 2_000
"""The most due feeds that are held in memory."""
LEAST_CAPACITY = 100
HELD = 30.0
"""Seconds' worth of polls that are held in memory, if the budget is a rate: a feed that
is read later waits behind them, however late it is."""
PAGES = 4
"""Pages in which the held feeds are read."""
HOST_SHARE = 4
"""Due feeds of one host that wait in memory; any more are put off in storage."""
LONGEST_HOLD = 30.0
"""Seconds: if a host wants no requests for longer, its feeds are put off."""
TICK = 0.25
"""Seconds between looks for due feeds while feeds are being visited."""
LONGEST_REST = 60.0
"""Seconds after which all due feeds are read again, even if none is expected."""
MOST_RESTING = 10_000
SITE_PAUSE = timedelta(seconds=10)
"""Time after which a site is visited again for which no slot was free."""
_ASIDE = " aside"
"""Suffix of a host's name: a second line for feeds that somebody waits for while a site
of the host is read, which may take minutes. It also has one visit at a time, and shares
the host's pace."""
_SITES = " sites"
"""Not a host: the line of all sites that wait for a slot."""


class PollSchedule:
    """Due feeds, in the order and at the pace in which they may be visited."""

    def __init__(
        self,
        feeds: FeedStore,
        limiter: HostLimiter,
        clock: Clock,
        budget: Budget,
        is_read: Callable[[str], bool] = lambda host: False,
    ) -> None:
        """``is_read``: whether a site of that host is being read."""
        self._feeds = feeds
        self._limiter = limiter
        self._is_read = is_read
        self._clock = clock
        self._budget = budget
        self._tokens = poll_tokens(budget, clock.monotonic())
        capacity = _capacity(budget)
        self._page = capacity // PAGES
        self._queue = DueQueue(capacity=capacity, per_host=HOST_SHARE)
        self._deferrals = Deferrals(INTERVAL)
        self._dead = HostCircuitBreaker()
        self._deferred: list[tuple[FeedId, datetime]] = []
        self._held: list[tuple[str, datetime]] = []  # hosts to be stored
        self._under_way: set[FeedId] = set()
        self._resting: BoundedDict[FeedId, float] = BoundedDict(MOST_RESTING)
        self._page_ends: dict[Pace, tuple[datetime, FeedId]] = {}
        self._finished: set[FeedId] = set()  # since due feeds were last read
        self._read_at = 0.0  # when due feeds are read next
        self._looks_again = False
        self._restart_at = 0.0

    async def restore(self) -> None:
        """Leave hosts alone that wanted no requests when the hub ended."""
        now = self._clock.now()
        for host, until in await self._feeds.held_hosts(now):
            self._limiter.hold(host, (until - now).total_seconds())

    async def load(self) -> None:
        """Fill the queue from storage, if there is room and it is time to look."""
        now = self._clock.monotonic()
        if now < self._read_at or self._queue.room < self._page:
            return
        if now >= self._restart_at:
            self._page_ends.clear()
            self._restart_at = now + LONGEST_REST
        if self._resting:
            self._wake_resting(now)
        self._finished.clear()
        self._looks_again = False
        page = await self._feeds.due(
            self._clock.now(), after=self._page_ends, limit=self._page
        )
        for feed in page:
            self._admit(feed, now)
            self._page_ends[feed.pace] = (feed.next_fetch, feed.id)
        await self.put_off()
        if len(page) < self._page:
            next_look = await self._next_look()
            self._read_at = 0.0 if self._looks_again else next_look

    def take(self, limit: int) -> list[Due]:
        """Feeds whose turn it is, as far as the budget allows. Each is under way until
        `finish`."""
        now = self._clock.monotonic()
        if self._tokens is not None:
            limit = min(limit, int(self._tokens.left(now)))
        taken = self._queue.take(now, limit)
        if self._tokens is not None:
            self._tokens.take(now, len(taken))
        for due in taken:
            self._under_way.add(due.feed_id)
        return taken

    def finish(self, due: Due, started: float) -> bool:
        """Note that the visit that began at ``started`` is over. True if another feed
        of its host waits."""
        self._under_way.discard(due.feed_id)
        self._finished.add(due.feed_id)
        return self._queue.release(due.host, started + INTERVAL)

    def ask(self, feed_id: FeedId, url: str) -> None:
        """Visit a feed next, due or not, unless it is under way. If ``url`` is "", the
        visit waits for no host's pace."""
        if feed_id in self._under_way:
            return
        host = self._host(url)
        if host and self._is_read(host):
            host += _ASIDE
        self._queue.add_first(Due(feed_id, host))

    async def wait_for_turn(self, due: Due, kind: RequestKind) -> bool:
        """Wait until the pace of its host lets the visit begin. False if the host wants
        no requests for a while; then the feed is put off."""
        has_turn = await self._limiter.wait(
            due.host.removesuffix(_ASIDE), kind, longest_hold=LONGEST_HOLD
        )
        if not has_turn:
            self._defer(due, self._clock.monotonic())
        return has_turn

    @property
    def under_way(self) -> Set[FeedId]:
        return self._under_way

    def is_under_way(self, feed_id: FeedId) -> bool:
        return feed_id in self._under_way

    def expect(self, next_fetch: datetime) -> bool:
        """Note that a feed becomes due at that time; True if that is before the next
        look."""
        wait = (next_fetch - self._clock.now()).total_seconds()
        due_at = self._clock.monotonic() + wait
        is_sooner = due_at < self._read_at
        self._read_at = min(self._read_at, due_at)
        return is_sooner

    def look_again(self) -> None:
        """Read all due feeds again: some may have become due before the last page."""
        self._read_at = self._restart_at = 0.0
        self._looks_again = True

    def rest(self, feed_id: FeedId, seconds: float) -> None:
        """Leave a feed alone for so long; it stays due, as nothing of it could be
        stored."""
        self._resting[feed_id] = self._clock.monotonic() + seconds

    def end_rest(self, feed_id: FeedId) -> None:
        self._resting.pop(feed_id, None)

    def put_site_off(self, due: Due) -> None:
        """Store a later time for a site because no slot is free for a visit to it."""
        now = self._clock.now()
        later = self._deferrals.next_time(_SITES, due.pace, now + SITE_PAUSE, now)
        self._deferred.append((due.feed_id, later))
        self.expect(later)

    def hold(self, url: str, until: datetime) -> list[FeedId]:
        """Note that the host of a URL wants no requests before ``until``. Returns the
        feeds that are put off."""
        host = self._host(url)
        if not host:
            return []
        seconds = (until - self._clock.now()).total_seconds()
        self._limiter.hold(host, seconds)
        if seconds > LONGEST_HOLD:
            self._held.append((host, until))
        return self._withdraw(host, self._clock.monotonic())

    def silent(self, url: str) -> list[FeedId]:
        """Note that the host of a URL gave no answer. Returns the feeds that are put
        off if the host seems dead.

        Feeds that are fetched by hand or by a ping are visited all the same.
        """
        host, now = self._host(url), self._clock.monotonic()
        if not host or not self._dead.silent(host, now):
            return []
        return self._withdraw(host, now)

    def answered(self, url: str) -> None:
        """Note that the host of a URL has answered."""
        if len(self._dead):
            self._dead.answered(self._host(url))

    def _withdraw(self, host: str, now: float) -> list[FeedId]:
        withdrawn = self._queue.withdraw(host) + self._queue.withdraw(host + _ASIDE)
        for due in withdrawn:
            self._defer(due, now)
        return [due.feed_id for due in withdrawn]

    def is_held(self, url: str) -> bool:
        return self._limiter.held(self._host(url)) > 0

    async def put_off(self) -> None:
        """Store the later times of feeds that their host has no time for, and the hosts
        that want no requests."""
        if self._held:
            held, self._held = self._held, []
            await self._feeds.hold_hosts(held, self._clock.now())
        while self._deferred:
            page = self._page
            moves, self._deferred = self._deferred[:page], self._deferred[page:]
            await self._feeds.defer(moves)

    @property
    def held(self) -> int:
        """How many due feeds are in memory."""
        return len(self._queue)

    def seconds_to_next(self) -> float:
        """Seconds until there may be something to `load` or to `take`."""
        now = self._clock.monotonic()
        times = [now + LONGEST_REST]
        ready = self._queue.next_ready()
        if ready is not None:
            times.append(max(ready, self._allowed_at(now)))
        if self._queue.room >= self._page:
            times.append(self._read_at)
        return max(0.0, min(times) - now)

    def _allowed_at(self, now: float) -> float:
        """When the poll budget allows the next poll, in monotonic seconds."""
        return now + (self._tokens.wait(now) if self._tokens is not None else 0.0)

    def _admit(self, feed: DueFeed, now: float) -> None:
        if self._is_known(feed.id):
            return
        host = self._host(feed.url)
        due = Due(feed.id, host, feed.pace)
        is_held = self._alone(host, now) > LONGEST_HOLD
        displaced = due if is_held else self._queue.add(due)
        if displaced is not None:
            self._defer(displaced, now)

    def _is_known(self, feed_id: FeedId) -> bool:
        """Whether a feed is queued, under way, left alone, or was visited since the
        page was read."""
        return (
            feed_id in self._queue
            or feed_id in self._under_way
            or feed_id in self._finished
            or feed_id in self._resting
        )

    def _defer(self, due: Due, now: float) -> None:
        wall = self._clock.now()
        host = due.host.removesuffix(_ASIDE)
        allowed = wall + timedelta(seconds=self._alone(host, now))
        later = self._deferrals.next_time(host, due.pace, allowed, wall)
        self._deferred.append((due.feed_id, later))

    def _alone(self, host: str, now: float) -> float:
        """Seconds for which no feed of a host is visited, because the host asked for
        that or does not answer."""
        return max(self._limiter.held(host), self._dead.rest(host, now))

    def _host(self, url: str) -> str:
        """The host at whose pace a URL is requested; "" if its requests are not
        paced."""
        host = host_name(url)
        return "" if self._limiter.is_exempt(host) else host

    def _wake_resting(self, now: float) -> None:
        rested = [feed for feed, until in self._resting.items() if until <= now]
        for feed_id in rested:
            del self._resting[feed_id]
        if rested:
            self._page_ends.clear()

    async def _next_look(self) -> float:
        """When to look for due feeds again; soon while due feeds are being visited."""
        now = self._clock.monotonic()
        next_due = await self._feeds.next_due()
        wait = LONGEST_REST
        if next_due is not None:
            wait = (next_due - self._clock.now()).total_seconds()
        return now + min(max(wait, TICK), LONGEST_REST)


def _capacity(budget: Budget) -> int:
    """How many due feeds are held; fewer if they would have to wait for long."""
    if not budget.polls_per_second:
        return CAPACITY
    wanted = int(HELD * budget.polls_per_second)
    return min(max(wanted, LEAST_CAPACITY), CAPACITY)
