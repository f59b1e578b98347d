"""How callbacks behave: well, late, badly, or in odd ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from tests.support.http_server import ServerAnswer

GONE = 410
PATIENCES = (
    "0",
    "7",
    "120",
    "-5",
    "1000000000",
    "soon",
    "",
    "Mon, 01 Jan 1990 00:00:00 GMT",
    "Mon, 02 Mar 2026 00:01:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
)
"""What callbacks say about when to try again."""


def behaviours(random: Random, is_odd: Callable[[], bool]) -> Iterator[ServerAnswer]:
    """What it answers, one after the other; all is well while nobody is moody."""
    while True:
        throw = random.random()
        if not is_odd() or throw < 0.7:
            yield ServerAnswer(delay=random.uniform(0, 0.2))
        elif throw < 0.705:
            yield ServerAnswer(status=GONE)
        elif throw < 0.76:
            yield ServerAnswer(status=random.choice((500, 503, 429, 404, 302)))
        elif throw < 0.8:
            patience = {"Retry-After": random.choice(PATIENCES)}
            yield ServerAnswer(status=random.choice((429, 503)), headers=patience)
        elif throw < 0.9:
            yield ServerAnswer(delay=random.uniform(1, 19))
        elif throw < 0.95:
            yield ServerAnswer(status=0)  # a reset
        else:
            yield ServerAnswer(
                delay=random.uniform(20, 60)
            )  # longer than anybody waits
