"""Runs of polls that are alike, as a list of polls shows them in one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from storage.records import Poll

LEAST_ALIKE = 3
"""Polls in a row that are alike, from which on they are one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollRun:
    """One poll, or several in a row that were made for the same reason outside the
    schedule and came to the same, but to no entries; the latest first."""

    polls: tuple[Poll, ...]
    asked_by: str = ""

    @property
    def latest(self) -> Poll:
        return self.polls[0]

    @property
    def earliest(self) -> Poll:
        return self.polls[-1]

    @property
    def longest(self) -> int:
        """Milliseconds of the poll that took the longest."""
        return max(each.milliseconds for each in self.polls)


def runs_of(polls: Sequence[tuple[Poll, str]]) -> Iterator[PollRun]:
    """The polls, the latest first, in runs. Each comes with who asked for it, "" if
    that is not known."""
    for (_, asked_by), group in groupby(polls, _likeness):
        alike = tuple(poll for poll, _ in group)
        first = alike[0]
        is_idle = not (first.entries or first.reason.is_by_schedule)
        is_run = is_idle and len(alike) >= LEAST_ALIKE
        for each in (alike,) if is_run else ((poll,) for poll in alike):
            yield PollRun(polls=each, asked_by=asked_by)


def _likeness(each: tuple[Poll, str]) -> tuple[object, str]:
    poll, asked_by = each
    return (poll.reason, poll.outcome, poll.code, bool(poll.entries)), asked_by
