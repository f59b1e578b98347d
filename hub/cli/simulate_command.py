"""``fanfare simulate``: compare ways to plan polls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hub.cli import examples, say
from hub.cli.hub_client import read_settings
from hub.cli.wording import Failure, print_table

if TYPE_CHECKING:
    from hub.simulation.comparison import Result
    from hub.simulation.traces import Trace


@click.command(
    epilog=examples(
        "fanfare simulate",
        "fanfare simulate --history --polls-per-day 24 --plot delays.svg",
    )
)
@click.argument(
    "traces",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@click.option(
    "--polls-per-day",
    type=click.FloatRange(0.1, 1_440),
    default=48.0,
    show_default=True,
    help="Polls a day for each feed, the same for every policy.",
)
@click.option("--seed", type=int, help="Generate posting times from this number.")
@click.option(
    "--feeds",
    "feeds",
    type=click.IntRange(1, 10_000),
    default=60,
    show_default=True,
    help="The number of feeds to generate, with --seed.",
)
@click.option(
    "--days",
    type=click.IntRange(2, 1_000),
    default=28,
    show_default=True,
    help="The number of days to generate, with --seed.",
)
@click.option("--history", is_flag=True, help="Replay the entries in the database.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True),
    help="Draw the delays in this SVG file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def simulate(
    traces: str | None,
    polls_per_day: float,
    seed: int | None,
    feeds: int,
    days: int,
    history: bool,
    plot: str | None,
    as_json: bool,
) -> None:
    """Compare ways to plan polls on posting times, with the same number of polls.

    TRACES is a JSON file, or "-": {"feeds": [{"feed": …, "posts": [Unix seconds, …]}]}.
    Without TRACES, --seed or --history, the bundled traces are replayed. Each planner
    learns from the first 60 % of a feed's span and is tested on the rest. The same
    input gives the same output.
    """
    if sum((traces is not None, seed is not None, history)) > 1:
        raise click.UsageError("give only one of TRACES, --seed and --history")
    from hub.simulation.comparison import compare, draw, policies_for

    replayed = _history() if history else _traces(traces, seed, feeds, days)
    results = compare(policies_for(replayed), replayed, polls_per_day)
    if plot:
        try:
            Path(plot).write_text(draw(results), encoding="utf-8")
        except OSError as error:
            raise Failure(f"cannot write {plot}: {error.strerror}") from error
    if as_json:
        say(json.dumps(_document(results, replayed), indent=2))
    else:
        _print(results, replayed)


def _traces(
    path: str | None, seed: int | None, feeds: int, days: int
) -> tuple[Trace, ...]:
    from hub.simulation.traces import MOST_BYTES, bundled_traces, generate, read_traces
    from protocols.protocol_errors import InvalidValue

    if path is not None:
        try:
            with click.open_file(path, "rb") as file:
                return read_traces(file.read(MOST_BYTES + 1))
        except (InvalidValue, OSError) as error:
            raise Failure(f"cannot replay {path}: {error}") from error
    return bundled_traces() if seed is None else generate(seed, feeds, days)


def _history() -> tuple[Trace, ...]:
    from hub.simulation.traces import LEAST_POSTS, LONGEST_SPAN, Trace
    from storage.database_url import read_entry_times
    from storage.errors import StorageError

    database = read_settings().database
    try:
        times = read_entry_times(database)
    except StorageError as error:
        raise Failure(str(error)) from error
    traces = tuple(
        Trace(feed=url, posts=posts)
        for url, posts in times.items()
        if len(set(posts)) >= LEAST_POSTS and posts[-1] - posts[0] <= LONGEST_SPAN
    )
    if not traces:
        raise Failure(f"no feed in {database} has {LEAST_POSTS} entries yet")
    return traces


def _document(results: Sequence[Result], traces: Sequence[Trace]) -> dict[str, object]:
    return {
        "feeds": len(traces),
        "policies": [
            {
                "policy": result.policy,
                "mean": round(result.mean, 3),
                "mean_by_feed": round(result.mean_by_feed, 3),
                "p50": round(result.percentile(0.5), 3),
                "p90": round(result.percentile(0.9), 3),
                "p99": round(result.percentile(0.99), 3),
                "found": len(result.delays),
                "lost": result.lost,
                "polls_per_feed_day": round(result.polls_per_day, 4),
                "budget": result.budget,
                "spend": round(result.spend, 4),
                "hint_violations": result.early,
                "knob": result.knob,
            }
            for result in results
        ],
    }


_HEADINGS = (
    *("POLICY", "MEAN", "OF FIXED", "BY FEED", "OF FIXED"),
    *("P50", "P90", "P99", "LOST", "POLLS", "EARLY"),
)


def _print(results: Sequence[Result], traces: Sequence[Trace]) -> None:
    found = max(len(result.delays) for result in results)
    say(f"{len(traces)} feeds, {found} entries; delays in minutes\n")
    fixed, fixed_by_feed = results[0].mean or 1.0, results[0].mean_by_feed or 1.0
    print_table(
        _HEADINGS,
        [
            (
                result.policy,
                f"{result.mean / 60:.2f}",
                f"{result.mean / fixed:.2f}",
                f"{result.mean_by_feed / 60:.2f}",
                f"{result.mean_by_feed / fixed_by_feed:.2f}",
                *(f"{result.percentile(p) / 60:.2f}" for p in (0.5, 0.9, 0.99)),
                result.lost,
                f"{result.polls_per_day:.2f}",
                result.early,
            )
            for result in results
        ],
    )
    say(
        "\nMEAN is over all entries, BY FEED the mean of the feeds' means."
        "\nPOLLS are per feed and day. LOST entries had left the document by the poll."
        "\nEARLY polls came before a max-age was over or within skipHours."
    )
