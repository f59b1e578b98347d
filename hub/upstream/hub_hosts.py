"""When a hub of others may be asked: at most once a second, and one that fails less
and less often, however many feeds name it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from hub.net import Network, Purpose

INTERVAL = 1.0
LONGEST_WAIT = 2.0
"""Seconds that somebody may wait for a turn; who would for longer is put off."""
FIRST_PAUSE = 60.0
LONGEST_PAUSE = 6 * 3_600.0
MOST_HOSTS = 10_000


@dataclass(frozen=True, slots=True)
class Turn:
    """``is_taken``: the host is the caller's then. Otherwise that is when to ask for a
    turn again, and nobody else is told the same time."""

    at: float
    is_taken: bool


@dataclass(slots=True)
class _Host:
    next_free: float = 0.0
    next_again: float = 0.0
    failures: int = 0
    until: float = 0.0  # of its trouble

    def is_idle(self, now: float) -> bool:
        return max(self.next_free, self.next_again, self.until) <= now


class HubHosts:
    """All times are monotonic seconds, given. Exempt hosts are not paced."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._hosts: dict[str, _Host] = {}

    def turn(self, hub: str, now: float) -> Turn:
        """Whoever is put off takes no place, and so is in nobody's way."""
        name = urlsplit(hub).hostname or ""
        host = self._use(name, now)
        is_exempt = self._network.is_exempt(name, Purpose.CALLBACK)
        interval = 0.0 if is_exempt else INTERVAL
        start = max(now, host.next_free, host.until)
        if start - now <= LONGEST_WAIT:
            host.next_free = start + interval
            return Turn(start, is_taken=True)
        again = max(start, host.next_again)
        host.next_again = again + INTERVAL
        return Turn(again, is_taken=False)

    def answered(self, hub: str, now: float) -> None:
        """Whatever it said of one feed, it is there."""
        host = self._use(urlsplit(hub).hostname or "", now)
        host.failures, host.until, host.next_again = 0, 0.0, 0.0

    def failed(self, hub: str, now: float, patience: float = 0.0) -> None:
        """No answer, or one that says the hub is in trouble, or wants patience."""
        host = self._use(urlsplit(hub).hostname or "", now)
        host.failures += 1
        pause = min(FIRST_PAUSE * 2 ** min(host.failures - 1, 20), LONGEST_PAUSE)
        host.until = now + max(pause, min(patience, LONGEST_PAUSE))

    def _use(self, name: str, now: float) -> _Host:
        host = self._hosts.pop(name, None) or _Host()
        if len(self._hosts) >= MOST_HOSTS:
            self._forget(now)
        self._hosts[name] = host
        return host

    def _forget(self, now: float) -> None:
        """Those that are idle, or else the one longest unused."""
        self._hosts = {
            name: host for name, host in self._hosts.items() if not host.is_idle(now)
        }
        if len(self._hosts) >= MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
