"""Polls: the outcome of each of a feed's last polls, and why it was made.

The members of both enumerations are stored by their number: add new ones at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

KEPT_POLLS = 64
"""Polls kept of each feed, however old they are."""
KEPT_FOR = timedelta(hours=24)
"""Polls of so long before the last one are kept besides."""
MOST_POLLS = 1_440
"""Polls kept of a feed at most."""


class PollOutcome(StrEnum):
    """What a poll found; ``entries`` of a `Poll` says how many."""

    FIRST = "first"  # the first document: its entries are news to nobody
    NEW = "new"  # entries that nobody had seen
    CHANGED = "changed"  # entries that were updated or deleted, or other content
    UNCHANGED = "unchanged"
    FAILED = "failed"  # no answer, or an answer that is an error
    UNREADABLE = "unreadable"  # an answer that is not the feed

    @property
    def is_failure(self) -> bool:
        return self in (PollOutcome.FAILED, PollOutcome.UNREADABLE)


class PollReason(StrEnum):
    """Why a poll was made at that moment and at no other."""

    FIRST_FETCH = "first_fetch"
    PLANNED = "planned"
    SETTLING_IN = "settling_in"  # a new feed, polled soon to learn of its server
    HELD_BACK = "held_back"  # planned, but its server or document asked for later
    BACKUP = "backup"  # planned, rarely: its hub pushes what is new
    RETRY_AFTER_FAILURE = "retry_after_failure"
    CONTINUED = "continued"  # a site that takes more than one visit
    ASKED_FOR = "asked_for"  # by hand, or for somebody who subscribes
    PINGED = "pinged"  # its publisher said that there is news
    WOKEN_BY_PUSH = "woken_by_push"  # its hub said that there is news
    PUSHED = "pushed"  # its hub brought the content, and its server was not asked
    PUBLISHED = "published"  # its publisher brought the content
    BY_PLAN = "by_plan"  # asked for with others, by a plan

    @property
    def is_by_schedule(self) -> bool:
        return self in _BY_SCHEDULE


_BY_SCHEDULE = frozenset(
    {
        PollReason.PLANNED,
        PollReason.SETTLING_IN,
        PollReason.HELD_BACK,
        PollReason.BACKUP,
        PollReason.RETRY_AFTER_FAILURE,
        PollReason.CONTINUED,
    }
)


class Poll(msgspec.Struct, frozen=True, kw_only=True):
    """One poll in a feed's history.

    ``code`` is the HTTP status, 0 without an answer. For a site, a whole visit is one
    poll, and ``milliseconds`` covers all of it.
    """

    at: datetime  # when its answer was complete
    reason: PollReason
    outcome: PollOutcome
    code: int
    milliseconds: int
    entries: int = 0


def kept_polls(polls: Sequence[Poll]) -> list[Poll]:
    """Those of a feed's polls, the latest first, that are kept."""
    if not polls:
        return []
    begins = polls[0].at - KEPT_FOR
    return [
        each
        for number, each in enumerate(polls[:MOST_POLLS])
        if number < KEPT_POLLS or each.at >= begins
    ]
