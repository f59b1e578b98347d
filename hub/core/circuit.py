"""Hosts that do not answer at all: how long all of their feeds are left alone.

Each feed backs off by itself; but of a thousand feeds on one host that is gone, each
would find that out for itself, again and again. So a host that was silent to several
requests in a row is asked by one feed at a time, ever less often, until it answers.
Any answer is one, an error too.
"""

from __future__ import annotations

from dataclasses import dataclass

OPENS_AFTER = 5
"""Requests in a row without an answer, by whichever feeds of the host."""
FIRST_REST = 300.0
LONGEST_REST = 6 * 3_600.0
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class Circuit:
    """``silences``: requests to the host since its last answer."""

    silences: int = 0

    def after_silence(self) -> Circuit:
        return Circuit(self.silences + 1)

    @property
    def rest(self) -> float:
        """Seconds until the next request to the host; 0: by its feeds' own times."""
        beyond = self.silences - OPENS_AFTER
        if beyond < 0:
            return 0.0
        return min(FIRST_REST * 2.0 ** min(beyond, _MOST_DOUBLINGS), LONGEST_REST)
