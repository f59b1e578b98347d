"""How many polls may begin now, where the budget is so many a second.

The price keeps what is spent at the budget in the mean, over days; a hub that comes
back after a while finds everything overdue, whatever the price. So polls are taken from
a bucket that begins all but empty: it fills by a tenth more than the budget, for as
long as the price holds the mean it is mostly full, and what was saved in quiet hours
serves the busy ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from hub.core.budget import Budget
from protocols.quick import quick_init

HEADROOM = 1.1
"""Times the budget: what may be spent where all that could be saved is used up. Were it
1, less than the budget would be spent in the mean, and the price sink for ever."""
SAVED = 4 * 3_600.0
"""Seconds for which polls not taken are saved; a day's rhythm moves that many."""
AT_FIRST = 10.0
"""Seconds' worth of polls that a start begins with."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Polls that may begin at once, as of a time in monotonic seconds."""

    polls: float
    at: float


def first_allowance(budget: Budget, now: float) -> Allowance:
    return Allowance(polls=max(1.0, AT_FIRST * budget.polls_per_second), at=now)


def refilled(allowance: Allowance, budget: Budget, now: float) -> Allowance:
    """What it has come to by now."""
    rate = budget.polls_per_second
    more = HEADROOM * rate * max(0.0, now - allowance.at)
    return Allowance(polls=min(allowance.polls + more, max(1.0, SAVED * rate)), at=now)


def seconds_until_one(allowance: Allowance, budget: Budget) -> float:
    """How long until a whole poll is in it; 0 if one is."""
    missing = 1.0 - allowance.polls
    return max(0.0, missing / (HEADROOM * budget.polls_per_second))
