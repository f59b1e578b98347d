"""How the hub was over time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response

from hub.runtime.clock import Clock
from hub.runtime.series_memory import (
    BOUNDS,
    SERIES,
    Buckets,
    DelayLine,
    DelayName,
    Line,
    SeriesName,
    Unit,
)
from hub.services import HubSeries
from hub.services.hub_series import SeriesRange
from hub.web.api.selection_input import SPAN, query_span
from hub.web.json_output import JsonObject, Time, json_response
from hub.web.operation import ApiOperation, Parameter, Routes
from hub.web.request_input import query_choice, query_number
from protocols.protocol_errors import InvalidValue
from storage.records import TokenScope

MOST_POINTS: Final = 600
"""The most points of a series."""
DEFAULT_POINTS: Final = 120
NAMES: Final = (*SeriesName, *DelayName)


class LineJson(JsonObject):
    """A series, in buckets of ``step`` seconds from ``since`` on.

    Each bucket has the mean, the lowest mean and the highest value of its measurements,
    or null if there were none.
    """

    name: SeriesName
    what: str
    unit: Unit
    since: Time
    step: int
    means: list[float | None]
    lows: list[float | None]
    highs: list[float | None]

    @classmethod
    def of_line(cls, line: Line, buckets: Buckets) -> Self:
        kind = SERIES[line.name]
        return cls(
            name=line.name,
            what=kind.what,
            unit=kind.unit,
            since=_moment(buckets),
            step=buckets.step,
            means=_rounded(line.means),
            lows=_rounded(line.lows),
            highs=_rounded(line.highs),
        )


class DelayLineJson(JsonObject):
    """How long new entries took, in buckets of ``step`` seconds from ``since`` on.

    ``counts``: for each bucket, the entries in each bin; ``bounds``: the upper ends of
    all bins but the last, in seconds. ``p50``, ``p99``: what half of the entries and 99
    of 100 took at most, one of the bounds; null without entries, or if it is beyond the
    last bound.
    """

    name: DelayName
    since: Time
    step: int
    bounds: list[float]
    counts: list[list[int]]
    p50: list[float | None]
    p99: list[float | None]

    @classmethod
    def of_line(cls, line: DelayLine, buckets: Buckets) -> Self:
        return cls.of(
            line,
            since=_moment(buckets),
            step=buckets.step,
            bounds=list(BOUNDS[line.name]),
        )


class SeriesJson(JsonObject):
    """``starts``: when the hub was started in that time."""

    series: list[LineJson]
    delays: list[DelayLineJson]
    starts: list[Time]


class SeriesRoutes(Routes):
    tag = "operator"

    def __init__(self, series: HubSeries, clock: Clock) -> None:
        self._series = series
        self._clock = clock

    @ApiOperation(
        method="GET",
        path="/series",
        id="list_series",
        scope=TokenScope.ADMIN,
        summary="How the hub was over time: rates, what waited, and how late entries"
        " were",
        description="The answer has `series` (rates, what waits, lags, disk, memory,"
        " …), each with `unit`, `means`, `lows` and `highs` of buckets of `step`"
        " seconds from `since` on, null where nothing was measured; `delays` of new"
        " entries (`publication_to_commit`, `commit_to_delivery`), of each bucket the"
        " `counts` by bin (`bounds` are the upper ends of all but the last), `p50` and"
        " `p99`. `range` is `10min`, `6h`, `24h` or `30d`; or `since` and `until`;"
        " `starts`: when the hub was started in that time. Kept are every second of"
        " ten minutes, every ten seconds of six hours, every five minutes of 30 days.",
        answers={200: SeriesJson},
        query=(
            Parameter(
                name="range",
                help="how far back, in place of since and until",
                choices=tuple(SeriesRange),
            ),
            *SPAN,
            Parameter(
                name="name",
                help="only this series; repeatable",
                choices=NAMES,
                is_repeated=True,
            ),
            Parameter(
                name="points",
                help="the most buckets of a series",
                kind="integer",
                default=DEFAULT_POINTS,
                least=1,
                largest=MOST_POINTS,
            ),
        ),
        problems=(422,),
    )
    async def series(self, request: Request) -> Response:
        points = query_number(request, "points", DEFAULT_POINTS, MOST_POINTS, least=1)
        names = _names(request.query_params.getlist("name"))
        since, until = self._span(request)
        buckets = self._series.buckets(since, until, points)
        spans = self._series.buckets(since, until, points, have_delays=True)
        return json_response(
            SeriesJson(
                series=[
                    LineJson.of_line(self._series.line(each, buckets), buckets)
                    for each in SeriesName
                    if each in names
                ],
                delays=[
                    DelayLineJson.of_line(self._series.delay_line(each, spans), spans)
                    for each in DelayName
                    if each in names
                ],
                starts=[
                    datetime.fromtimestamp(each, UTC)
                    for each in self._series.starts(since, until)
                ],
            )
        )

    def _span(self, request: Request) -> tuple[float, float]:
        """Start and end of the span, in Unix seconds."""
        now = self._clock.now()
        if chosen := query_choice(request, "range", SeriesRange):
            return now.timestamp() - chosen.seconds, now.timestamp()
        since, until = query_span(request, now)
        if since >= until:
            raise InvalidValue("since", "a time before until")
        return since.timestamp(), until.timestamp()


def _names(wanted: Iterable[str]) -> frozenset[str]:
    """The names that are wanted; all if none are. Raises `InvalidValue`."""
    names = frozenset(wanted)
    for each in names.difference(NAMES):
        raise InvalidValue("name", f"one of {', '.join(NAMES)}", each)
    return names or frozenset(NAMES)


def _moment(buckets: Buckets) -> datetime:
    return datetime.fromtimestamp(buckets.first, UTC)


def _rounded(values: Iterable[float | None]) -> list[float | None]:
    """The values with six digits: measurements have no more, like single floats."""
    return [None if each is None else float(f"{each:.6g}") for each in values]
