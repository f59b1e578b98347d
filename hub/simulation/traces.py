"""When feeds posted: what a simulation replays."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated

import msgspec

from protocols.model import Hints
from protocols.protocol_errors import InvalidValue

TRAINED = 0.6
"""The part of a feed's span that planners may learn from before they are tested."""
LEAST_POSTS = 3
MOST_BYTES = 64 * 2**20
"""Of a file of traces."""
LONGEST_SPAN = 30 * 365 * 86_400.0
"""Seconds from a feed's first post to its last: polls of centuries take for ever."""
_MOST_WINDOW = 1_000_000
_LONGEST_MAX_AGE = 365 * 86_400.0

_Time = Annotated[float, msgspec.Meta(ge=0, le=4_102_444_800)]  # to the year 2100
_Hour = Annotated[int, msgspec.Meta(ge=0, le=23)]
_Factor = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What posts were generated from: entries a day, and factors of mean 1, UTC."""

    per_day: Annotated[float, msgspec.Meta(gt=0, le=1e6)]
    hours: Annotated[tuple[_Factor, ...], msgspec.Meta(min_length=24, max_length=24)]
    days: Annotated[tuple[_Factor, ...], msgspec.Meta(min_length=7, max_length=7)]


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One feed: its posts in Unix seconds, and what its server and document say.

    ``window`` is how many entries its document shows: 0 is unknown. ``max_age`` is in
    seconds, ``skip_hours`` are of UTC. After ``trained`` of its span it is tested.
    """

    feed: str
    posts: tuple[_Time, ...]
    window: Annotated[int, msgspec.Meta(ge=0, le=_MOST_WINDOW)] = 0
    max_age: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_MAX_AGE)] = 0.0
    skip_hours: Annotated[tuple[_Hour, ...], msgspec.Meta(max_length=23)] = ()
    rates: Rates | None = None
    trained: Annotated[float, msgspec.Meta(gt=0, lt=1)] = TRAINED

    @property
    def hints(self) -> Hints:
        return Hints(skip_hours=self.skip_hours)


class _TraceFile(msgspec.Struct):
    feeds: list[Trace]


@dataclass(frozen=True, slots=True)
class Span:
    """When a feed is tested, in Unix seconds."""

    start: float
    end: float

    @property
    def days(self) -> float:
        return (self.end - self.start) / 86_400


def held_back(trace: Trace) -> Span:
    """The time up to a feed's last post that was not for learning: mostly 40 %."""
    first, last = trace.posts[0], trace.posts[-1]
    return Span(first + trace.trained * (last - first), last)


def read_traces(document: bytes) -> tuple[Trace, ...]:
    """From JSON: an object whose ``feeds`` have a ``feed`` name and ``posts``.

    Feeds of fewer than three different times are left out. Raises `InvalidValue`,
    which names the feed and its field by their path in the document.
    """
    if len(document) > MOST_BYTES:
        raise InvalidValue("traces", f"at most {MOST_BYTES:,} bytes")
    try:
        read = msgspec.json.decode(document, type=_TraceFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        expected = '{"feeds": [{"feed": …, "posts": [Unix seconds]}]}'
        raise InvalidValue("traces", f"JSON like {expected} ({error})") from error
    ordered = [
        msgspec.structs.replace(trace, posts=tuple(sorted(trace.posts)))
        for trace in read.feeds
    ]
    traces = tuple(each for each in ordered if len(set(each.posts)) >= LEAST_POSTS)
    if not traces:
        raise InvalidValue(
            "posts", f"a feed with {LEAST_POSTS} different times or more"
        )
    for trace in traces:
        if trace.posts[-1] - trace.posts[0] > LONGEST_SPAN:
            raise InvalidValue(
                f"posts of {trace.feed}", "30 years at most between them"
            )
    return traces


def bundled_traces() -> tuple[Trace, ...]:
    """The generated traces that come with the hub (see `hub.simulation.traffic`)."""
    return read_traces(files(__package__).joinpath("traces.json").read_bytes())
