"""Pictures of the hub over time: its plots, and the flight of entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from markupsafe import Markup

from hub.core.byte_sizes import byte_size
from hub.runtime.clock import Clock
from hub.runtime.series_memory import (
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
    draw_flight,
    draw_plot,
    round_count,
    round_decimal,
    round_seconds,
)
from hub.web.page_rendering import rate_text, render_macro, span_text

POINTS: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 120,
    SeriesRange.HOURS: 90,
    SeriesRange.DAYS: 90,
}
"""Of a line, so that all plots together are a page that is quick to load."""
COLUMNS: Final = 75
"""Of a flight."""
ROW_SECONDS: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 60,
    SeriesRange.HOURS: 1_800,
    SeriesRange.DAYS: 172_800,
}
"""Of a row of the numbers."""
LINK_SECONDS: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 120,
    SeriesRange.HOURS: 3_600,
    SeriesRange.DAYS: 432_000,
}
"""Of a part of a plot that leads to its entries; scripts make it a minute."""
RANGE_WORDS: Final[Mapping[SeriesRange, str]] = {
    SeriesRange.MINUTES: "10 minutes",
    SeriesRange.HOURS: "6 hours",
    SeriesRange.DAYS: "30 days",
}
FLIGHT_TITLES: Final[Mapping[DelayName, str]] = {
    DelayName.PUBLICATION_TO_COMMIT: "From publication to commit",
    DelayName.COMMIT_TO_DELIVERY: "From commit to the first delivery",
}


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
        title="How old the oldest is that waits",
        names={
            SeriesName.DELIVERY_LAG: "for callbacks",
            SeriesName.LIVE_LAG: "for live connections",
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
    link: TimeLink
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What several pictures show, as a table."""

    columns: tuple[str, ...]
    rows: tuple[NumberRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPlots:
    plots: tuple[Plot, ...]
    numbers: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFlight:
    panels: tuple[FlightPanel, ...]
    numbers: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """A plot as it is put into a page, in an element of this id."""

    id: str
    html: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPicture:
    panels: tuple[ShownPart, ...]
    plots: tuple[ShownPart, ...]
    flight_numbers: Markup
    plot_numbers: Markup


REFRESHED: Final[Mapping[SeriesRange, int]] = {
    SeriesRange.MINUTES: 5,
    SeriesRange.HOURS: 30,
    SeriesRange.DAYS: 300,
}
"""Seconds for which a picture stays as it is: less is hardly to be seen in it."""


class HubPicture:
    """What is drawn once for all who look at it within `REFRESHED`."""

    def __init__(self, series: HubSeries, clock: Clock) -> None:
        self._series = series
        self._clock = clock
        self._shown: dict[SeriesRange, tuple[int, ShownPicture]] = {}

    def show(self, range: SeriesRange) -> ShownPicture:
        turn = int(self._clock.unix() // REFRESHED[range])
        known = self._shown.get(range)
        if known is None or known[0] != turn:
            known = self._shown[range] = turn, self._draw(range)
        return known[1]

    def _draw(self, range: SeriesRange) -> ShownPicture:
        flight = draw_recent_flight(self._series, range)
        hub = draw_hub(self._series, range)
        return ShownPicture(
            panels=tuple(_shown("flight_of", each) for each in flight.panels),
            plots=tuple(_shown("plot_of", each) for each in hub.plots),
            flight_numbers=_numbers_html(flight.numbers, "The flight of entries"),
            plot_numbers=_numbers_html(hub.numbers, "The plots"),
        )


def _shown(macro: str, plot: Plot | FlightPanel) -> ShownPart:
    return ShownPart(id=plot.id, html=render_macro(TEMPLATE, macro, plot))


def _numbers_html(numbers: Numbers, label: str) -> Markup:
    return render_macro(TEMPLATE, "numbers_of", numbers, label)


def draw_hub(series: HubSeries, range: SeriesRange) -> HubPlots:
    buckets = series.recent(range, POINTS[range])
    lines = {name: series.line(name, buckets) for kind in PLOTS for name in kind.names}
    plots = [
        draw_plot(
            kind.id,
            kind.title,
            [
                _trace(lines[name], each, kind.words)
                for name, each in kind.names.items()
            ],
            since=buckets.first,
            step=buckets.step,
            words=kind.words,
            link_seconds=LINK_SECONDS[range],
            round_up=kind.round_up,
        )
        for kind in PLOTS
    ]
    numbers = _numbers(lines, buckets, ROW_SECONDS[range])
    return HubPlots(plots=tuple(plots), numbers=numbers)


def draw_recent_flight(series: HubSeries, range: SeriesRange) -> HubFlight:
    return _draw_flight(series, series.recent(range, COLUMNS, have_delays=True))


def draw_flight_of(series: HubSeries, since: datetime, until: datetime) -> HubFlight:
    """Of a span of time."""
    ends = since.timestamp(), until.timestamp()
    return _draw_flight(series, series.buckets(*ends, COLUMNS, have_delays=True))


def _draw_flight(series: HubSeries, buckets: Buckets) -> HubFlight:
    lines = {name: series.delay_line(name, buckets) for name in DelayName}
    panels = [
        draw_flight(
            name.replace("_", "-"),
            FLIGHT_TITLES[name],
            line.counts,
            line.bounds,
            line.p50,
            line.p99,
            since=buckets.first,
            step=buckets.step,
            words=span_text,
        )
        for name, line in lines.items()
    ]
    numbers = _flight_numbers(list(lines.values()), buckets)
    return HubFlight(panels=tuple(panels), numbers=numbers)


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
    lines: Mapping[SeriesName, Line], buckets: Buckets, seconds: int
) -> Numbers:
    """A row for each part that a click leads to; the newest first."""
    shown = [(kind, name) for kind in PLOTS for name in kind.names]
    return Numbers(
        columns=tuple(f"{kind.title}: {kind.names[name]}" for kind, name in shown),
        rows=tuple(
            NumberRow(
                link=_link(first, last),
                cells=tuple(
                    _cell(lines[name], part, kind.words) for kind, name in shown
                ),
            )
            for first, last, part in _parts(buckets, seconds)
        ),
    )


def _cell(line: Line, part: slice, words: Callable[[float], str]) -> str:
    """The mean, and the highest value in brackets where that is another one."""
    means = [each for each in line.means[part] if each is not None]
    if not means:
        return NO_NUMBER
    mean = words(sum(means) / len(means))
    most = words(max(each for each in line.highs[part] if each is not None))
    return mean if mean == most else f"{mean} ({most})"


FLIGHT_ROWS: Final = 15
"""At most about so many."""


def _flight_numbers(lines: Sequence[DelayLine], buckets: Buckets) -> Numbers:
    together = -(-buckets.count // FLIGHT_ROWS) * buckets.step
    return Numbers(
        columns=tuple(
            f"{FLIGHT_TITLES[line.name]}: {what}"
            for line in lines
            for what in ("entries", "half within", "99 % within")
        ),
        rows=tuple(
            NumberRow(
                link=_link(first, last),
                cells=tuple(
                    cell for line in lines for cell in _delay_cells(line, part)
                ),
            )
            for first, last, part in _parts(buckets, together)
        ),
    )


def _delay_cells(line: DelayLine, part: slice) -> Iterable[str]:
    counts = [sum(bins) for bins in zip(*line.counts[part], strict=True)]
    yield f"{sum(counts):,}"
    for share in (0.5, 0.99):
        seconds = quantile(counts, line.bounds, share)
        yield NO_NUMBER if seconds is None else span_text(seconds)


def _parts(buckets: Buckets, seconds: int) -> Iterable[tuple[int, int, slice]]:
    """Spans of so many seconds, in Unix seconds, with their buckets; the newest
    first."""
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
    """What a hub that has been up for so many seconds has something of."""
    return SeriesRange.MINUTES if uptime < _AN_HOUR else SeriesRange.HOURS


_AN_HOUR: Final = timedelta(hours=1).total_seconds()
