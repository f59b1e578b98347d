"""``fanfare series`` and ``entries``: how the hub was over time, and what came when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from math import inf
from typing import Final

import click

from hub.cli import examples, say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.wording import (
    SINCE,
    Command,
    json_option,
    plural,
    print_table,
    say_json,
)
from hub.core.byte_sizes import byte_size
from hub.core.durations import duration

RANGES: Final = ("10min", "6h", "24h", "30d")
DEFAULT_RANGE: Final = "6h"
NONE: Final = "-"


def _span_options(since_help: str) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in (
            click.option(
                "--until", type=SINCE, help="Before then, by default now: as --since."
            ),
            click.option("--since", type=SINCE, help=since_help),
        ):
            command = option(command)
        return command

    return decorate


@click.command(
    epilog=examples(
        "fanfare series --range 10min",
        "fanfare series --name entries_new --since 2h",
        "fanfare series --name commit_to_delivery",
    )
)
@click.option(
    "--range",
    "back",
    type=click.Choice(RANGES),
    help=f"How far back.  [default: {DEFAULT_RANGE}]",
)
@_span_options("From then on, in place of --range: an age such as 2h, or a time.")
@click.option(
    "--name",
    "names",
    multiple=True,
    help="Only this series; repeatable. Of a single one every value is shown.",
)
@click.option(
    "--points",
    type=click.IntRange(1, 600),
    help="The most values of a series.  [default: 120]",
)
@json_option()
@speaks_to_hub
def series(
    hub: Hub,
    back: str | None,
    since: str | None,
    until: str | None,
    names: tuple[str, ...],
    points: int | None,
    as_json: bool,
) -> None:
    """Show how the hub was over time: rates, what waited, and how late entries were.

    Every second of the last ten minutes is kept, every ten seconds of six hours, and
    every five minutes of 30 days.
    """
    if back and (since or until):
        raise click.UsageError("give either --range, or --since and --until")
    has_span = since or until
    found = hub.get(
        "/api/series",
        range=None if has_span else back or DEFAULT_RANGE,
        since=since,
        until=until,
        name=names or None,
        points=points,
    )
    if as_json:
        say_json(found)
    elif len(names) == 1:
        _print_values(found)
    else:
        _print_summary(found)


def _print_summary(found: Document) -> None:
    if found["series"]:
        print_table(
            ("SERIES", "LATEST", "MEAN", "HIGHEST", "WHAT"),
            [_summary(each) for each in found["series"]],
        )
    if found["delays"]:
        print_table(
            ("DELAY", "ENTRIES", "LATEST HALF", "LATEST 99 %", "SLOWEST 99 %"),
            [_delay_summary(each) for each in found["delays"]],
        )
    if starts := found.get("starts"):
        times = "time" if len(starts) == 1 else "times"
        say(
            f"The hub was started {len(starts):,} {times} in it,"
            f" the last at {_moment(starts[-1])}"
        )


def _summary(line: Document) -> tuple[str, ...]:
    means = [each for each in line["means"] if each is not None]
    highs = [each for each in line["highs"] if each is not None]
    words = _WORDS[line["unit"]]
    numbers = (
        (words(means[-1]), words(sum(means) / len(means)), words(max(highs)))
        if means
        else (NONE,) * 3
    )
    return (line["name"], *numbers, line["what"])


def _delay_summary(line: Document) -> tuple[str, ...]:
    last, end = line["bounds"][-1], inf
    halves, most = (
        [
            end if each is None else each
            for each, counts in zip(line[share], line["counts"], strict=True)
            if any(counts)
        ]
        for share in ("p50", "p99")
    )
    entries = f"{sum(map(sum, line['counts'])):,}"
    if not halves:
        return (line["name"], entries, NONE, NONE, NONE)
    spans = (_within(each, last) for each in (halves[-1], most[-1], max(most)))
    return (line["name"], entries, *spans)


def _within(seconds: float | None, last: float) -> str:
    """A delay that is known to be no longer, or to be beyond the last bound."""
    return f"> {_span(last)}" if seconds in (None, inf) else _span(seconds)


def _print_values(found: Document) -> None:
    for line in found["series"]:
        words = _WORDS[line["unit"]]
        rows = zip(line["means"], line["lows"], line["highs"], strict=True)
        print_table(
            ("FROM", "MEAN", "LOWEST", "HIGHEST"),
            [
                (at, *(NONE if each is None else words(each) for each in row))
                for at, row in zip(_times(line), rows, strict=False)
            ],
        )
    for line in found["delays"]:
        rows = zip(line["counts"], line["p50"], line["p99"], strict=True)
        print_table(
            ("FROM", "ENTRIES", "HALF WITHIN", "99 % WITHIN"),
            [
                (
                    at,
                    f"{sum(counts):,}",
                    *(
                        _within(each, line["bounds"][-1]) if any(counts) else NONE
                        for each in (p50, p99)
                    ),
                )
                for at, (counts, p50, p99) in zip(_times(line), rows, strict=False)
            ],
        )


def _moment(written: str) -> str:
    return f"{datetime.fromisoformat(written):%Y-%m-%d %H:%M:%S}Z"


def _times(line: Document) -> Iterator[str]:
    """Yield when each bucket begins, endlessly."""
    at = datetime.fromisoformat(line["since"])
    while True:
        yield f"{at:%Y-%m-%d %H:%M:%S}Z"
        at += timedelta(seconds=line["step"])


def _span(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    return f"{seconds * 1e3:.3g} ms" if 0 < seconds < 1 else duration(seconds)


_WORDS: Final[Mapping[str, Callable[[float], str]]] = {
    "a second": lambda value: f"{value:.3g}/s",
    "": lambda value: f"{value:,.3g}" if value < 1_000 else f"{value:,.0f}",
    "seconds": _span,
    "bytes": byte_size,
    "cores": lambda value: f"{100 * value:.3g} %",
}


@click.command(
    epilog=examples(
        "fanfare entries --since 10min",
        "fanfare entries --since 2026-11-27T14:05Z --until 2026-11-27T14:06Z",
    )
)
@_span_options("From then on: an age such as 2h, or a time.  [default: 10min]")
@click.option(
    "--order",
    type=click.Choice(("earliest", "latest", "delay")),
    help="Which to list first. delay: those committed longest after their"
    " publication, among the few hundred that are read.  [default: earliest]",
)
@click.option("--feed", type=click.IntRange(1), help="Only of the feed with this id.")
@click.option("--search", help="Only with all of these words in the title.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="The most to list.",
)
@json_option()
@speaks_to_hub
def entries(
    hub: Hub,
    since: str | None,
    until: str | None,
    order: str | None,
    feed: int | None,
    search: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the entries that were committed in a span of time, with their delays.

    New and updated ones of all feeds.
    """
    found: list[Document] = []
    cursor = None
    while True:
        page = hub.get(
            "/api/entries",
            since=since,
            until=until,
            order=order,
            feed=feed,
            search=search,
            limit=min(limit - len(found), 1_000),
            cursor=cursor,
        )
        found += page["entries"]
        cursor = page["next"]
        if cursor is None or len(found) >= limit:
            break
    if as_json:
        say_json({"entries": found, "next": cursor})
        return
    if found:
        print_table(
            ("ID", "COMMITTED", "AFTER PUBLICATION", "DELIVERED AFTER", "TITLE", "URL"),
            [_entry(each) for each in found],
        )
    more = "; there are more" if cursor else ""
    if reached := page.get("reached"):
        more = f"; looked as far as {_moment(reached)}, others may match"
    if page["examined"] is not None:
        undated = page["undated"]
        left_out = f"; {undated} without a believable date left out" if undated else ""
        more = f" of {page['examined']} of that time{left_out}{_others(page)}"
    say(f"{plural(len(found), 'entry', 'entries')}{more}", err=True)


def _others(page: Document) -> str:
    """What is known of entries that were not looked at for an order by delay."""
    if page["others_within"] == 0:
        return "; no others have a believable date"
    if page["others_within"] is not None:
        return f"; the others came within {_span(page['others_within'])}"
    return "; others were not looked at" if page["has_more"] else ""


def _entry(entry: Document) -> tuple[str, ...]:
    at = datetime.fromisoformat(entry["committed_at"])
    delivery = entry["commit_to_delivery"]
    at_most = "" if entry["exact"] or delivery is None else "<= "
    return (
        str(entry["id"]),
        f"{at:%Y-%m-%d %H:%M:%S}Z",
        _span(entry["publication_to_commit"]),
        f"{at_most}{_span(delivery)}",
        entry["title"] or "(untitled)",
        entry["url"],
    )
