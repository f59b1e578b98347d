"""Where due feeds go that their host has no time for: to a later time of their own.

A host with a thousand due feeds gets them spread out behind each other once, instead
of all of them coming back together. Feeds of each pace have a line of their own, and
the lines share the host's time: a feed that is asked every minute does not wait behind
a hundred thousand that are asked once a day.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from storage.records import Pace

MOST_HOSTS = 10_000


class Deferrals:
    """The last time given out in each line of a crowded host; all lines of a host
    together have one time every ``interval`` seconds."""

    def __init__(self, interval: float) -> None:
        self._interval = timedelta(seconds=interval)
        self._last: dict[str, dict[Pace, datetime]] = {}
        self._now: datetime | None = None  # at the last call

    def __len__(self) -> int:
        return len(self._last)

    def next_time(
        self, host: str, pace: Pace, not_before: datetime, now: datetime
    ) -> datetime:
        """A time that no other deferred feed of the host and pace has."""
        if self._now is not None and now < self._now:
            self._last.clear()  # the clock went back: times given out lie too far ahead
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
        """Drop hosts whose times have passed, or else the one longest unused."""
        self._last = {
            host: lines
            for host, lines in self._last.items()
            if max(lines.values()) > now
        }
        if len(self._last) >= MOST_HOSTS:
            del self._last[next(iter(self._last))]
