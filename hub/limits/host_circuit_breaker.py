"""Hosts that do not answer at all, and how long all of their feeds wait.

Each feed backs off by itself; but each of a thousand feeds on one dead host would find
out for itself, again and again. So a host that did not answer several requests in a row
is asked by one feed at a time, ever less often, until it answers. Any answer counts,
even an error.
"""

from __future__ import annotations

from typing import NamedTuple

from hub.runtime.caching import BoundedDict

OPENS_AFTER = 5
"""Requests in a row without an answer, counted over all feeds of the host."""
FIRST_REST = 300.0
LONGEST_REST = 6 * 3_600.0
_MOST_DOUBLINGS = 20
MOST_HOSTS = 10_000


class _Silent(NamedTuple):
    silences: int  # requests to the host since its last answer
    until: float


class HostCircuitBreaker:
    """Remembers hosts from their first missing answer until they answer. Of too many,
    those without an answer for the longest are forgotten. Times are monotonic seconds,
    given by the caller."""

    def __init__(self, most_hosts: int = MOST_HOSTS) -> None:
        self._silent: BoundedDict[str, _Silent] = BoundedDict(most_hosts)

    def __len__(self) -> int:
        return len(self._silent)

    def answered(self, host: str) -> None:
        self._silent.pop(host, None)

    def silent(self, host: str, now: float) -> float:
        """Count a request without an answer; returns the seconds for which the host is
        now left alone, 0 if it is not yet."""
        known = self._silent.get(host)
        silences = known.silences + 1 if known else 1
        rest = _rest_after(silences)
        self._silent[host] = _Silent(silences, now + rest)
        return rest

    def rest(self, host: str, now: float) -> float:
        """Seconds for which the host is still left alone."""
        known = self._silent.get(host)
        return max(0.0, known.until - now) if known else 0.0


def _rest_after(silences: int) -> float:
    """Seconds until the next request to a host; 0: its feeds' own times decide."""
    beyond = silences - OPENS_AFTER
    if beyond < 0:
        return 0.0
    return min(FIRST_REST * 2.0 ** min(beyond, _MOST_DOUBLINGS), LONGEST_REST)
