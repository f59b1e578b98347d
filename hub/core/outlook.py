"""What all feeds have in common when planned: the price, and everybody's habits."""

from __future__ import annotations

import msgspec

from hub.core.habits import Prior, prior_of

EVEN = prior_of(())
"""The habits of all feeds while none are known."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """``price`` is θ, the expected entry-seconds of waiting that a poll is worth.

    The same for all feeds at a moment; the hub steers it to its budget of polls.
    """

    price: float = 75.0  # one entry a day is polled hourly
    prior: Prior = EVEN
