"""What all feeds have in common when planned: the price, and everybody's habits."""

from __future__ import annotations

from dataclasses import dataclass

from hub.core.habits import Prior, prior_of
from protocols.quick import quick_init

EVEN = prior_of(())
"""The habits of all feeds while none are known."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """``price`` is θ, the expected entry-seconds of waiting that a poll is worth.

    The same for all feeds at a moment; the hub steers it to its budget of polls.
    """

    price: float = 75.0  # one entry a day is polled hourly
    prior: Prior = EVEN
