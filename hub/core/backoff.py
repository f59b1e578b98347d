"""How long a feed in trouble is left alone, by what its server answered."""

from __future__ import annotations

import msgspec

FIRST_REFUSED = 6 * 3_600.0
FIRST_MISSING = 3_600.0
FIRST_FAILED = 300.0
LONGEST = 86_400.0

_MOST_DOUBLINGS = 20  # beyond every limit, and short of an overflow


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. The wait is drawn between both; equal, there is only ±5 % of jitter."""

    shortest: float
    longest: float
    why: str


def backoff(code: int, failures: int, period: float) -> Backoff:
    """The wait after so many failures in a row, the last with this status.

    ``period`` is what it would be without trouble. 0 is no answer at all.
    """
    doublings = min(failures - 1, _MOST_DOUBLINGS)
    if code == 429:
        # "429: max(Retry-After, 2x interval)"; Retry-After is a floor elsewhere.
        wait = max(FIRST_MISSING, min(period, LONGEST) * 2 ** (doublings + 1))
        return _exactly(wait, "too many requests: twice the interval, doubling")
    if code in (401, 403, 451):
        return _exactly(FIRST_REFUSED * 2**doublings, "refused: 6 h, doubling to 24 h")
    if code == 0 or code >= 500:
        longest = min(FIRST_FAILED * 2 ** (doublings + 1), LONGEST)
        why = "no usable answer: from 5 min, at most doubling each time to 24 h"
        return Backoff(shortest=FIRST_FAILED, longest=longest, why=why)
    return _exactly(
        FIRST_MISSING * 2**doublings, "no feed there: 1 h, doubling to 24 h"
    )


def _exactly(wait: float, why: str) -> Backoff:
    wait = min(wait, LONGEST)
    return Backoff(shortest=wait, longest=wait, why=why)
