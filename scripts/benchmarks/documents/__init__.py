"""A set of feed documents as the web has them, made up from a seed.

Formats, sizes, namespaces and oddities have the shares that they have among real feeds;
see `facts` and `damage`. The same seed makes the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp
from random import Random
from statistics import NormalDist
from types import ModuleType
from typing import Final

from lxml import etree

from protocols.feeds import ParseContext
from scripts.benchmarks.documents import atom, jsonfeed, rdf, rss
from scripts.benchmarks.documents.damage import draw_damage
from scripts.benchmarks.documents.facts import Habits, draw_habits, draw_item

SMALLEST: Final = 5_000
LARGEST: Final = 2_000_000
"""Bytes, about: documents end with a whole entry."""
_MEDIAN, _SPREAD = 40_000, 1.25
_NOW: Final = datetime(2026, 5, 1, 12, tzinfo=UTC)

_SHARES: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (rss, "blog", 28),
    (rss, "news", 18),
    (rss, "podcast", 8),
    (rss, "site", 13),
    (atom, "blog", 13),
    (atom, "releases", 4),
    (atom, "videos", 4),
    (atom, "xhtml", 3),
    (rdf, "archive", 4),
    (jsonfeed, "blog", 5),
)
"""In a hundred documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedDocument:
    """A document, and where it is said to have come from."""

    format: str
    kind: str
    body: bytes
    context: ParseContext
    is_well_formed: bool

    @property
    def is_xml(self) -> bool:
        return self.format != "jsonfeed"


def make_documents(count: int, seed: int = 4) -> list[FeedDocument]:
    """So many documents, their sizes spread over the quantiles of all sizes."""
    random = Random(seed)  # noqa: S311 - made up, not secret
    kinds = [(format, kind) for format, kind, share in _SHARES for _ in range(share)]
    random.shuffle(kinds)
    made = [
        make_document(*kinds[number % len(kinds)], size, random)
        for number, size in enumerate(_sizes(count))
    ]
    random.shuffle(made)
    return made


def make_document(
    format: ModuleType, kind: str, size: int, random: Random, *, is_whole: bool = False
) -> FeedDocument:
    """One document of about so many bytes; ``is_whole``: nothing is wrong with it."""
    habits = draw_habits(random)
    name = format.__name__.rpartition(".")[2]
    body = _write(format, kind, size, habits, random)
    damage = draw_damage(random)
    if damage and not is_whole and format is not jsonfeed:
        body = damage(body, random)
    return FeedDocument(
        format=name,
        kind=kind,
        body=body,
        context=ParseContext(url=f"{habits.site}/feed/", now=_NOW),
        is_well_formed=format is jsonfeed or _is_well_formed(body),
    )


def _sizes(count: int) -> list[int]:
    """Log-normal, from the smallest to the largest; both are there."""
    normal = NormalDist()
    drawn = [
        _MEDIAN * exp(_SPREAD * normal.inv_cdf((rank + 0.5) / count))
        for rank in range(count)
    ]
    sizes = [round(min(max(size, SMALLEST), LARGEST)) for size in drawn]
    return [*sizes[:-1], LARGEST]


def _write(
    format: ModuleType, kind: str, size: int, habits: Habits, random: Random
) -> bytes:
    begin, end = format.begin(random, habits, kind), format.end()
    items: list[str] = []
    length = len(begin)
    while length < size or len(items) < 2:
        entry = draw_item(random, habits, len(items) + 1)
        items.append(format.item(random, habits, kind, entry))
        length += len(items[-1])
    joint = ",\n" if format is jsonfeed else ""
    return f"{begin}{joint.join(items)}{end}".encode()


def _is_well_formed(body: bytes) -> bool:
    try:
        etree.fromstring(body)
    except etree.XMLSyntaxError:
        return False
    return True
