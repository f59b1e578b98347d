"""The order in which storage gives out feeds that are due, said in the simplest way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from storage.records import (
    DueFeed,
    FeedId,
    Pace,
    PlaceByPace,
    StoredFeed,
    lateness,
    pace_of,
)


def the_latest(
    feeds: Iterable[StoredFeed], now: datetime, after: PlaceByPace
) -> list[DueFeed]:
    """Those that are due and follow their pace's place, the latest first."""
    due = [
        DueFeed(
            id=each.id,
            url=each.polling.fetch_url or each.url,
            next_fetch=each.next_fetch,
            pace=pace_of(each.polling.period),
        )
        for each in feeds
        if each.next_fetch <= now
    ]
    left = (
        each
        for each in due
        if each.pace not in after or (each.next_fetch, each.id) > after[each.pace]
    )
    return sorted(
        left,
        key=lambda each: (
            -lateness(each.next_fetch, each.pace, now),
            each.next_fetch,
            each.id,
        ),
    )


def places(page: Sequence[DueFeed]) -> dict[Pace, tuple[datetime, FeedId]]:
    """Where the next page goes on."""
    return {each.pace: (each.next_fetch, each.id) for each in page}
