"""When a host may be asked again: at most one request a second from all of the hub.

There is one `HostLimiter` for requests to publishers, and one for requests to callbacks
other than notifications. Requests to a host wait in one line. More urgent kinds pass
patient ones until these have waited for as long as their kind may be passed: no request
waits forever.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Final

from hub.runtime.clock import Clock
from protocols.domains import zone_of

INTERVAL: Final = 1.0
"""Seconds between the starts of two requests to one host."""
ZONE_INTERVAL: Final = 0.1
"""Seconds between two requests that strangers cause to hosts of one zone: the owner of
a zone can point any number of names at somebody else's address."""
MOST_HOSTS: Final = 100_000
MOST_PUT_OFF: Final = 3
"""The most intervals by which a turn is postponed by redirects from elsewhere, which
cannot be paced. Without a bound they could keep a host from ever being asked."""


class RequestKind(StrEnum):
    """What a request to a host is made for."""

    FETCH = "fetch"  # of a feed, by hand or after a ping: somebody waits for it
    TOPIC = "topic"  # a stranger's topic, looked at before it is subscribed to
    LOOK = "look"  # at what somebody adds, and at lists
    POLL = "poll"
    HUB = "hub"  # of others, for a feed: it may be its publisher's own
    CRAWL = "crawl"  # all that a visit to a site asks after its front document
    TEST = "test"  # to a callback: the operator tries it, and waits for the answer
    QUESTION = "question"  # to a callback: whether it is wanted
    DENIAL = "denial"  # to a callback: a subscription has ended


PATIENCE: Final[Mapping[RequestKind, float]] = {
    RequestKind.LOOK: 5.0,
    RequestKind.POLL: 10.0,
    RequestKind.HUB: 10.0,
    RequestKind.CRAWL: 60.0,
}
"""Seconds for which requests of a kind let more urgent ones pass; other kinds let none
pass."""
_BY_STRANGERS: Final = frozenset({RequestKind.TOPIC, RequestKind.QUESTION})
_PATIENT_WITH_HOST: Final = frozenset(
    {RequestKind.FETCH, RequestKind.POLL, RequestKind.CRAWL}
)
"""Kinds that wait while their host wants no requests; the others make at most one
request for each thing that somebody asks for."""


@dataclass(slots=True, eq=False)
class _Line:
    """The requests that wait for one host, and when the next of them may start."""

    next_start: float = 0.0
    next_due: float = 0.0  # as it would be without the redirects since the last turn
    held_until: float = 0.0
    waiting: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)
    serving: asyncio.Task[None] | None = None

    def is_idle(self, now: float) -> bool:
        return not self.waiting and max(self.next_start, self.held_until) <= now

    def drop_gone(self) -> None:
        """Drop requests at the front whose callers no longer wait."""
        while self.waiting and self.waiting[0][2].done():
            heapq.heappop(self.waiting)


class _Lines:
    """Lines by name; idle lines are forgotten, and the least recently used one of too
    many."""

    def __init__(
        self,
        interval: float,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]],
        most: int,
    ) -> None:
        self._interval = interval
        self._clock = clock
        self._sleep = sleep
        self._most = most
        self.known: OrderedDict[str, _Line] = OrderedDict()
        self._numbers = count()

    def use(self, name: str) -> _Line:
        line = self.known.setdefault(name, _Line())
        self.known.move_to_end(name)
        self._forget_idle(self._clock.monotonic())
        return line

    async def wait(self, name: str, patience: float) -> None:
        """Take the next turn that no more urgent request wants."""
        line, now = self.use(name), self._clock.monotonic()
        if not line.waiting and line.next_start <= now:
            line.next_start = now + self._interval
            return
        if not line.waiting:
            line.next_due = line.next_start
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(line.waiting, (now + patience, next(self._numbers), turn))
        if line.serving is None:
            line.serving = asyncio.create_task(self._serve(line))
        await turn

    def count(self, name: str) -> None:
        line = self.use(name)
        soonest = self._clock.monotonic() + self._interval
        if line.waiting:
            soonest = min(soonest, line.next_due + MOST_PUT_OFF * self._interval)
        line.next_start = max(line.next_start, soonest)

    async def _serve(self, line: _Line) -> None:
        """Give turns until no request waits."""
        try:
            while line.waiting:
                start = line.next_start
                await self._sleep(max(0.0, start - self._clock.monotonic()))
                line.drop_gone()
                if line.waiting and line.next_start == start:  # or a redirect came
                    now = self._clock.monotonic()
                    line.next_start = max(start, now) + self._interval
                    line.next_due = line.next_start
                    heapq.heappop(line.waiting)[2].set_result(None)
        finally:
            line.serving = None

    def _forget_idle(self, now: float) -> None:
        while len(self.known) > 1:
            oldest = next(iter(self.known.values()))
            if len(self.known) <= self._most and not oldest.is_idle(now):
                return
            self.known.popitem(last=False)


class HostLimiter:
    """Starts requests to one host `INTERVAL` seconds apart, whatever makes them.

    Requests that strangers cause are limited by zone as well
    (`protocols.domains.zone_of`). Hosts that ``is_exempt`` names, and "", wait for
    nothing. ``sleep`` takes seconds.
    """

    def __init__(
        self,
        clock: Clock,
        is_exempt: Callable[[str], bool] = lambda host: False,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        most_hosts: int = MOST_HOSTS,
    ) -> None:
        self._clock = clock
        self._is_exempt = is_exempt
        self._sleep = sleep
        self._hosts = _Lines(INTERVAL, clock, sleep, most_hosts)
        self._zones = _Lines(ZONE_INTERVAL, clock, sleep, most_hosts)
        self._waiting: Counter[tuple[RequestKind, str]] = Counter()

    def is_exempt(self, host: str) -> bool:
        return not host or self._is_exempt(host)

    def is_waited_for(self, host: str, kind: RequestKind) -> bool:
        """Whether a request of that kind waits for the host's next turn."""
        return bool(self._waiting) and (kind, host) in self._waiting

    async def wait(
        self, host: str, kind: RequestKind, *, longest_hold: float = math.inf
    ) -> bool:
        """Wait until one request to the host may start; the caller must start it then.

        False if none may, because the host wants no request for longer than
        ``longest_hold`` seconds. A request that is abandoned later has still used its
        turn.
        """
        if self.is_exempt(host):
            return True
        self._waiting[kind, host] += 1
        try:
            while True:
                if held := self._held_for(kind, host):
                    if held > longest_hold:
                        return False
                    await self._sleep(held)
                if kind in _BY_STRANGERS:
                    await self._zones.wait(zone_of(host), 0.0)
                await self._hosts.wait(host, PATIENCE.get(kind, 0.0))
                if not self._held_for(kind, host):  # nor since it waits
                    return True
        finally:
            self._waiting[kind, host] -= 1
            if not self._waiting[kind, host]:
                del self._waiting[kind, host]

    def count(self, host: str) -> None:
        """Count a request that starts now and cannot wait, because it follows a
        redirect. The next other request starts an interval later."""
        if not self.is_exempt(host):
            self._hosts.count(host)

    def hold(self, host: str, seconds: float) -> None:
        """The host wants no request for so many seconds: its Retry-After (429, 503).

        An earlier, longer hold is never shortened. The hold also applies to requests
        that already wait for a turn.
        """
        line = self._hosts.use(host)
        line.held_until = max(line.held_until, self._clock.monotonic() + seconds)

    def _held_for(self, kind: RequestKind, host: str) -> float:
        return self.held(host) if kind in _PATIENT_WITH_HOST else 0.0

    def held(self, host: str) -> float:
        """Seconds for which the host wants no request."""
        line = self._hosts.known.get(host)
        return max(0.0, line.held_until - self._clock.monotonic()) if line else 0.0


class HostQuota:
    """Bounds on how much may be under way for one host, and for all hosts of one
    zone."""

    def __init__(self, *, of_host: int, of_zone: int) -> None:
        self._of_host = of_host
        self._of_zone = of_zone
        self._hosts: Counter[str] = Counter()
        self._zones: Counter[str] = Counter()

    def is_full(self, host: str) -> bool:
        """Whether no more should be begun for the host."""
        is_zone_full = self._zones[zone_of(host)] >= self._of_zone
        return is_zone_full or self._hosts[host] >= self._of_host

    @contextmanager
    def enter(self, host: str) -> Iterator[None]:
        """Counts something as under way for the host within the block, even above the
        bounds."""
        zone = zone_of(host)
        self._hosts[host] += 1
        self._zones[zone] += 1
        try:
            yield
        finally:
            self._hosts[host] -= 1
            self._zones[zone] -= 1
            self._hosts += Counter()  # drops those at zero
            self._zones += Counter()
