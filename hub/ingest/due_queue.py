"""Due feeds in memory: bounded, in a line for each host, handed out in turns.

A host gets one request at a time, and many due feeds of one host never hold up those of
others. Hosts that are exempt from pacing are not told apart. Times are monotonic
seconds.

Feeds that their host has no time for are each deferred to a later time (`Deferrals`):
the feeds of a host with a thousand due feeds are spread out once, instead of all coming
back together.
"""

from __future__ import annotations

import heapq
from collections import deque
from datetime import datetime, timedelta

from msgspec import Struct

from storage.records import FeedId, Pace

MOST_HOSTS = 10_000


class Deferrals:
    """The last time given out in each line (pace) of a crowded host. All lines of a
    host together get one time every ``interval`` seconds."""

    def __init__(self, interval: float) -> None:
        self._interval = timedelta(seconds=interval)
        self._last: dict[str, dict[Pace, datetime]] = {}
        self._now: datetime | None = None  # the clock's time at the last call

    def __len__(self) -> int:
        return len(self._last)

    def next_time(
        self, host: str, pace: Pace, not_before: datetime, now: datetime
    ) -> datetime:
        """A later time that no other deferred feed of the same host and pace has."""
        if self._now is not None and now < self._now:
            self._last.clear()  # the clock was set back: these times are too far off
        self._now = now
        known = self._last.pop(host, {})
        lines = {each: last for each, last in known.items() if last > now}
        last = max(lines.get(pace, now), not_before)
        sharing = len(lines.keys() | {pace})
        lines[pace] = last + sharing * self._interval
        if len(self._last) >= MOST_HOSTS:
            self._forget(now)
        self._last[host] = lines
        return lines[pace]

    def _forget(self, now: datetime) -> None:
        """Drop hosts whose times have passed; if none has, the host longest unused."""
        self._last = {
            host: lines
            for host, lines in self._last.items()
            if max(lines.values()) > now
        }
        if len(self._last) >= MOST_HOSTS:
            del self._last[next(iter(self._last))]


class Due(Struct, frozen=True):
    """A feed that is due. ``host`` is "" if its requests are not paced; ``pace`` is 0
    for a feed that somebody asked for."""

    feed_id: FeedId
    host: str
    pace: Pace = 0


class DueQueue:
    """Holds up to ``capacity`` due feeds, at most ``per_host`` of one host."""

    def __init__(self, *, capacity: int, per_host: int) -> None:
        self._capacity = capacity
        self._per_host = per_host
        self._feeds: dict[FeedId, Due] = {}
        self._unpaced: deque[Due] = deque()
        self._queues: dict[str, deque[Due]] = {}
        self._ready: deque[str] = deque()
        self._lined_up: set[str] = set()  # hosts that are ready or waiting
        self._waiting: list[tuple[float, str]] = []
        self._taken: set[str] = set()

    def __len__(self) -> int:
        return len(self._feeds)

    def __contains__(self, feed_id: FeedId) -> bool:
        return feed_id in self._feeds

    @property
    def room(self) -> int:
        return max(0, self._capacity - len(self._feeds))

    def add(self, due: Due) -> Due | None:
        """Queue a feed behind the others of its host.

        If the host already has ``per_host`` feeds, the slowest of them and the new one
        is returned and is no longer queued: the new feed, unless it is faster.
        """
        displaced = self._displaced(due)
        if displaced is not due:
            self._line(due.host).append(due)
            self._feeds[due.feed_id] = due
        if displaced is not None:
            self._feeds.pop(displaced.feed_id, None)
        return displaced

    def _displaced(self, due: Due) -> Due | None:
        queue = self._queues.get(due.host, ())
        if not due.host or len(queue) < self._per_host:
            return None
        slowest = max(queue, key=lambda each: each.pace)
        if slowest.pace <= due.pace:
            return due
        self._queues[due.host].remove(slowest)
        return slowest

    def add_first(self, due: Due) -> None:
        """Queue a feed, or move it, before all others, even if there is no room."""
        known = self._feeds.get(due.feed_id)
        if known is not None:
            self._remove(known)
        due = Due(due.feed_id, due.host)
        self._line(due.host).appendleft(due)
        self._feeds[due.feed_id] = due
        if due.host in self._ready:
            self._ready.remove(due.host)
            self._ready.appendleft(due.host)

    def _remove(self, due: Due) -> None:
        line = self._line(due.host)
        line.remove(due)
        if due.host and not line:
            del self._queues[due.host]

    def take(self, now: float, limit: int) -> list[Due]:
        """Up to ``limit`` feeds to visit now, hosts in turn; one for each host until
        `release`."""
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.append(heapq.heappop(self._waiting)[1])
        taken: list[Due] = []
        while len(taken) < limit and (self._ready or self._unpaced):
            if self._unpaced:
                taken.append(self._unpaced.popleft())
            if self._ready and len(taken) < limit:
                taken.extend(self._take_from(self._ready.popleft()))
        for due in taken:
            del self._feeds[due.feed_id]
        return taken

    def release(self, host: str, ready_at: float) -> bool:
        """Note that the visit to a taken feed is over; its host is free from
        ``ready_at`` on.

        True if another feed of the host waits for that.
        """
        self._taken.discard(host)
        if self._queues.get(host):
            heapq.heappush(self._waiting, (ready_at, host))
            self._lined_up.add(host)
            return True
        self._queues.pop(host, None)
        return False

    def withdraw(self, host: str) -> list[Due]:
        """Remove and return all queued feeds of a host that will not be ready soon."""
        withdrawn = list(self._queues.pop(host, ()))
        for due in withdrawn:
            del self._feeds[due.feed_id]
        return withdrawn

    def next_ready(self) -> float | None:
        """When `take` will return a feed (0.0: now); None if no feed waits for a
        time."""
        if self._ready or self._unpaced:
            return 0.0
        return self._waiting[0][0] if self._waiting else None

    def _line(self, host: str) -> deque[Due]:
        if not host:
            return self._unpaced
        if host not in self._queues:
            self._queues[host] = deque()
            if host not in self._taken and host not in self._lined_up:
                self._ready.append(host)
                self._lined_up.add(host)
        return self._queues[host]

    def _take_from(self, host: str) -> list[Due]:
        """The host's next feed; an empty list if its feeds were withdrawn meanwhile."""
        self._lined_up.discard(host)
        if not self._queues.get(host):
            return []
        self._taken.add(host)
        return [self._queues[host].popleft()]
