"""When a host may be asked again: at most one request a second, and none while it
has asked for patience.

Not a queue: the caller reserves a time and waits for it. What is exempt from pacing is
the caller's knowledge; it does not ask. All times are monotonic seconds, given.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(slots=True)
class _Pace:
    next_free: float = 0.0  # if requests had come evenly, the next would start here
    held_until: float = 0.0

    def is_idle(self, now: float) -> bool:
        return self.next_free <= now and self.held_until <= now


class HostLimiter:
    """Paces requests per host.

    Requests of one host start ``interval`` seconds apart. Pings may run ahead: up to
    ``burst`` of them start at once before they are paced like the rest, and what they
    took is missing to later requests. Hosts that are idle are forgotten, and the least
    recently used of more than ``most_hosts`` as well.
    """

    def __init__(
        self, *, interval: float = 1.0, burst: int = 10, most_hosts: int = 100_000
    ) -> None:
        self._interval = interval
        self._head_start = interval * (burst - 1)
        self._most_hosts = most_hosts
        self._paces: OrderedDict[str, _Pace] = OrderedDict()

    def __len__(self) -> int:
        return len(self._paces)

    def reserve(self, host: str, now: float, *, is_ping: bool = False) -> float:
        """Take the host's next place; returns when the request may start (>= now).

        A `hold` that comes later is not in this: see `held_until` before starting.
        """
        pace = self._use(host, now)
        earliest = pace.next_free - (self._head_start if is_ping else 0.0)
        start = max(now, earliest, pace.held_until)
        pace.next_free = max(start, pace.next_free) + self._interval
        return start

    def hold(self, host: str, until: float, now: float) -> None:
        """No request to this host before ``until``: its Retry-After (429, 503).

        Never shortens what the host has asked for before.
        """
        pace = self._use(host, now)
        pace.held_until = max(pace.held_until, until)

    def held_until(self, host: str) -> float:
        """The end of the host's hold, maybe past; 0 when there was none."""
        pace = self._paces.get(host)
        return pace.held_until if pace else 0.0

    def _use(self, host: str, now: float) -> _Pace:
        pace = self._paces.setdefault(host, _Pace())
        self._paces.move_to_end(host)
        self._forget_idle(now)
        return pace

    def _forget_idle(self, now: float) -> None:
        while len(self._paces) > 1:
            oldest = next(iter(self._paces.values()))
            if len(self._paces) <= self._most_hosts and not oldest.is_idle(now):
                return
            self._paces.popitem(last=False)
