"""The price of a poll, steered so that polls stay within a budget.

With ``spent`` the polls of about the last half day and ``allowed`` what the budget had
for them, both forgotten exponentially,

    d ln θ / dt = k ln(spent / allowed)

Since polls are proportional to 1/√θ, this is an oscillator, damped almost critically
with the k and the memory used here; a daily rhythm, which should stay, moves it little.
(Olston and Widom, SIGMOD 2002, steer one threshold for all objects in this way.)
"""

from __future__ import annotations

from datetime import datetime
from math import exp, log

import msgspec

MEMORY = 43_200.0
"""Seconds over which polls are forgotten."""
GAIN = 2.0
"""k: how many e-folds a day the price moves when e times the budget is spent."""
LEAST_PRICE, MOST_PRICE = 0.1, 1e7
MOST_ERROR = 2.0
DOUBT = 10.0
"""Polls added to what was spent and to what was allowed: few polls say little."""
_DAY = 86_400.0


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Polls a second for all feeds; 0: so many a day for each feed, on average."""

    polls_per_second: float = 0.0
    polls_per_feed_day: float = 48.0


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """A price, and the polls it has led to lately, as of a moment."""

    price: float
    at: datetime
    spent: float = 0.0
    allowed: float = 0.0

    @property
    def share(self) -> float:
        """The part of the allowed polls that was spent lately: 1 is all of them."""
        return _share(self.spent, self.allowed)


def after_poll(
    spending: Spending, budget: Budget, gap: float, now: datetime
) -> Spending:
    """Count a poll that came ``gap`` seconds after the last one of its feed.

    The gaps of all polls add up to the time for which feeds were watched, so that no
    feeds need to be counted.
    """
    passed = max(0.0, (now - spending.at).total_seconds())
    kept = exp(-passed / MEMORY)
    if budget.polls_per_second:
        allowed = budget.polls_per_second * MEMORY * (1 - kept)
    else:
        allowed = gap / _DAY * budget.polls_per_feed_day
    spent = spending.spent * kept + 1.0
    allowed += spending.allowed * kept
    error = min(max(log(_share(spent, allowed)), -MOST_ERROR), MOST_ERROR)
    price = spending.price * exp(GAIN * error * min(passed, MEMORY) / _DAY)
    price = min(max(price, LEAST_PRICE), MOST_PRICE)
    return Spending(price=price, at=now, spent=spent, allowed=allowed)


def _share(spent: float, allowed: float) -> float:
    return (spent + DOUBT) / (allowed + DOUBT)
