"""When another hub may be asked, however many feeds name it.

At most once a second, and a failing hub less and less often. Pure: the caller gives the
time, in monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from protocols.urls import host_name

INTERVAL = 1.0
LONGEST_WAIT = 2.0
"""Seconds that a request may wait for a turn; one that would wait longer is
postponed."""
FIRST_PAUSE = 60.0
LONGEST_PAUSE = 6 * 3_600.0
MOST_PACES = 20_000


@dataclass(frozen=True, slots=True)
class Turn:
    """``is_taken``: the caller may ask the host at that time. Otherwise that is when it
    should ask for a turn again; no other caller is given the same time."""

    at: float
    is_taken: bool


@dataclass(slots=True)
class _Pace:
    """The pace of a host, or of one of its servers."""

    next_free: float = 0.0
    next_again: float = 0.0
    failures: int = 0
    until: float = 0.0  # of its failure

    def is_idle(self, now: float) -> bool:
        return max(self.next_free, self.next_again, self.until) <= now


class HubLimiter:
    """Gives turns at the hosts of hubs; hosts that ``is_exempt`` names are not paced.

    A failure counts for one server only: one scheme and port of a host.
    """

    def __init__(self, is_exempt: Callable[[str], bool]) -> None:
        self._is_exempt = is_exempt
        self._paces: dict[str, _Pace] = {}

    def turn(self, hub: str, now: float) -> Turn:
        """The next turn, if it is soon; else when to ask again, which takes no turn."""
        name = host_name(hub)
        host, server = self._use(name, now), self._server(hub, now)
        interval = 0.0 if self._is_exempt(name) else INTERVAL
        start = max(now, host.next_free, server.until)
        if start - now <= LONGEST_WAIT:
            host.next_free = start + interval
            return Turn(start, is_taken=True)
        again = max(start, server.next_again)
        server.next_again = again + INTERVAL
        return Turn(again, is_taken=False)

    def is_failing(self, hub: str, now: float) -> bool:
        return self._server(hub, now).until > now

    def answered(self, hub: str, now: float) -> None:
        """The hub answered, whatever it said of one feed: its failure is over."""
        server = self._server(hub, now)
        server.failures, server.until, server.next_again = 0, 0.0, 0.0

    def failed(self, hub: str, now: float, patience: float = 0.0) -> None:
        """The hub did not answer, or answered that it fails, or asked for patience."""
        server = self._server(hub, now)
        server.failures += 1
        pause = min(FIRST_PAUSE * 2 ** min(server.failures - 1, 20), LONGEST_PAUSE)
        server.until = now + max(pause, min(patience, LONGEST_PAUSE))

    def _server(self, hub: str, now: float) -> _Pace:
        parts = urlsplit(hub)
        return self._use(f"{parts.scheme}://{parts.netloc}", now)

    def _use(self, name: str, now: float) -> _Pace:
        pace = self._paces.pop(name, None) or _Pace()
        if len(self._paces) >= MOST_PACES:
            self._forget(now)
        self._paces[name] = pace
        return pace

    def _forget(self, now: float) -> None:
        """Forget the hosts that are idle, or else the one longest unused."""
        self._paces = {
            name: pace for name, pace in self._paces.items() if not pace.is_idle(now)
        }
        if len(self._paces) >= MOST_PACES:
            del self._paces[next(iter(self._paces))]
