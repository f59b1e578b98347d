"""Polls one feed by one policy over its test span."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hub.simulation.traces import Span, Trace, held_out_span


class Planning(Protocol):
    """Plans the polls of one feed, starting from its posts before the test."""

    def next_wait(self, now: float, posted: Sequence[float]) -> float:
        """Return the seconds to the next poll. The poll at ``now`` found ``posted``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How many polls there were, and after what delays in seconds they found the posts.

    ``lost`` posts had left the document before a poll; ``early`` polls came before the
    server's max-age was over, or within its skipHours.
    """

    delays: tuple[float, ...]
    polls: int
    days: float
    lost: int = 0
    early: int = 0


def run_policy(trace: Trace, planning: Planning) -> Outcome:
    """Poll from the start of the test span to its end; the first poll is not counted.

    Posts after the last poll count as found by the poll that would come next.
    """
    span, posts = held_out_span(trace), trace.posts
    delays: list[float] = []
    polls = lost = early = 0
    found, now = bisect_right(posts, span.start), span.start
    posted: Sequence[float] = ()
    while found < len(posts):
        wait = planning.next_wait(now, posted)
        now += wait
        if now <= span.end:
            polls += 1
            early += _is_early(trace, wait, now)
        seen = bisect_right(posts, now)
        posted = posts[found:seen]
        shown = posted[-trace.window :] if trace.window else posted
        lost += len(posted) - len(shown)
        delays += [now - post for post in shown]
        posted, found = shown, seen
    return Outcome(
        delays=tuple(delays), polls=polls, days=span.days, lost=lost, early=early
    )


def _is_early(trace: Trace, wait: float, now: float) -> bool:
    return wait < trace.max_age or int(now // 3_600) % 24 in trace.skip_hours


def history(trace: Trace, span: Span) -> Sequence[float]:
    """Return the posts before the test."""
    return trace.posts[: bisect_right(trace.posts, span.start)]
