"""Pictures of a feed: its polls against its posts, and the week that is expected.

Only places are computed here; the template draws them. Words and numbers beside the
pictures say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from hub.core.durations import duration, rounded_up
from hub.core.status.feed_pauses import FeedPause
from hub.core.status.feed_timeline import FeedTimeline, SeenPost
from hub.web.admin.plots import DAY, TimeAxis, TimeTick
from storage.records import Poll, PollOutcome

LEAST_NAMED: Final = 56.0
"""The width of a pause from which on it has its name within."""
LEAST_BAND: Final = 3.0
"""The width of the shortest pause, so that it is seen."""
_LEFT: Final = 60
_RIGHT: Final = 870
_MOST_TICKS: Final = 7

SHAPES: Final = {
    PollOutcome.FIRST: "M-5,-5H5V5H-5Z",
    PollOutcome.NEW: "M-5,0A5,5 0 1 1 5,0A5,5 0 1 1 -5,0Z",
    PollOutcome.CHANGED: "M0,-5L5,0L0,5L-5,0Z",
    PollOutcome.UNCHANGED: "M0,-5V5",
    PollOutcome.FAILED: "M-4,-4L4,4M-4,4L4,-4",
    PollOutcome.UNREADABLE: "M-4,-4L4,4M-4,4L4,-4",
}
"""Outlines around the place of a mark, so that marks are not told apart by colour
alone."""

DAY_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
LEVELS: Final = 5
STRONGEST: Final = 3.0
"""How many times the mean hour an hour has to be to get the strongest colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollMark:
    x: float
    poll: Poll
    shape: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PostMark:
    """A post: ``x`` is where it was published, ``seen_x`` where it was committed.

    ``is_earlier``: it was published before the picture begins, and is drawn at its
    edge.
    """

    x: float
    seen_x: float
    is_earlier: bool
    post: SeenPost
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseBand:
    """A time in which the feed was paused, over both lanes. ``seconds``: how long that
    was, or is already."""

    x: float
    width: float
    is_named: bool
    pause: FeedPause
    seconds: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Two lanes: polls above posts."""

    pauses: tuple[PauseBand, ...]
    polls: tuple[PollMark, ...]
    posts: tuple[PostMark, ...]
    ticks: tuple[TimeTick, ...]
    is_in_days: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """An hour of the week; ``level`` is 0 to `LEVELS`, relative to the mean hour."""

    day: int
    hour: int
    level: int
    words: str


def draw_timeline(timeline: FeedTimeline) -> Lanes:
    since = timeline.since
    seconds = max((timeline.until - since).total_seconds(), 1.0)
    axis = TimeAxis(
        since=since.timestamp(),
        until=timeline.until.timestamp(),
        left=_LEFT,
        right=_RIGHT,
    )

    def place(at: datetime) -> float:
        return axis.place(at.timestamp())

    return Lanes(
        pauses=tuple(
            _pause_band(each, since, timeline.until, place) for each in timeline.pauses
        ),
        polls=tuple(
            PollMark(
                x=place(each.at),
                poll=each,
                shape=SHAPES[each.outcome],
                words=f"{each.outcome}, {each.reason.replace('_', ' ')}",
            )
            for each in timeline.polls
        ),
        posts=tuple(_post_mark(each, since, place) for each in timeline.posts),
        ticks=axis.ticks(_MOST_TICKS),
        is_in_days=axis.tick_step(_MOST_TICKS) >= DAY,
        sentence=_sentence(timeline, seconds),
    )


def draw_week(expected: Sequence[Sequence[float]]) -> tuple[HeatCell, ...]:
    """Draw the hours of a week; ``expected`` is what `expected_week` returns."""
    full = STRONGEST * sum(map(sum, expected)) / sum(map(len, expected))
    return tuple(
        HeatCell(
            day=day,
            hour=hour,
            level=round(LEVELS * min(count / full, 1.0)) if full else 0,
            words=f"{DAY_NAMES[day]} {hour:02}:00 UTC: {count:.2g} entries",
        )
        for day, hours in enumerate(expected)
        for hour, count in enumerate(hours)
    )


def _post_mark(
    post: SeenPost, since: datetime, place: Callable[[datetime], float]
) -> PostMark:
    delay = post.delay
    began = post.committed if delay is None else post.committed - delay
    words = "seen, without a believable date" if delay is None else _late(delay)
    return PostMark(
        x=place(began),
        seen_x=place(post.committed),
        is_earlier=began < since,
        post=post,
        words=words,
    )


def _pause_band(
    pause: FeedPause,
    since: datetime,
    until: datetime,
    place: Callable[[datetime], float],
) -> PauseBand:
    end = pause.resumed_at or until
    left, right = place(max(pause.paused_at, since)), place(max(end, since))
    width = max(right - left, LEAST_BAND)
    seconds = (end - pause.paused_at).total_seconds()
    whose = f", by {pause.paused_by}" if pause.paused_by else ""
    resumed = f", resumed by {pause.resumed_by}" if pause.resumed_by else ""
    begin = "paused for" if pause.resumed_at else "paused, so far for"
    return PauseBand(
        x=left,
        width=round(width, 1),
        is_named=width >= LEAST_NAMED,
        pause=pause,
        seconds=seconds,
        words=f"{begin} {duration(seconds)}{whose}{resumed}",
    )


def _late(delay: timedelta) -> str:
    return f"seen {duration(rounded_up(delay.total_seconds()))} after its publication"


def _sentence(timeline: FeedTimeline, seconds: float) -> str:
    polls, posts = len(timeline.polls), len(timeline.posts)
    words = (
        f"{polls} {'poll' if polls == 1 else 'polls'} and {posts} new"
        f" {'entry' if posts == 1 else 'entries'} in the last {duration(seconds)}"
    )
    if timeline.pauses:
        times = "once" if len(timeline.pauses) == 1 else f"{len(timeline.pauses)} times"
        words += f", in which it was paused {times}"
    firsts = [each for each in timeline.polls if each.outcome is PollOutcome.FIRST]
    if firsts and firsts[0].entries:
        words += f", besides what the first poll found ({firsts[0].entries:,})"
    if delays := _delays(timeline):
        dated = len(delays)
        of = "" if dated == posts else f"of the {dated} with a believable date "
        words += (
            f"; {of}half {'' if of else 'of these '}were seen within"
            f" {half_within(timeline)} of their publication, all within"
            f" {duration(rounded_up(max(delays)))}"
        )
    return f"{words}."


def half_within(timeline: FeedTimeline) -> str:
    """The time within which half of the posts of the picture were seen; "" if none has
    a believable date."""
    delays = sorted(_delays(timeline))
    half = delays[ceil(len(delays) / 2) - 1] if delays else None
    return "" if half is None else duration(rounded_up(half))


def _delays(timeline: FeedTimeline) -> list[float]:
    found = (each.delay for each in timeline.posts)
    return [each.total_seconds() for each in found if each is not None]
