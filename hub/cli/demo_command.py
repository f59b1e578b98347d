"""``fanfare demo``: the whole hub at work, without a network."""

from __future__ import annotations

import asyncio
import math
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from hub.cli import say
from hub.cli.wording import Failure, json_option, plural, print_table, say_json

if TYPE_CHECKING:
    from hub.demo.arrivals import Arrival, Arrivals, Summary


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(0, 3_600),
    default=20.0,
    show_default=True,
    help="How long to publish entries, in seconds.",
)
@json_option("Print one JSON object with the arrivals by each way.")
def demo(seconds: float, as_json: bool) -> None:
    """Run a hub, a publisher and subscribers, and time every arrival.

    The publisher adds entries to an RSS, an Atom and a JSON feed and pings the hub. A
    webhook that checks signatures, a websocket and an event stream receive them.
    Nothing is left behind. Exit code 0 only if every entry arrived by every way.
    """
    if math.isnan(seconds):  # NaN passes the check of any range
        raise click.BadParameter("expected a number", param_hint="--seconds")
    from hub.demo.demonstration import demonstrate
    from hub.demo.hub_requests import DemoFailed
    from hub.runtime.logs import configure_logs

    configure_logs("error", "console")
    try:
        tell = _tell_nobody if as_json else _tell
        arrivals = asyncio.run(demonstrate(seconds, partial(say, err=as_json), tell))
    except DemoFailed as error:
        raise Failure(str(error)) from error
    if as_json:
        _say_summaries(arrivals)
    else:
        _print_summaries(arrivals)
    if not arrivals.is_complete:
        missing = sum(each.missing for each in arrivals.summaries())
        raise Failure(f"{plural(missing, 'arrival')} missing")


def _tell(arrival: Arrival) -> None:
    way = arrival.way.value.ljust(9)
    say(f"{_milliseconds(arrival.delay):>8}  {way}  {arrival.entry.title}")


def _tell_nobody(arrival: Arrival) -> None:
    """Print nothing: JSON has the summary alone."""


def _say_summaries(arrivals: Arrivals) -> None:
    ways = [asdict(each) for each in arrivals.summaries()]
    say_json({"published": arrivals.published, "ways": ways})


def _print_summaries(arrivals: Arrivals) -> None:
    say(f"\n{plural(arrivals.published, 'entry', 'entries')} published")
    headings = ("WAY", "RSS", "ATOM", "JSON", "MISSING", "MEDIAN", "SLOWEST")
    print_table(headings, [_row(each) for each in arrivals.summaries()])


def _row(summary: Summary) -> tuple[object, ...]:
    return (
        summary.way,
        *summary.came.values(),
        summary.missing,
        _milliseconds(summary.median),
        _milliseconds(summary.slowest),
    )


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
