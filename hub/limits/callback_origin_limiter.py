"""How many requests each callback origin gets at once, by its health.

A healthy origin starts with 8 at once and earns one more with every round of answers,
up to 64. A failure halves that. After 5 failures in a row the origin is on the slow
lane: one probe at a time, with growing pauses, and few probes over all such origins
together. One good answer ends it. Exempt hosts have no caps.

Nothing here waits: a refused request is tried later. Times are monotonic seconds.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from protocols.urls import host_name

FIRST_LIMIT = 8.0
HIGHEST_LIMIT = 64.0
FAILURES_TO_SLOW_LANE = 5
LONGEST_PROBE_PAUSE = 30.0
LONGEST_POSTPONEMENT = 60.0
LONGEST_ON_SLOW_LANE = 600.0
"""The longest postponement. Turns that would be later start over from the first: a
hundred thousand callbacks of an origin that is down must not all ask at once."""

TYPICAL_ANSWER = 0.1
"""Seconds one request is assumed to take when later ones are told when to come back."""


EXEMPTION_KEPT = 10.0
"""Seconds for which it is remembered whether a host is exempt: what its name resolves
to may change."""

_ORIGIN = re.compile(r"([^:/?#]+://)(?:[^/?#]*@)?([^/?#]*)")


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL; user information makes no difference."""
    found = _ORIGIN.match(url)
    return "".join(found.groups()).lower() if found else url


@dataclass(slots=True)
class _Origin:
    active: int = 0
    limit: float = FIRST_LIMIT
    failures: int = 0  # in a row
    halved_at: float = float("-inf")
    next_probe: float = 0.0
    reserved_until: float = 0.0  # who was refused last comes back then
    is_exempt: bool = False
    judged_at: float = float("-inf")  # when that was found out

    @property
    def is_on_slow_lane(self) -> bool:
        return self.failures >= FAILURES_TO_SLOW_LANE


class OriginLimiter:
    """The caps of all callback origins; forgets idle ones beyond ``capacity``."""

    def __init__(
        self,
        is_exempt: Callable[[str], bool],
        *,
        probes: int = 16,
        capacity: int = 10_000,
    ) -> None:
        self._is_exempt = is_exempt
        self._probes = probes
        self._probing: set[str] = set()
        self._capacity = capacity
        self._origins: OrderedDict[str, _Origin] = OrderedDict()

    def __len__(self) -> int:
        return len(self._origins)

    def enter(self, origin: str, now: float) -> bool:
        """Take a place for one request, if there is one; `leave` gives it back."""
        state = self._known(origin)
        if self._has_room(state, now):
            if state.is_on_slow_lane:
                self._probing.add(origin)
        elif not self._exempts(origin, state, now):
            return False
        state.active += 1
        return True

    def has_room(self, origin: str, now: float) -> bool:
        """Whether `enter` would find a place."""
        state = self._known(origin)
        return self._has_room(state, now) or self._exempts(origin, state, now)

    def leave(self, origin: str) -> None:
        state = self._origins[origin]
        state.active -= 1
        if not state.active:
            self._probing.discard(origin)

    def succeeded(self, origin: str) -> None:
        """The origin answered well, even if late: it has recovered, and grows."""
        state = self._known(origin)
        state.failures = 0
        state.limit = min(state.limit + 1 / state.limit, HIGHEST_LIMIT)

    def strained(self, origin: str, now: float) -> None:
        """Note that an origin did not answer within a second, or said that it has too
        much to do."""
        state = self._known(origin)
        if now - state.halved_at >= 1.0:
            state.halved_at = now
            state.limit = max(state.limit / 2, 1.0)
        state.failures += 1
        if state.is_on_slow_lane:
            doublings = min(state.failures - FAILURES_TO_SLOW_LANE, 10)
            state.next_probe = now + min(2.0**doublings, LONGEST_PROBE_PAUSE)

    def postponement(self, origin: str, now: float) -> float:
        """Seconds after which a refused request should ask again.

        Each request gets another time, as far apart as the origin's limit suggests, so
        that ten thousand callbacks of one origin do not all ask every second. On the
        slow lane the limit says nothing any more; a few hundred callbacks should find
        out within the minute that the origin is back.
        """
        state = self._known(origin)
        gap, longest = TYPICAL_ANSWER / state.limit, LONGEST_POSTPONEMENT
        if state.is_on_slow_lane:
            gap, longest = TYPICAL_ANSWER, LONGEST_ON_SLOW_LANE
        earliest = max(now + 1.0, state.next_probe)
        turn = max(state.reserved_until + gap, earliest)
        state.reserved_until = turn if turn <= now + longest else earliest
        return state.reserved_until - now

    def _has_room(self, state: _Origin, now: float) -> bool:
        if not state.is_on_slow_lane:
            return state.active < int(state.limit)
        if state.active or now < state.next_probe:
            return False
        return len(self._probing) < self._probes

    def _exempts(self, origin: str, state: _Origin, now: float) -> bool:
        if now - state.judged_at >= EXEMPTION_KEPT:
            state.is_exempt = self._is_exempt(host_name(origin))
            state.judged_at = now
        return state.is_exempt

    def _known(self, origin: str) -> _Origin:
        state = self._origins.get(origin)
        if state is None:
            if len(self._origins) >= self._capacity:
                self._forget_idle()
            state = self._origins[origin] = _Origin()
        else:
            self._origins.move_to_end(origin)
        return state

    def _forget_idle(self) -> None:
        for origin, state in self._origins.items():
            if not state.active:
                del self._origins[origin]
                return
