"""How long a subscription lasts without being renewed, and a secret after it was.

All in seconds.
"""

from __future__ import annotations

from typing import Final

DEFAULT_LEASE: Final = 864_000
"""WebSub 5.1: "10 days is a good default"."""
SHORTEST_LEASE: Final = 300
LONGEST_LEASE: Final = 2_592_000
ENDLESS_LEASE: Final = 315_359_999
"""What a subscription without an end is told as; Superfeedr's number, ten years."""

SECRET_OVERLAP: Final = 86_400
"""How long the secret that another one replaces signs as well."""


def granted_lease(asked: int | None, shortest: int = SHORTEST_LEASE) -> int:
    """What the hub grants; it "MAY choose to respect this value or not".

    A wish out of bounds is cut to them, never refused: subscribers that ask for a year
    do not know what to do with a 400.
    """
    if asked is None:
        asked = DEFAULT_LEASE
    return min(max(asked, shortest), LONGEST_LEASE)
