"""Pictures of the hub over time: its plots, and the flight of entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from markupsafe import Markup

from hub.core.byte_sizes import byte_size
from hub.runtime.clock import Clock
from hub.runtime.series_memory import (
    BOUNDS,
    LATEST_SECONDS,
    Buckets,
    DelayLine,
    DelayName,
    Line,
    SeriesName,
    quantile,
)
from hub.services import HubSeries
from hub.services.hub_series import SeriesRange
from hub.web.admin.plots import (
    FlightPanel,
    LineValues,
    Plot,
    TimeLink,
    TimeScale,
    draw_flight,
    draw_plot,
    draw_scale,
    round_count,
    round_decimal,
    round_seconds,
)
from hub.web.page_rendering import rate_text, render_macro, span_text

POINTS: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 120,
    SeriesRange.HOURS: 90,
    SeriesRange.DAY: 96,
    SeriesRange.DAYS: 90,
}
"""Points of a line: few enough for a page of all plots to load quickly."""
COLUMNS: Final = 75
"""Columns of a flight."""
ROW_SECONDS: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 60,
    SeriesRange.HOURS: 1_800,
    SeriesRange.DAY: 7_200,
    SeriesRange.DAYS: 172_800,
}
"""Seconds in a row of the table of numbers."""
LINK_SECONDS: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 120,
    SeriesRange.HOURS: 7_200,
    SeriesRange.DAY: 14_400,
    SeriesRange.DAYS: 432_000,
}
"""Seconds in a part of a plot that links to its entries; scripts make it a minute."""
RANGE_WORDS: Final[Mapping[SeriesRange, str]] = {
    SeriesRange.MINUTES: "10 minutes",
    SeriesRange.HOURS: "6 hours",
    SeriesRange.DAY: "24 hours",
    SeriesRange.DAYS: "30 days",
}
FLIGHT_TITLES: Final[Mapping[DelayName, str]] = {
    DelayName.PUBLICATION_TO_COMMIT: "From publication to commit",
    DelayName.COMMIT_TO_DELIVERY: "From commit to the first delivery",
}
NOTHING_FLEW: Final[Mapping[DelayName, str]] = {
    DelayName.PUBLICATION_TO_COMMIT: (
        "No new entry with a believable date was committed in this time."
    ),
    DelayName.COMMIT_TO_DELIVERY: "No callback was sent a new entry in this time.",
}
ENTRIES_COUNTED: Final[Mapping[DelayName, str]] = {
    DelayName.PUBLICATION_TO_COMMIT: "entries with a believable date",
    DelayName.COMMIT_TO_DELIVERY: "entries",
}
UNDATED: Final = " Without a believable date: about {:,} more."
NOT_KEPT: Final = (
    " The hub was started in it: what was measured in the last ten seconds before it"
    " was killed is not kept."
)


TEMPLATE: Final = "plots.html"
NO_NUMBER: Final = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlotKind:
    id: str
    title: str
    names: Mapping[SeriesName, str]
    words: Callable[[float], str]
    round_up: Callable[[float], float]


PLOTS: Final = (
    _PlotKind(
        id="entries",
        title="Entries a second",
        names={SeriesName.ENTRIES_NEW: "new", SeriesName.ENTRIES_UPDATED: "updated"},
        words=rate_text,
        round_up=round_decimal,
    ),
    _PlotKind(
        id="deliveries",
        title="Deliveries a second",
        names={
            SeriesName.DELIVERED: "answered 2xx",
            SeriesName.REFUSED: "refused",
            SeriesName.UNANSWERED: "unanswered",
        },
        words=rate_text,
        round_up=round_decimal,
    ),
    _PlotKind(
        id="lag",
        title="How old the oldest is that waits for its first delivery",
        names={
            SeriesName.DELIVERY_LAG: "to callbacks",
            SeriesName.LIVE_LAG: "to live connections",
        },
        words=span_text,
        round_up=round_seconds,
    ),
    _PlotKind(
        id="overdue",
        title="Most overdue feed",
        names={SeriesName.OVERDUE: "overdue for"},
        words=span_text,
        round_up=round_seconds,
    ),
    _PlotKind(
        id="backlog",
        title="Backlog",
        names={
            SeriesName.FANOUTS: "records",
            SeriesName.CHUNKS: "chunks",
            SeriesName.RETRYING: "retrying subscriptions",
        },
        words=rate_text,
        round_up=round_count,
    ),
    _PlotKind(
        id="polls",
        title="Polls a second",
        names={
            SeriesName.POLLS: "all",
            SeriesName.POLLS_FAILED: "failed",
            SeriesName.PUSHES: "pushes of other hubs",
        },
        words=rate_text,
        round_up=round_decimal,
    ),
    _PlotKind(
        id="connections",
        title="Live connections",
        names={SeriesName.CONNECTIONS: "open"},
        words=rate_text,
        round_up=round_count,
    ),
    _PlotKind(
        id="disk",
        title="Disk",
        names={SeriesName.DISK_FREE: "free"},
        words=byte_size,
        round_up=round_decimal,
    ),
    _PlotKind(
        id="memory",
        title="Memory",
        names={SeriesName.MEMORY: "resident"},
        words=byte_size,
        round_up=round_decimal,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberRow:
    """A row of numbers. ``id``: that of its element on a page where rows change.

    ``has_start``: the hub was started in the time of the row.
    """

    id: str
    link: TimeLink
    has_start: bool
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of several pictures as a table; the newest first."""

    columns: tuple[str, ...]
    rows: tuple[NumberRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFlight:
    panels: tuple[FlightPanel, ...]
    numbers: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """HTML that is put into a page unchanged, in an element with this id."""

    id: str
    html: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNumbers:
    columns: tuple[str, ...]
    rows: tuple[ShownPart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPicture:
    panels: tuple[ShownPart, ...]
    plots: tuple[ShownPart, ...]
    flight_numbers: ShownNumbers
    plot_numbers: ShownNumbers


REFRESHED: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 1,
    SeriesRange.HOURS: 10,
    SeriesRange.DAY: 60,
    SeriesRange.DAYS: 60,
}
"""Seconds before a picture is drawn again: changes in less time are hardly visible."""


class HubPicture:
    """Pictures drawn once for all who look at them within `REFRESHED`."""

    def __init__(self, series: HubSeries, clock: Clock) -> None:
        self._series = series
        self._clock = clock
        self._drawn = {range: RangePicture(series, range) for range in SeriesRange}
        self._shown: dict[SeriesRange, tuple[int, ShownPicture]] = {}

    def show(self, range: SeriesRange) -> ShownPicture:
        turn = int(self._clock.unix() // REFRESHED[range])
        known = self._shown.get(range)
        if known is None or known[0] != turn:
            known = self._shown[range] = turn, self._draw(range)
        return known[1]

    def _draw(self, range: SeriesRange) -> ShownPicture:
        """Draw a range: anew until all old values are loaded, then only what
        changed."""
        if not self._series.has_loaded:
            return RangePicture(self._series, range).draw()
        return self._drawn[range].draw()


@dataclass(frozen=True, slots=True)
class _DrawnPart:
    source: object
    drawn: object
    html: Markup


_Drawn = TypeVar("_Drawn")


class RangePicture:
    """The picture of one range: only parts that have changed are drawn again."""

    def __init__(self, series: HubSeries, range: SeriesRange) -> None:
        self._series = series
        self._range = range
        self._lines: dict[SeriesName, Line] = {}
        self._delays: dict[DelayName, DelayLine] = {}
        self._plots: dict[str, _DrawnPart] = {}
        self._rows: dict[str, tuple[NumberRow, Markup]] = {}
        self._scale: tuple[object, TimeScale] | None = None
        self._settled: dict[str, NumberRow] = {}
        """Rows of past times, which stay while any of that time is shown."""

    def draw(self) -> ShownPicture:
        series, range = self._series, self._range
        buckets = series.recent(range, POINTS[range])
        columns = series.recent(range, COLUMNS, have_delays=True)
        lines = self._lines = {
            name: series.line(name, buckets, self._lines.get(name))
            for kind in PLOTS
            for name in kind.names
        }
        delays = self._delays = {
            name: series.delay_line(name, columns, self._delays.get(name))
            for name in DelayName
        }
        beside = _beside(series.amount(SeriesName.ENTRIES_UNDATED, columns))
        starts = series.starts(buckets.first, buckets.end)
        numbers = _numbers(lines, buckets, ROW_SECONDS[range], starts, self._settled)
        flight_numbers = _flight_numbers(delays, columns, starts, self._settled)
        rows = (*numbers.rows, *flight_numbers.rows)
        self._rows = {row.id: self._row(row) for row in rows}
        over = datetime.fromtimestamp(buckets.end - buckets.step - LATEST_SECONDS, UTC)
        self._settled = {row.id: row for row in rows if row.link.until <= over}
        if self._scale is None or self._scale[0] != (buckets, starts):
            self._scale = (buckets, starts), _scale_of(buckets, range, starts)
        scale = self._scale[1]
        return ShownPicture(
            panels=tuple(
                self._panel(each, columns, beside, starts) for each in delays.values()
            ),
            plots=tuple(self._plot(kind, lines, buckets, scale) for kind in PLOTS),
            flight_numbers=self._shown_numbers(flight_numbers),
            plot_numbers=self._shown_numbers(numbers),
        )

    def _plot(
        self,
        kind: _PlotKind,
        lines: Mapping[SeriesName, Line],
        buckets: Buckets,
        scale: TimeScale,
    ) -> ShownPart:
        traces = [
            _trace(lines[name], each, kind.words) for name, each in kind.names.items()
        ]

        def draw() -> Plot:
            return draw_plot(
                kind.id, kind.title, traces, scale, kind.words, round_up=kind.round_up
            )

        def render(plot: Plot) -> Markup:
            return render_macro(TEMPLATE, "plot_of", plot, self._scale_html(scale))

        return self._part(kind.id, (buckets, traces), draw, render)

    def _scale_html(self, scale: TimeScale) -> Markup:
        """The scale that all plots of a range share."""
        render = partial(render_macro, TEMPLATE, "scale_of")
        return self._part("", scale, lambda: scale, render).html

    def _panel(
        self, line: DelayLine, columns: Buckets, beside: str, starts: Sequence[int]
    ) -> ShownPart:
        return self._part(
            _id_of(line.name),
            (columns, line, beside),
            draw=lambda: _panel_of(line, columns, beside, starts),
            render=partial(render_macro, TEMPLATE, "flight_of"),
        )

    def _part(
        self,
        id: str,
        source: object,
        draw: Callable[[], _Drawn],
        render: Callable[[_Drawn], Markup],
    ) -> ShownPart:
        """A part that is drawn anew if its source has changed, and rendered anew if
        that can be seen."""
        known = self._plots.get(id)
        if known is None or known.source != source:
            drawn = draw()
            is_alike = known is not None and known.drawn == drawn
            html = known.html if known and is_alike else render(drawn)
            known = self._plots[id] = _DrawnPart(source, drawn, html)
        return ShownPart(id=id, html=known.html)

    def _row(self, row: NumberRow) -> tuple[NumberRow, Markup]:
        known = self._rows.get(row.id)
        if known is not None and known[0] == row:
            return known
        return row, render_macro(TEMPLATE, "cells_of", row)

    def _shown_numbers(self, numbers: Numbers) -> ShownNumbers:
        return ShownNumbers(
            columns=numbers.columns,
            rows=tuple(
                ShownPart(id=row.id, html=self._rows[row.id][1]) for row in numbers.rows
            ),
        )


def _scale_of(buckets: Buckets, range: SeriesRange, starts: Sequence[int]) -> TimeScale:
    return draw_scale(
        buckets.first,
        buckets.step,
        buckets.count,
        link_seconds=LINK_SECONDS[range],
        starts=starts,
    )


def draw_flight_of(series: HubSeries, since: datetime, until: datetime) -> HubFlight:
    """Draw the flight of entries of a span of time."""
    ends = since.timestamp(), until.timestamp()
    buckets = series.buckets(*ends, COLUMNS, have_delays=True)
    lines = {name: series.delay_line(name, buckets) for name in DelayName}
    starts = series.starts(buckets.first, buckets.end)
    beside = _beside(series.amount(SeriesName.ENTRIES_UNDATED, buckets))
    panels = [_panel_of(each, buckets, beside, starts) for each in lines.values()]
    numbers = _flight_numbers(lines, buckets, starts, {})
    return HubFlight(panels=tuple(panels), numbers=numbers)


def _beside(undated: float) -> str:
    """The sentence on entries of which nobody knows how late they were."""
    about = int(float(f"{undated:.2g}"))
    return UNDATED.format(about) if about else ""


def delay_text(name: DelayName, seconds: float | None) -> str:
    """A delay that entries did not exceed, as `quantile` tells it."""
    if seconds is None:
        return NO_NUMBER
    if seconds > (last := BOUNDS[name][-1]):
        return f"over {span_text(last)}"
    return span_text(seconds)


def _panel_of(
    line: DelayLine, buckets: Buckets, beside: str, starts: Sequence[int]
) -> FlightPanel:
    is_dated = line.name is DelayName.PUBLICATION_TO_COMMIT
    return draw_flight(
        _id_of(line.name),
        FLIGHT_TITLES[line.name],
        line.counts,
        line.bounds,
        line.p50,
        line.p99,
        since=buckets.first,
        step=buckets.step,
        words=partial(delay_text, line.name),
        nothing=NOTHING_FLEW[line.name] + (NOT_KEPT if starts else ""),
        beside=beside if is_dated else "",
        starts=starts,
        is_by_delay=is_dated,
    )


def _id_of(name: DelayName) -> str:
    return name.replace("_", "-")


def _trace(line: Line, name: str, words: Callable[[float], str]) -> LineValues:
    measured = [each for each in line.means if each is not None]
    return LineValues(
        name=name,
        means=line.means,
        lows=line.lows,
        highs=line.highs,
        latest=words(measured[-1]) if measured else "",
    )


def _numbers(
    lines: Mapping[SeriesName, Line],
    buckets: Buckets,
    seconds: int,
    starts: Sequence[int],
    known: Mapping[str, NumberRow],
) -> Numbers:
    """The table of all lines; ``known`` holds the unchanged rows by their ids."""
    shown = [(kind, name) for kind in PLOTS for name in kind.names]

    def cells(part: slice) -> Iterator[str]:
        return (_cell(lines[name], part, kind.words) for kind, name in shown)

    return Numbers(
        columns=tuple(f"{kind.title}: {kind.names[name]}" for kind, name in shown),
        rows=tuple(_rows("n", buckets, seconds, starts, known, cells)),
    )


def _rows(
    prefix: str,
    buckets: Buckets,
    seconds: int,
    starts: Sequence[int],
    known: Mapping[str, NumberRow],
    cells: Callable[[slice], Iterator[str]],
) -> Iterator[NumberRow]:
    for first, last, part in _parts(buckets, seconds):
        id = f"{prefix}{first // 10}-{seconds}"
        yield known.get(id) or NumberRow(
            id=id,
            link=_link(first, last),
            has_start=any(first <= each < last for each in starts),
            cells=tuple(cells(part)),
        )


def _cell(line: Line, part: slice, words: Callable[[float], str]) -> str:
    """The mean, followed by the highest value in brackets if it differs."""
    means = [each for each in line.means[part] if each is not None]
    if not means:
        return NO_NUMBER
    mean = words(sum(means) / len(means))
    most = words(max(each for each in line.highs[part] if each is not None))
    return mean if mean == most else f"{mean} ({most})"


FLIGHT_ROWS: Final = 15
"""The approximate number of rows."""


def _flight_numbers(
    lines: Mapping[DelayName, DelayLine],
    buckets: Buckets,
    starts: Sequence[int],
    known: Mapping[str, NumberRow],
) -> Numbers:
    """The table of a flight; ``known`` holds the unchanged rows by their ids."""
    together = max(round(buckets.count / FLIGHT_ROWS), 1) * buckets.step

    def cells(part: slice) -> Iterator[str]:
        return (cell for line in lines.values() for cell in _delay_cells(line, part))

    return Numbers(
        columns=tuple(
            f"{FLIGHT_TITLES[line.name]}: {what}"
            for line in lines.values()
            for what in (ENTRIES_COUNTED[line.name], "half within", "99 % within")
        ),
        rows=tuple(_rows("f", buckets, together, starts, known, cells)),
    )


def _delay_cells(line: DelayLine, part: slice) -> Iterator[str]:
    counts = [sum(bins) for bins in zip(*line.counts[part], strict=True)]
    yield f"{sum(counts):,}"
    for share in (0.5, 0.99):
        yield delay_text(line.name, quantile(counts, line.bounds, share))


def _parts(buckets: Buckets, seconds: int) -> Iterator[tuple[int, int, slice]]:
    """Spans of ``seconds``, the newest first.

    Each is its begin and end in Unix seconds, and the slice of its buckets.
    """
    start = buckets.first // seconds * seconds
    for first in reversed(range(start, buckets.end, seconds)):
        begin = max(first - buckets.first, 0) // buckets.step
        end = min((first + seconds - buckets.first) // buckets.step, buckets.count)
        if begin < end:
            yield first, first + seconds, slice(begin, end)


def _link(first: int, last: int) -> TimeLink:
    return TimeLink(
        x=0,
        width=0,
        since=datetime.fromtimestamp(first, UTC),
        until=datetime.fromtimestamp(last, UTC),
        words="",
    )


def default_range(uptime: float) -> SeriesRange:
    """The range for which a hub that has been up for ``uptime`` seconds has values."""
    return SeriesRange.MINUTES if uptime < _AN_HOUR else SeriesRange.HOURS


_AN_HOUR: Final = timedelta(hours=1).total_seconds()
