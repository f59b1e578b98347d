"""Where lines, bands, shades and marks of plots are, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf

import pytest

from hub.core.durations import duration
from hub.web.admin.plots import (
    LARGE,
    SHADES,
    SMALL,
    FlightPanel,
    LineValues,
    Plot,
    TimeAxis,
    draw_flight,
    draw_plot,
    draw_scale,
    round_count,
    round_decimal,
    round_seconds,
)
from hub.web.page_rendering import render_macro

NOON = int(datetime(2026, 6, 2, 12, tzinfo=UTC).timestamp())
Values = Sequence[float | None]


def a_trace(means: Values, highs: Values | None = None) -> LineValues:
    return LineValues(name="news", means=means, lows=means, highs=highs or means)


def plot(*traces: LineValues, step: int = 60, link_seconds: int = 120) -> Plot:
    count = len(traces[0].means)
    scale = draw_scale(NOON, step, count, link_seconds=link_seconds)
    return draw_plot("news", "News", traces, scale, "{:g}".format)


def flight(
    counts: Sequence[Sequence[int]],
    p50: Values,
    p99: Values,
    step: int = 60,
    *,
    is_by_delay: bool = False,
) -> FlightPanel:
    return draw_flight(
        "late",
        "Late",
        counts,
        (1.0, 10.0, 100.0),
        p50,
        p99,
        since=NOON,
        step=step,
        words=lambda seconds: "longer" if seconds == inf else duration(seconds),
        beside=" Others came.",
        nothing="None came.",
        is_by_delay=is_by_delay,
    )


def test_a_line_goes_from_bucket_to_bucket_and_is_broken_where_there_is_nothing() -> (
    None
):
    (line,) = plot(a_trace([0, 30, None, 15, None, 30, 30])).lines
    floor, middle, top = SMALL.bottom, (SMALL.top + SMALL.bottom) // 2, SMALL.top
    assert line.path == f"M74,{floor}l41-{floor - top}M196,{middle}h2M279,{top}h41"
    assert line.band == ""


def test_a_band_shows_the_peaks_that_the_line_does_not() -> None:
    (line,) = plot(a_trace([1, 1], highs=[1, 3])).lines
    assert line.path == "M126,77h142"
    assert line.band == "M126,77l142-69l0,69h-142z"


def test_lines_are_told_apart_by_their_dashes() -> None:
    drawn = plot(*[a_trace([1])] * 3)
    assert len({each.dashes for each in drawn.lines}) == 3


@pytest.mark.parametrize(
    ("highest", "words"),
    [
        (0, ["0", "1"]),
        (0.9, ["0", "0.5", "1"]),
        (7, ["0", "5", "10"]),
        (60, ["0", "20", "40", "60"]),
        (2_900, ["0", "1000", "2000", "3000"]),
    ],
)
def test_the_axis_of_values_has_round_numbers(highest: float, words: list[str]) -> None:
    drawn = plot(a_trace([highest]))
    assert [each.words for each in drawn.values] == words
    assert (drawn.values[0].y, drawn.values[-1].y) == (SMALL.bottom, SMALL.top)


@pytest.mark.parametrize(
    ("value", "decimal", "count", "seconds"),
    [
        (0, 0, 0, 0),
        (0.13, 0.2, 1, 0.2),
        (5, 5, 5, 5),
        (11, 20, 20, 20),
        (40, 50, 50, 60),
        (4_000, 5_000, 5_000, 7_200),
        (2_000_000, 2_000_000, 2_000_000, 2_000_000),
    ],
)
def test_marks_are_round_in_what_they_count(
    value: float, decimal: float, count: float, seconds: float
) -> None:
    assert round_decimal(value) == pytest.approx(decimal)
    assert round_count(value) == count
    assert round_seconds(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("seconds", "most", "first", "count"),
    [(600, 5, "12:02", 5), (21_600, 7, "13:00", 6), (30 * 86_400, 5, "00:00", 3)],
)
def test_the_axis_of_times_has_round_ones(
    seconds: int, most: int, first: str, count: int
) -> None:
    axis = TimeAxis(since=NOON, until=NOON + seconds, left=0, right=100)
    ticks = axis.ticks(most)
    assert ticks[0].at.strftime("%H:%M") == first
    assert len(ticks) == count
    assert all(0 < each.x <= 100 for each in ticks)


def test_parts_of_a_plot_lead_to_what_happened_in_them() -> None:
    drawn = plot(a_trace([1] * 5), step=60, link_seconds=120)
    assert [each.query for each in drawn.scale.links] == [
        "since=2026-06-02T12:00Z&until=2026-06-02T12:02Z",
        "since=2026-06-02T12:02Z&until=2026-06-02T12:04Z",
        "since=2026-06-02T12:04Z&until=2026-06-02T12:06Z",
    ]
    assert drawn.scale.links[0].x == SMALL.left
    assert sum(each.width for each in drawn.scale.links) == SMALL.right - SMALL.left


def test_a_sentence_has_the_numbers_of_a_plot() -> None:
    assert plot(a_trace([1, 3, None], highs=[4, 9, None])).sentence == (
        "news: on average 2, at most 9."
    )
    assert plot(a_trace([None, None])).sentence == "Nothing was measured yet."


def test_a_flight_has_a_shade_for_each_cell_by_how_many_are_in_it() -> None:
    drawn = flight([[0, 1, 0, 0], [0, 0, 999, 0]], [3.0, 30.0], [9.0, 90.0])
    weakest, *between, strongest = drawn.shades
    assert len(drawn.shades) == SHADES
    assert between == ["", "", ""]
    middle = (LARGE.left + LARGE.right) // 2
    assert weakest.startswith(f"M{LARGE.left},")
    assert strongest.startswith(f"M{middle},")


def test_neighbours_that_are_equally_strong_are_one_outline() -> None:
    drawn = flight(
        [[0, 5, 0, 0]] * 6 + [[0] * 4] + [[0, 5, 0, 0]], [3.0] * 8, [9.0] * 8
    )
    assert "".join(drawn.shades).count("M") == 2


def test_what_took_longer_stands_higher() -> None:
    drawn = flight([[1, 0, 0, 0], [0, 0, 0, 1]], [0.7, 100.0], [0.9, 100.0])
    (half, most), marks = drawn.lines, [each.y for each in drawn.values]
    assert "-" in half.path
    assert most.dashes != half.dashes
    assert marks == sorted(marks, reverse=True)
    assert [each.words for each in drawn.values] == ["1 s", "10 s", "1 min"]


@pytest.mark.parametrize(
    ("step", "since", "until"),
    [
        (10, "12:00:10Z", "12:00:20Z"),
        (60, "12:01Z", "12:02Z"),
        (1_800, "12:30Z", "13:00Z"),
    ],
)
@pytest.mark.parametrize(
    ("is_by_delay", "order"), [(True, "&order=delay"), (False, "")]
)
def test_a_column_leads_to_its_entries_and_says_how_late_they_were(
    step: int, since: str, until: str, is_by_delay: bool, order: str
) -> None:
    counts = [[0] * 4, [0, 2, 0, 0]]
    values = [None, 3.0], [None, 9.0]
    drawn = flight(counts, *values, step=step, is_by_delay=is_by_delay)
    (link,) = drawn.links
    assert link.words == "2 entries, half in 3 s, 99 % in 9 s"
    assert link.query == f"since=2026-06-02T{since}&until=2026-06-02T{until}{order}"
    assert f"<title>{since}: 2 entries" in drawn.drawn_links


def test_a_sentence_has_the_numbers_of_a_flight() -> None:
    drawn = flight([[0, 2, 0, 0], [0, 0, 1, 0]], [10.0, 100.0], [10.0, 100.0])
    assert drawn.sentence == (
        "3 entries: half within 10 s, 99 % within 1 min 40 s; in the slowest column"
        " 99 % within 1 min 40 s. Others came."
    )
    assert flight([[0] * 4], [None], [None]).sentence == "None came. Others came."


@pytest.mark.parametrize(
    ("starts", "is_short"), [(range(0, 500, 100), False), (range(0, 600, 100), True)]
)
def test_many_starts_are_marks_at_the_axis_and_cover_nothing(
    starts: range, is_short: bool
) -> None:
    scale = draw_scale(0, 10, 60, link_seconds=60, starts=starts)
    drawn = render_macro("plots.html", "scale_of", scale)
    foot, top = SMALL.bottom, SMALL.bottom - 6 if is_short else SMALL.top
    assert drawn.count(f",{top}V{foot}") == len(starts)
