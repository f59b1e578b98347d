"""What maintenance finds out about feeds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from protocols.quick import quick_init
from storage.records.identities import FeedId


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of one feed, as docs/status.md defines it."""

    maintained_at: datetime
    popularity: float = 0.0
    porn_rank: float | None = None  # None without a list of words, or entries
    is_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingWrite:
    """A standing with what it is made of: the feed's ``site`` (host and path of its
    page, "" if it names none), and the ``places`` (the same) its entries link to."""

    feed_id: FeedId
    standing: Standing
    site: str
    places: frozenset[str]
    due: datetime  # when the next maintenance is
