"""Statistics of a feed that maintenance computes from its latest entries:
docs/reference/status.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from protocols.model import Entry, Feed
from protocols.track.subject import address_of, linked_pages, texts_of
from protocols.track.words import folded_words, words_of
from storage.records import StoredFeed

LATEST_ENTRIES: Final = 50
"""How many entries are looked at."""
MOST_PLACES: Final = 500
"""The most pages linked by a feed that count for others' popularity."""
MOST_LINKING: Final = 100_000
"""The most feeds that are counted as linking to one."""
STALE_AFTER: Final = timedelta(days=3)
EVERY: Final = timedelta(hours=24)


class WordList:
    """Words and phrases, one a line, in any case; text after a ``#`` is ignored."""

    def __init__(self, text: str) -> None:
        lines = (line.partition("#")[0] for line in text.splitlines())
        words = [folded_words(words_of(line)) for line in lines]
        self._words = frozenset(each[0] for each in words if len(each) == 1)
        self._phrases = tuple(f" {' '.join(each)} " for each in words if len(each) > 1)

    def is_in(self, entry: Entry) -> bool:
        """Whether one of them is in the title, summary, content or categories."""
        for part in texts_of(entry):
            words = folded_words(words_of(part))
            text = f" {' '.join(words)} "
            if not self._words.isdisjoint(words):
                return True
            if any(phrase in text for phrase in self._phrases):
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The result of an examination, for `storage.records.FeedStatisticsWrite`."""

    site: str
    places: frozenset[str]
    porn_rank: float | None


def examine(
    head: Feed, entries: Sequence[Entry], listed: WordList | None
) -> Examination:
    """Examine a feed by its head and latest entries; ``listed`` None: no rank."""
    site = site_of(head)
    places = _places(entries, site.partition("/")[0])
    return Examination(
        site=site,
        places=frozenset(islice(places, MOST_PLACES)),
        porn_rank=_share(map(listed.is_in, entries)) if listed and entries else None,
    )


def site_of(head: Feed) -> str:
    """Host and path of the feed's page, without a last slash; "" if it names none."""
    pages = (site_at(link.href) for link in head.links if link.rel == "alternate")
    return next(filter(None, pages), "")


def site_at(url: str) -> str:
    """A page's URL, written as `site_of` writes it; "" if it is no web URL."""
    host, path = address_of(url)
    return host + path if host else ""


def popularity(subscribers: int, linking: int) -> float:
    """A feed's popularity: 0 if only the hub knows it; each e-fold adds one."""
    return round(math.log1p(subscribers + linking), 2)


def is_stale(feed: StoredFeed, at: datetime) -> bool:
    """Whether the feed was not read for longer than its period explains."""
    last = feed.polling.last_parse or feed.created_at
    return at - last > max(STALE_AFTER, timedelta(seconds=2 * feed.polling.period))


def _places(entries: Iterable[Entry], own_host: str) -> Iterator[str]:
    for entry in entries:
        for host, path in linked_pages(entry):
            if host and host != own_host:
                yield f"{host}{path or '/'}"


def _share(outcomes: Iterable[bool]) -> float:
    counted = list(outcomes)
    return round(sum(counted) / len(counted), 2)
