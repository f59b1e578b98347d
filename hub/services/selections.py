"""What is to be read back: topics, and a page of their entries."""

from __future__ import annotations

from dataclasses import dataclass

from storage.records import FeedId, ListingSearch

DEFAULT_COUNT = 10
MOST_COUNT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A topic; else the topics of a callback, or of a search over the account's

    subscriptions. A topic that is given goes before all else.
    """

    topic: str = ""
    callback: str = ""
    search: ListingSearch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``before`` and ``after`` are ids of entries; those themselves are left out."""

    count: int = DEFAULT_COUNT
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class SelectedTopic:
    url: str
    feed_id: FeedId
    is_track: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Topics that may be read; ``name`` is what they were asked for by.

    ``has_unlisted``: also entries that are kept out of whatever many can find.
    """

    name: str
    topics: tuple[SelectedTopic, ...]
    is_merged: bool
    has_unlisted: bool = False

    @property
    def is_track(self) -> bool:
        """Whether it is one track query and nothing else."""
        return len(self.topics) == 1 and self.topics[0].is_track

    @property
    def queries(self) -> list[FeedId]:
        """The feeds among them that stand for track queries."""
        return [each.feed_id for each in self.topics if each.is_track]

    @property
    def feeds(self) -> list[FeedId]:
        return list(dict.fromkeys(each.feed_id for each in self.topics))
