"""How far a feed's habits are believed: as far as they have foretold its posts.

Whatever times a feed posts at, counts of them look like habits: of five imports at any
time, at five hours. So each post is first held against what was known before it came. A
profile that made the rate there f times the mean one explains the post f times as well
as no habit would, and by the rule of Bayes the trust in it becomes

    p <- p f / (p f + 1 - p)

That is learning with experts (Herbster and Warmuth, Machine Learning 1998): the trust
has bounds, so that neither old merits nor old faults count for ever, and a feed that
changes its habits, or gets some, is believed accordingly within a few posts.
"""

from __future__ import annotations

FIRST_TRUST = 0.75
LEAST_TRUST, MOST_TRUST = 0.125, 0.984375
_STEPS = 2_048
"""Half floats, in which trust is stored, are exact in these parts of 1."""


def trust_after(trust: float, factor: float) -> float:
    """The trust after a post at whose time the profile was ``factor``, of mean 1."""
    share = trust * factor
    held = min(max(share / (share + 1 - trust), LEAST_TRUST), MOST_TRUST)
    return round(held * _STEPS) / _STEPS
