"""What a made-up feed is like, and what its entries say, whatever format they take.

The shares are those of 599 real XML feeds, and so is what entries weigh: 3.5 kB.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from scripts.benchmarks.documents import prose

_NEWEST: Final = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How one publisher writes."""

    site: str
    has_self: bool
    has_hub: bool
    has_cloud: bool
    has_base: bool
    has_period: bool
    has_skip_hours: bool
    ttl: int | None
    has_ids: bool
    has_permalinks: bool  # as ids
    has_links: bool
    has_titles: bool
    has_dates: bool
    has_times: bool  # and not only dates
    has_relative_urls: bool
    repeats_a_link: bool
    repeats_an_id: bool
    escapes: bool  # HTML, instead of CDATA

    @property
    def root(self) -> str:
        """What the URLs in texts begin with."""
        return "" if self.has_relative_urls else self.site


def draw_habits(random: Random) -> Habits:
    def happens(share: float) -> bool:
        return random.random() < share

    return Habits(
        site=prose.site(random),
        has_self=happens(0.69),
        has_hub=happens(0.144),
        has_cloud=happens(0.042),
        has_base=happens(0.085),
        has_period=happens(0.17),
        has_skip_hours=happens(0.003),
        ttl=random.choice((60, 60, 60, 1, 2, 720, 1440)) if happens(0.083) else None,
        has_ids=not happens(0.073),
        has_permalinks=not happens(0.35),
        has_links=not happens(0.04),
        has_titles=not happens(0.03),
        has_dates=not happens(0.025),
        has_times=not happens(0.14),
        has_relative_urls=happens(0.06),
        repeats_a_link=happens(0.038),
        repeats_an_id=happens(0.022),
        escapes=happens(0.4),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry. What is "" or None is not in the document."""

    number: int
    id: str
    link: str
    title: str
    at: datetime | None
    author: str
    terms: list[str]


def draw_item(random: Random, habits: Habits, number: int) -> Item:
    known = number - 1 if number == 3 else number
    path = f"/2026/{known if habits.repeats_a_link else number}/{number % 7}-post"
    link = f"{habits.site}{path}/"
    guid = link if habits.has_permalinks else f"{habits.site}/?p={number}"
    if habits.repeats_an_id and number == 3:
        guid = guid.replace("3", "2")
    age = timedelta(hours=5 * number, minutes=random.randrange(300))
    return Item(
        number=number,
        id=guid if habits.has_ids else "",
        link=link if habits.has_links else "",
        title=prose.title(random) if habits.has_titles else "",
        at=_NEWEST - age if habits.has_dates else None,
        author=prose.name(random),
        terms=prose.terms(random),
    )
