"""Plots: turns values into places in an SVG, which the templates of `plots.html` draw.

An axis has round numbers, and times that the browser tells in its own zone. A line has
a point for each bucket of time, and behind it a band from the lowest to the highest
value in it, so that no peak is lost. A sentence, and the numbers of a table beside the
plot, say the same. Lines are told apart by dashes, not by colour alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby, pairwise
from math import ceil, floor, log, log10
from typing import Final, TypeVar

from markupsafe import Markup

from hub.runtime.series_memory import quantile

_TICK_STEPS: Final = (
    *(60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600),
    *(43_200, 86_400, 172_800, 432_000, 864_000, 2_592_000),
)
"""Seconds between the marks of a time axis, whose times are told to the minute."""
DAY: Final = 86_400
DASHES: Final = ("", "7 3", "2 3")
"""Dashes of the first, the second and the third line of a plot."""
SHADES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeTick:
    x: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTick:
    y: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """From ``since`` at ``left`` to ``until`` at ``right``, in Unix seconds.

    What lies outside is drawn at its ends.
    """

    since: float
    until: float
    left: int
    right: int

    def place(self, moment: float) -> float:
        share = (moment - self.since) / max(self.until - self.since, 1.0)
        width = self.right - self.left
        return round(self.left + width * min(max(share, 0.0), 1.0), 1)

    def marks(self, moments: Sequence[int]) -> tuple[int, ...]:
        """Where moments of the axis are, each place once."""
        here = [each for each in moments if self.since <= each <= self.until]
        return tuple(dict.fromkeys(round(self.place(each)) for each in here))

    def tick_step(self, most: int) -> int:
        seconds = self.until - self.since
        wide = (each for each in _TICK_STEPS if seconds / each <= most)
        return next(wide, _TICK_STEPS[-1])

    def ticks(self, most: int) -> tuple[TimeTick, ...]:
        """The marks: at most ``most`` and one more."""
        step = self.tick_step(most)
        first = int(self.since) // step * step + step
        return tuple(
            TimeTick(x=self.place(moment), at=datetime.fromtimestamp(moment, UTC))
            for moment in range(first, int(self.until) + 1, step)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where in a picture a plot is drawn; around it are the words of its axes."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


SMALL: Final = Frame(width=344, height=134, left=54, right=340, top=8, bottom=112)
"""The frame of small plots, which stand side by side as far as there is room."""
LARGE: Final = Frame(width=520, height=236, left=54, right=490, top=8, bottom=212)


Values = Sequence[float | None]
"""Values of buckets of time; None for a bucket without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineValues:
    """What a line is drawn from. ``latest`` is the newest value in words."""

    name: str
    means: Values
    lows: Values
    highs: Values
    latest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """A drawn line. ``band``: the outline from lowest to highest values, or ""."""

    name: str
    latest: str
    path: str
    band: str
    dashes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLink:
    """A part of a plot that links to what happened in it; ``is_by_delay``: the longest
    after its publication first."""

    x: int
    width: int
    since: datetime
    until: datetime
    words: str
    is_by_delay: bool = False

    @property
    def query(self) -> str:
        span = f"since={_written(self.since)}&until={_written(self.until)}"
        return f"{span}&order=delay" if self.is_by_delay else span


@lru_cache(maxsize=4_000)
def _link_element(link: TimeLink, frame: Frame) -> Markup:
    return _LINK.format(
        query=link.query,
        x=link.x,
        top=frame.top,
        width=link.width,
        bottom=frame.bottom,
        title=f"{_clock(link.since)}{': ' if link.words else ''}{link.words}",
    )


_LINK: Final = Markup(
    '<a href="/admin/entries?{query}" tabindex="-1">'
    '<path d="M{x},{top}h{width}V{bottom}h-{width}z"/><title>{title}</title></a>\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeScale:
    """What plots of the same time have in common.

    ``since``, ``until``: Unix seconds at the left and the right; ``step``: seconds of a
    bucket; ``middles``: where the middles of the buckets are; ``starts``: where the hub
    was started.
    """

    frame: Frame
    since: int
    until: int
    step: int
    is_in_days: bool
    middles: tuple[int, ...]
    times: tuple[TimeTick, ...]
    starts: tuple[int, ...]
    links: tuple[TimeLink, ...]

    @property
    def drawn_links(self) -> Markup:
        """Where a click leads; the table of numbers has the same links for the
        keyboard."""
        return Markup().join(_link_element(each, self.frame) for each in self.links)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot; ``sentence`` says in numbers what it shows."""

    id: str
    title: str
    sentence: str
    scale: TimeScale
    lines: tuple[DrawnLine, ...]
    values: tuple[ValueTick, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightPanel:
    """How long entries took, column by column.

    ``shades``: for each strength the outline of all its cells, the weakest first;
    ``lines``: p50 and p99.
    """

    id: str
    title: str
    sentence: str
    frame: Frame
    is_in_days: bool
    shades: tuple[str, ...]
    lines: tuple[DrawnLine, ...]
    times: tuple[TimeTick, ...]
    starts: tuple[int, ...]
    values: tuple[ValueTick, ...]
    links: tuple[TimeLink, ...]

    @property
    def drawn_links(self) -> Markup:
        """Where a click leads; the table of numbers has the same links for the
        keyboard."""
        return Markup().join(_link_element(each, self.frame) for each in self.links)


def draw_scale(
    since: int,
    step: int,
    count: int,
    *,
    link_seconds: int,
    starts: Sequence[int] = (),
    frame: Frame = SMALL,
) -> TimeScale:
    """Draw the scale of ``count`` buckets of ``step`` seconds from ``since`` on.

    ``starts``: when the hub was started, in Unix seconds.
    """
    until = since + step * count
    axis = TimeAxis(since=since, until=until, left=frame.left, right=frame.right)
    return TimeScale(
        frame=frame,
        since=since,
        until=until,
        step=step,
        is_in_days=axis.tick_step(_MOST_TICKS) >= DAY // 2,
        middles=tuple(
            round(axis.place(since + (number + 0.5) * step)) for number in range(count)
        ),
        times=axis.ticks(_MOST_TICKS),
        starts=axis.marks(starts),
        links=tuple(_links(axis, link_seconds, frame)),
    )


def draw_plot(
    id: str,
    title: str,
    traces: Sequence[LineValues],
    scale: TimeScale,
    words: Callable[[float], str],
    *,
    round_up: Callable[[float], float] | None = None,
) -> Plot:
    """Draw a plot.

    ``words``: a value as people read it. ``round_up``: the round distance between two
    marks, from a third of the highest value; by default a decimal one.
    """
    highest = max(
        (value for each in traces for value in each.highs if value is not None),
        default=0.0,
    )
    mark = (round_up or round_decimal)(highest / 3) or 1.0
    top = mark * max(ceil(highest / mark - 1e-9), 1)
    bottom = scale.frame.bottom
    share = (bottom - scale.frame.top) / top

    def heights(values: Values) -> list[int | None]:
        parts = (_heights(each, bottom, share) for each in _stretches(values))
        return [height for part in parts for height in part]

    return Plot(
        id=id,
        title=title,
        sentence=_line_words(traces, words),
        scale=scale,
        lines=tuple(
            _line(each, scale.middles, heights, DASHES[number % len(DASHES)])
            for number, each in enumerate(traces)
        ),
        values=tuple(
            ValueTick(y=round(bottom - share * value), words=words(value))
            for value in (number * mark for number in range(round(top / mark) + 1))
        ),
    )


_MOST_TICKS: Final = 4
_MOST_TICKS_OF_FLIGHT: Final = 7


def draw_flight(
    id: str,
    title: str,
    counts: Sequence[Sequence[int]],
    bounds: Sequence[float],
    p50: Values,
    p99: Values,
    *,
    since: int,
    step: int,
    words: Callable[[float], str],
    nothing: str,
    beside: str = "",
    starts: Sequence[int] = (),
    is_by_delay: bool = False,
    frame: Frame = LARGE,
) -> FlightPanel:
    """Draw how long entries took.

    ``counts``: for each bucket of time, how many fell into each bin; ``bounds``: the
    upper ends of all bins but the last, in seconds. ``nothing``: the sentence if no
    entry was counted; ``beside``: one that follows, of what is not counted.
    ``is_by_delay``: see `TimeLink`.
    """
    count = len(counts)
    until = since + step * count
    axis = TimeAxis(since=since, until=until, left=frame.left, right=frame.right)
    edges = [bounds[0] / 2, *bounds, bounds[-1] * 2]
    span = log(edges[-1] / edges[0])

    def height(seconds: float) -> int:
        share = log(min(max(seconds, edges[0]), edges[-1]) / edges[0]) / span
        return round(frame.bottom - (frame.bottom - frame.top) * share)

    def heights(values: Values) -> list[int | None]:
        return [None if each is None else height(each) for each in values]

    lefts = [round(axis.place(since + number * step)) for number in range(count + 1)]
    middles = [(left + right) // 2 for left, right in pairwise(lefts)]
    rows = [height(each) for each in edges]
    lines = [
        LineValues(name=name, means=values, lows=values, highs=values)
        for name, values in (("half", p50), ("99 %", p99))
    ]
    return FlightPanel(
        id=id,
        title=title,
        sentence=_delay_words(counts, bounds, p99, words, nothing) + beside,
        frame=frame,
        is_in_days=axis.tick_step(_MOST_TICKS_OF_FLIGHT) >= DAY // 2,
        shades=_shades(counts, lefts, rows),
        lines=tuple(
            _line(each, middles, heights, DASHES[number])
            for number, each in enumerate(lines)
        ),
        times=axis.ticks(_MOST_TICKS_OF_FLIGHT),
        starts=axis.marks(starts),
        values=tuple(
            ValueTick(y=height(each), words=words(each))
            for each in _ROUND_DELAYS
            if edges[0] <= each <= edges[-1]
        ),
        links=tuple(
            _column_link(
                lefts[number],
                lefts[number + 1],
                since + number * step,
                since + (number + 1) * step,
                _column_words(sum(each), p50[number], p99[number], words),
                is_by_delay,
            )
            for number, each in enumerate(counts)
            if any(each)
        ),
    )


@lru_cache(maxsize=1_000)
def _column_link(
    left: int, right: int, first: int, last: int, words: str, is_by_delay: bool
) -> TimeLink:
    return TimeLink(
        x=left,
        width=right - left,
        since=datetime.fromtimestamp(first, UTC),
        until=datetime.fromtimestamp(last, UTC),
        words=words,
        is_by_delay=is_by_delay,
    )


_ROUND_DELAYS: Final = (
    *(0.001, 0.01, 0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0),
    604_800.0,
)
"""Marks of the axis of delays, in seconds."""


def round_decimal(value: float) -> float:
    """The least of 1, 2, 5, 10, 20, … that is not below the value; 0 for 0."""
    if value <= 0:
        return 0.0
    power = 10.0 ** floor(log10(value))
    return next(power * each for each in (1, 2, 5, 10) if power * each >= value * 0.999)


def round_count(value: float) -> float:
    """Like `round_decimal`, but at least 1, for counts."""
    return max(round_decimal(value), 1.0) if value > 0 else 0.0


def round_seconds(value: float) -> float:
    """The next value that is round in minutes, hours or days."""
    if value < 10:
        return round_decimal(value)
    return next((each for each in _ROUND_SPANS if each >= value), round_decimal(value))


_ROUND_SPANS: Final = (
    *(10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0, 1_800.0, 3_600.0, 7_200.0),
    *(14_400.0, 21_600.0, 43_200.0, 86_400.0, 172_800.0, 432_000.0, 864_000.0),
)


def _line(
    trace: LineValues,
    places: Sequence[int],
    heights: Callable[[Values], list[int | None]],
    dashes: str,
) -> DrawnLine:
    """Draw a line, with gaps where there are no values."""
    means = heights(trace.means)
    has_band = trace.lows != trace.highs
    lows, highs = (heights(trace.lows), heights(trace.highs)) if has_band else ([], [])
    path, band = "", ""
    for first, last in _runs(means):
        here = slice(first, last)
        xs = places[here]
        path += _path(xs, [each for each in means[here] if each is not None])
        if lows[here] != highs[here]:
            there = [each for each in highs[here] if each is not None]
            back = [each for each in reversed(lows[here]) if each is not None]
            band += _path([*xs, *reversed(xs)], [*there, *back]) + "z"
    return DrawnLine(
        name=trace.name, latest=trace.latest, path=path, band=band, dashes=dashes
    )


def _runs(values: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """The start and the end (exclusive) of each stretch without gaps."""
    if None not in values:
        yield 0, len(values)
        return
    start = None
    for number, value in enumerate([*values, None]):
        if value is None:
            if start is not None:
                yield start, number
            start = None
        elif start is None:
            start = number


STRETCH: Final = 24
"""Points of a line that are drawn together: while only its end moves, its other
stretches are kept as they were drawn."""
_T = TypeVar("_T")


def _stretches(points: Sequence[_T], and_next: int = 0) -> Iterator[tuple[_T, ...]]:
    """The points in parts, each with so many points of the next part."""
    for first in range(0, len(points) - and_next, STRETCH):
        yield tuple(points[first : first + STRETCH + and_next])


@lru_cache(maxsize=1_000)
def _heights(values: Values, bottom: int, share: float) -> list[int | None]:
    return [None if each is None else round(bottom - share * each) for each in values]


def _path(xs: Sequence[int], ys: Sequence[int]) -> str:
    """The path of a line, in relative steps, which are short; a point is a dot."""
    if len(xs) == 1:
        return f"M{xs[0] - 1},{ys[0]}h2"
    steps = map(_steps, _stretches(xs, and_next=1), _stretches(ys, and_next=1))
    return f"M{xs[0]},{ys[0]}{''.join(steps)}"


@lru_cache(maxsize=1_000)
def _steps(xs: Sequence[int], ys: Sequence[int]) -> str:
    """From the first of these points to the last."""
    last, drawn, y = xs[0], xs[0], ys[0]
    words = []
    for x, next_y in zip(xs, ys, strict=True):
        if y != next_y:
            if last != drawn:
                words.append(f"h{last - drawn}")
            comma = "" if next_y < y else ","
            words.append(f"l{x - last}{comma}{next_y - y}")
            drawn, y = x, next_y
        last = x
    return "".join(words) + (f"h{last - drawn}" if last != drawn else "")


def _shades(
    counts: Sequence[Sequence[int]], lefts: Sequence[int], rows: Sequence[int]
) -> tuple[str, ...]:
    """The outlines of the cells of each strength, the weakest first.

    The more entries a cell has, by the logarithm, the stronger it is. Neighbours in a
    row that are equally strong share an outline.
    """
    most = max((each for column in counts for each in column), default=0)
    drawn: list[list[str]] = [[] for _ in range(SHADES)]
    for (bottom, top), row in zip(
        pairwise(rows), zip(*counts, strict=True), strict=True
    ):
        if not any(row):
            continue
        number = 0
        for strength, cells in groupby(_strength(each, most) for each in row):
            first, number = number, number + len(list(cells))
            if strength:
                width = lefts[number] - lefts[first]
                outline = f"M{lefts[first]},{top}h{width}v{bottom - top}h-{width}"
                drawn[strength - 1].append(outline)
    return tuple("".join(each) for each in drawn)


def _strength(count: int, most: int) -> int:
    """The strength of a cell: 0 for no entries, up to `SHADES` for ``most``."""
    return min(ceil(SHADES * log(1 + count) / log(1 + most)), SHADES) if count else 0


def _links(axis: TimeAxis, seconds: int, frame: Frame) -> Iterator[TimeLink]:
    """Links to spans of ``seconds``, which begin at round times.

    The first and the last are drawn as far as the axis goes.
    """
    start = int(axis.since) // seconds * seconds
    for moment in range(start, int(axis.until), seconds):
        left = round(axis.place(moment))
        width = round(axis.place(moment + seconds)) - left
        if width > 0:
            yield TimeLink(
                x=left,
                width=width,
                since=datetime.fromtimestamp(moment, UTC),
                until=datetime.fromtimestamp(moment + seconds, UTC),
                words="",
            )


def _written(at: datetime) -> str:
    return f"{at:%Y-%m-%dT}{_clock(at)}"


def _clock(at: datetime) -> str:
    return at.strftime("%H:%M:%SZ" if at.second else "%H:%MZ")


def _line_words(traces: Sequence[LineValues], words: Callable[[float], str]) -> str:
    """The mean and the highest value of each line, in words."""
    parts = []
    for each in traces:
        means = [value for value in each.means if value is not None]
        highs = [value for value in each.highs if value is not None]
        if means:
            mean, most = sum(means) / len(means), max(highs)
            parts.append(
                f"{each.name}: on average {words(mean)}, at most {words(most)}"
            )
    return f"{'; '.join(parts)}." if parts else "Nothing was measured yet."


def _delay_words(
    counts: Sequence[Sequence[int]],
    bounds: Sequence[float],
    p99: Values,
    words: Callable[[float], str],
    nothing: str,
) -> str:
    together = [sum(bins) for bins in zip(*counts, strict=True)]
    half, most = (quantile(together, bounds, share) for share in (0.5, 0.99))
    if half is None or most is None:
        return nothing
    total = sum(together)
    worst = max(each for each in p99 if each is not None)
    return (
        f"{total:,} {'entry' if total == 1 else 'entries'}: half within {words(half)},"
        f" 99 % within {words(most)}; in the slowest column 99 % within {words(worst)}."
    )


def _column_words(
    total: int,
    p50: float | None,
    p99: float | None,
    words: Callable[[float], str],
) -> str:
    said = f"{total:,} {'entry' if total == 1 else 'entries'}"
    if p50 is None or p99 is None:
        return said
    return f"{said}, half in {words(p50)}, 99 % in {words(p99)}"
