"""What a feed posted beside when it was polled, and when it is expected to post; and
polls that are alike as one row of a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final

import msgspec

from hub.core.schedule.forecast import Forecast
from hub.core.schedule.posting_profile import posts_known
from hub.core.status.feed_pauses import FeedPause
from hub.core.status.freshness import LONGEST_DELAY
from storage.records import EntryId, Poll, Posting

HOURS: Final = 24
DAYS: Final = 7
FEWEST_POSTS: Final = 3.0
"""From so many posts on, a feed's own hours are distinguished from those of all
feeds."""
_HOUR: Final = 3_600
_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC).timestamp()


class SeenPost(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An entry that was new to the hub. ``published`` None: its feed does not say."""

    entry_id: EntryId
    title: str
    published: datetime | None
    committed: datetime

    @property
    def delay(self) -> timedelta | None:
        """The time from publication to commit; None if the entry's date is missing, in
        the future, or too old to be believed."""
        if self.published is None or self.published > self.committed:
            return None
        delay = self.committed - self.published
        return delay if delay <= LONGEST_DELAY else None


class FeedTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """Polls, posts and pauses from ``since`` until ``until``, the oldest first."""

    since: datetime
    until: datetime
    polls: tuple[Poll, ...]
    posts: tuple[SeenPost, ...]
    pauses: tuple[FeedPause, ...] = ()


def timeline(
    polls: Iterable[Poll],
    posts: Iterable[SeenPost],
    now: datetime,
    pauses: Iterable[FeedPause] = (),
) -> FeedTimeline:
    """The timeline from the oldest poll until ``now``; what was over before is left
    out."""
    by_time = sorted(polls, key=lambda poll: poll.at)
    since = by_time[0].at if by_time else now
    seen = [post for post in posts if since <= post.committed]
    return FeedTimeline(
        since=since,
        until=max([now, *(poll.at for poll in by_time)]),
        polls=tuple(by_time),
        posts=tuple(sorted(seen, key=lambda post: post.committed)),
        pauses=tuple(each for each in pauses if each.overlaps(since, now)),
    )


def expected_week(forecast: Forecast) -> tuple[Sequence[float], ...]:
    """Entries that are expected in each hour of a week: of Monday to Sunday the hours
    from 0 to 23, in UTC. What the latest posts excite is not counted."""
    an_hour = forecast.per_day / HOURS
    return tuple(
        tuple(
            an_hour * forecast.profile.at(_MONDAY + (day * HOURS + hour) * _HOUR)
            for hour in range(HOURS)
        )
        for day in range(DAYS)
    )


def has_known_hours(posting: Posting, now: datetime) -> bool:
    """Whether a feed has posted enough for its week to be its own."""
    return posts_known(posting, now) >= FEWEST_POSTS


# --- polls that are alike ------------------------------------------------------------

LEAST_ALIKE = 3
"""Polls in a row that are alike, from which on they are one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollRun:
    """One poll, or several in a row that were made for the same reason outside the
    schedule and came to the same, but to no entries; the latest first."""

    polls: tuple[Poll, ...]
    asked_by: str = ""

    @property
    def latest(self) -> Poll:
        return self.polls[0]

    @property
    def earliest(self) -> Poll:
        return self.polls[-1]

    @property
    def longest(self) -> int:
        """Milliseconds of the poll that took the longest."""
        return max(each.milliseconds for each in self.polls)


def runs_of(polls: Sequence[tuple[Poll, str]]) -> Iterator[PollRun]:
    """The polls, the latest first, in runs. Each comes with who asked for it, "" if
    that is not known."""
    for (_, asked_by), group in groupby(polls, _likeness):
        alike = tuple(poll for poll, _ in group)
        first = alike[0]
        is_idle = not (first.entries or first.reason.is_by_schedule)
        is_run = is_idle and len(alike) >= LEAST_ALIKE
        for each in (alike,) if is_run else ((poll,) for poll in alike):
            yield PollRun(polls=each, asked_by=asked_by)


def _likeness(each: tuple[Poll, str]) -> tuple[object, str]:
    poll, asked_by = each
    return (poll.reason, poll.outcome, poll.code, bool(poll.entries)), asked_by
