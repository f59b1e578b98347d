"""What a callback answered to a notification, and what that means."""

from __future__ import annotations

from enum import StrEnum

import msgspec

STRAINED_STATUSES = frozenset({0, 429, 502, 503, 504})
"""Answers that speak of the whole origin; 0: none. A 404 or 500 is one callback's."""


class Verdict(StrEnum):
    DELIVERED = "delivered"
    GONE = "gone"  # the subscription ends
    FAILED = "failed"


def verdict(status: int) -> Verdict:
    """WebSub 7: a 2xx "indicates successful delivery"; 410 may end the subscription.

    All else is a failure, redirects (which are not followed) included.
    """
    if 200 <= status <= 299:
        return Verdict.DELIVERED
    return Verdict.GONE if status == 410 else Verdict.FAILED


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request. ``status`` 0: no answer, then ``error`` says why."""

    status: int
    milliseconds: int
    error: str = ""  # for people; "" after a 2xx
    retry_after: float | None = None  # seconds, of a 429 or 503

    @property
    def verdict(self) -> Verdict:
        return verdict(self.status)
