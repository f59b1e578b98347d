"""Where due feeds go that their host has no time for: to a later time of their own.

A host with a thousand due feeds gets them spread out behind each other once, instead
of all of them coming back together.
"""

from __future__ import annotations

from datetime import datetime, timedelta

MOST_HOSTS = 10_000


class Deferrals:
    """The last time given out for each crowded host, ``interval`` seconds apart."""

    def __init__(self, interval: float) -> None:
        self._interval = timedelta(seconds=interval)
        self._last: dict[str, datetime] = {}

    def __len__(self) -> int:
        return len(self._last)

    def next_time(self, host: str, not_before: datetime, now: datetime) -> datetime:
        """A time that no other deferred feed of the host has."""
        last = self._last.pop(host, now)
        given = max(last, not_before) + self._interval
        if len(self._last) >= MOST_HOSTS:
            self._forget(now)
        self._last[host] = given
        return given

    def _forget(self, now: datetime) -> None:
        """Drop hosts whose times have passed, or else the one longest unused."""
        self._last = {host: last for host, last in self._last.items() if last > now}
        if len(self._last) >= MOST_HOSTS:
            del self._last[next(iter(self._last))]
