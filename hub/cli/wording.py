"""What commands say: values as people read them, how a command fails, and tables that
fit a terminal."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, Any, Final, TypeVar

import click

from hub.cli import Colour, say, say_coloured, terminal_width
from hub.core.durations import duration
from hub.runtime.clock import SystemClock

Command = TypeVar("Command", bound=Callable[..., Any])


def printable(text: str) -> str:
    """Return another's text as one line that cannot steer the terminal."""
    return "".join(c if c.isprintable() else " " for c in text).strip()


def moment(value: str | None, now: datetime | None = None) -> str:
    """Return a time of RFC 3339 and how far away it is.

    For example ``2026-11-21 10:30:00Z (5 min ago)``; "never" for None and "".
    """
    if not value:
        return "never"
    at = datetime.fromisoformat(value)
    away = (at - (now or SystemClock().now())).total_seconds()
    when = f"in {duration(away)}" if away >= 0 else f"{duration(-away)} ago"
    return f"{at:%Y-%m-%d %H:%M:%S}Z ({when})"


class Since(click.ParamType[str]):
    """A time, in UTC if it has no zone, or an age such as ``2h``, ``15 min`` or ``3d``.

    The command gets a time as the API reads it.
    """

    name = "TIME"

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
        now: datetime | None = None,
    ) -> str:
        found = _AGO.fullmatch(value.strip().lower())
        try:
            if found is None:
                at = datetime.fromisoformat(value.strip())
                at = at if at.tzinfo else at.replace(tzinfo=UTC)
            else:
                seconds = int(found[1]) * _UNITS[found[2]]
                at = (now or SystemClock().now()) - timedelta(seconds=seconds)
            return at.astimezone(UTC).isoformat()
        except (ValueError, OverflowError):
            self.fail("expected a span such as 2h or 3d, or a time", param, ctx)


SINCE: Final = Since()


class SpanType(click.ParamType[float]):
    """A span of time such as ``90``, ``15m`` or ``6 h``; the command gets seconds."""

    name = "SPAN"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = value.strip().lower()
        found = _AGO.fullmatch(f"{text}s" if text.isdigit() else text)
        if found is None:
            self.fail("expected seconds, or a span such as 15m or 6h", param, ctx)
        return float(int(found[1]) * _UNITS[found[2]])


SPAN: Final = SpanType()
_UNITS: Final = {"s": 1, "min": 60, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"([0-9]{1,9}) ?(s|min|m|h|d|w)")


def age(value: str) -> str:
    """Return how long ago a time was: ``5 min``."""
    away = SystemClock().now() - datetime.fromisoformat(value)
    return duration(max(0.0, away.total_seconds()))


def health_of(found: Mapping[str, Any]) -> str:
    """Return how a feed or a subscription is: ``failing since …: answered 500``."""
    health = found["health"]
    reason = f": {health['reason']}" if health["reason"] else ""
    return f"{health['state']} since {moment(health['since'])}{reason}"


def next_try(late: Mapping[str, Any]) -> str:
    """Return in words when a retrying subscription is tried again."""
    if late["under_way"]:
        return "being tried"
    if late["paused"]:
        return "when it is resumed"
    sooner = ", maybe sooner with a new record" if late["attempts"] else ""
    return f"{moment(late['next_try'])}{sooner}"


def json_option(help: str = "Print one JSON object.") -> Callable[[Command], Command]:
    """Give a command ``--json``, for programs: only JSON goes to standard output."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def say_json(document: object) -> None:
    say(json.dumps(document, indent=2))


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


class Failure(click.ClickException):
    """The command could not be done. Exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        message = printable(self.message)
        say_coloured([("fanfare:", Colour.BAD), (f" {message}", None)], err=True)


class HubUnreachable(Failure):
    """No hub answers at the URL. Exit code 3."""

    exit_code = 3


class Undecided(Failure):
    """A page names several feeds, and the caller has to choose one. Exit code 3."""

    exit_code = 3


# --- tables ---

GAP: Final = 2
"""Blanks between two columns."""
LEAST_WIDTH: Final = 8
"""The width that a column keeps when it is cut."""
_CUT: Final = "…"
_STATES: Final = {
    Colour.GOOD: ("ok", "active", "good", "pushed", "added", "ready"),
    Colour.DOUBTFUL: ("slow", "paused", "pending", "known", "retrying"),
    Colour.BAD: ("failing", "gone", "dead", "revoked", "failed", "refused"),
}
_COLOURS: Final = {word: colour for colour, words in _STATES.items() for word in words}
COLOURED: Final = frozenset(("STATE", "HEALTH", "OUTCOME"))
"""Headings of the columns that show states, which are coloured."""


def text_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit_columns(widths: Sequence[int], room: int) -> list[int]:
    """Return widths that fit into ``room`` if they can: the widest give way first."""
    fitted = list(widths)
    excess = sum(fitted) + GAP * (len(fitted) - 1) - room
    while excess > 0 and max(fitted) > LEAST_WIDTH:
        fitted[fitted.index(max(fitted))] -= 1
        excess -= 1
    return fitted


def cut(text: str, width: int) -> str:
    """Shorten a text to ``width``: keep its beginning, and of a URL the end, too."""
    if text_width(text) <= width:
        return text
    kept = (width - 1) // 3 if text.startswith(("http://", "https://")) else 0
    end = _begin(text[::-1], kept)[::-1] if kept else ""
    return f"{_begin(text, width - 1 - kept)}{_CUT}{end}"


def _begin(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += _width(character)
        if taken > width:
            return text[:index]
    return text


def colour_of(heading: str, cell: str) -> Colour | None:
    """Return the colour of a state, by its first word; None for any other column."""
    word = cell.split(maxsplit=1)[0] if cell else ""
    return _COLOURS.get(word.strip(",:")) if heading in COLOURED else None


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as wide as their widest cell; a terminal cuts the widest to fit.

    The last column is not padded.
    """
    cells = [[printable(str(cell)) for cell in row] for row in (headings, *rows)]
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
    room = terminal_width()
    if room is not None:
        widths = fit_columns(widths, room)
    for number, row in enumerate(cells):
        shown = [cut(cell, width) for cell, width in zip(row, widths, strict=True)]
        parts: list[tuple[str, Colour | None]] = []
        for heading, cell, width in zip(headings, shown, widths, strict=True):
            colour = colour_of(heading, cell) if number else Colour.HEADING
            parts += [(cell, colour), (" " * (width - text_width(cell) + GAP), None)]
        say_coloured(_without_end(parts))


def _without_end(
    parts: Sequence[tuple[str, Colour | None]],
) -> Sequence[tuple[str, Colour | None]]:
    """Return the parts of a line without blanks at its end."""
    kept = list(parts)
    while kept and not kept[-1][0].strip():
        kept.pop()
    return kept


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """One ``name  value`` per line; facts without a value are left out."""
    shown = [(name, printable(str(value))) for name, value in facts if value != ""]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        say(f"{name.ljust(width)}  {value}")
