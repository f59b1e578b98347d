"""The command line: one module per noun.

A command's module is imported when the command is asked for. ``fanfare --help`` imports
all of them. To keep it quick, a module imports at the top only what is quick to import;
what runs a hub or a parser is imported inside the command that needs it.

Whatever a command prints goes through `say`, `say_coloured` and `say_in_place`.

Exit codes: 0 done, 1 failed (in part or in whole), 2 wrong usage, 3 hub unreachable, or
several feeds to choose from.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from enum import StrEnum
from importlib import import_module
from typing import Final, Literal

import click

import hub

COMMANDS: Final = {
    "account": "account_command:account",
    "accounts": "account_command:accounts",
    "audit": "audit_command:audit",
    "db": "database_commands:database",
    "connections": "connection_commands:connections",
    "deliveries": "operator_commands:deliveries",
    "demo": "demo_command:demo",
    "entries": "series_commands:entries",
    "entry": "entry_command:entry",
    "events": "event_commands:events",
    "feeds": "feed_commands:feeds",
    "health": "operator_commands:health",
    "hubs": "operator_commands:hubs",
    "listen": "listen_command:listen",
    "opml": "opml_commands:opml",
    "outputs": "operator_commands:outputs",
    "parse": "parse_command:parse",
    "plans": "plan_commands:plans",
    "playground": "playground_commands:playground",
    "scp": "operator_commands:scp",
    "series": "series_commands:series",
    "serve": "serve_command:serve",
    "settings": "operator_commands:settings",
    "simulate": "simulate_command:simulate",
    "subs": "subscription_commands:subscriptions",
    "tail": "tail_command:tail",
    "tokens": "token_commands:tokens",
    "track": "track_commands:track",
    "ui": "ui_command:ui",
    "version": "version_command:version",
}
"""For each name of a command, its module and the name of its object there."""


_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # Cc without tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # set the direction of text
    "\u2028\u2029\ud800-\udfff]"  # line separators, and lone surrogates
)


def say(text: str | bytes = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text, or bytes of UTF-8.

    In a terminal, characters that could steer it or reorder the text are written out
    (``\\x9b``, ``\\u202e``), wherever the text is from. A stream that is no terminal is
    read by a program, which gets the text unchanged.
    """
    if is_terminal(err=err):
        readable = text.decode(errors="replace") if isinstance(text, bytes) else text
        text = visible(readable)
    _clear_line_in_place()
    click.echo(text, err=err, nl=nl)


class Colour(StrEnum):
    """How a terminal shows a part of a line: the parameter of its escape sequence."""

    HEADING = "1"
    GOOD = "32"
    DOUBTFUL = "33"
    BAD = "31"


def say_coloured(
    parts: Iterable[tuple[str, Colour | None]], *, err: bool = False
) -> None:
    """Print a line of parts, in their colours where a terminal shows them.

    https://no-color.org: "when present and not an empty string (regardless of its
    value), prevents the addition of ANSI color".
    """
    has_terminal = is_terminal(err=err)
    has_colours = has_terminal and not os.environ.get("NO_COLOR")
    line = "".join(
        _coloured(visible(text) if has_terminal else text, has_colours and colour)
        for text, colour in parts
    )
    _clear_line_in_place()
    click.echo(line, err=err)


def _coloured(text: str, colour: Colour | Literal[False] | None) -> str:
    return f"\x1b[{colour}m{text}\x1b[m" if colour else text


def say_in_place(text: str) -> None:
    """Show a line at the end of the terminal; the next line overwrites it.

    A "" removes it. Nothing is shown if standard error is no terminal.
    """
    width = terminal_width(err=True)
    if width is None:
        return
    _clear_line_in_place()
    if text:
        click.echo(f"{visible(text)[: width - 1]}\r", err=True, nl=False)
        _LINE_IN_PLACE.append(text)


_LINE_IN_PLACE: list[str] = []
"""The line that `say_in_place` shows now; empty if there is none."""


def _clear_line_in_place() -> None:
    if _LINE_IN_PLACE:
        _LINE_IN_PLACE.clear()
        if is_terminal(err=True):
            click.echo("\r\x1b[K", err=True, nl=False)


def is_terminal(*, err: bool = False) -> bool:
    stream = sys.stderr if err else sys.stdout
    return stream is not None and stream.isatty()


USUAL_WIDTH: Final = 80
"""The width of a terminal that does not tell it."""


def terminal_width(*, err: bool = False) -> int | None:
    """Return the width of the terminal in columns; None where there is no terminal."""
    if not is_terminal(err=err):
        return None
    named = os.environ.get("COLUMNS", "")
    if named.isascii() and named.isdigit() and int(named):
        return int(named)
    stream = sys.stderr if err else sys.stdout
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL_WIDTH
    except (OSError, ValueError):  # the stream is no file of the operating system
        return USUAL_WIDTH


def visible(text: str) -> str:
    """Return the text with control characters and direction marks written out."""
    return _STEERING.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class VerbGroup(click.Group):
    """A group that lists each command with the whole first sentence of its help."""

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        listed = [
            (name, _first_sentence(command.help or ""))
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) and not command.hidden
        ]
        if listed:
            with formatter.section("Commands"):
                formatter.write_dl(listed)


def examples(*lines: str) -> str:
    """The end of a command's help: examples, one a line, as they are typed."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))


def _first_sentence(help: str) -> str:
    paragraph = " ".join(help.partition("\n\n")[0].split())
    return re.split(r"(?<=[.?!])\s", paragraph, maxsplit=1)[0]


class Commands(VerbGroup):
    """The commands of `COMMANDS`, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found: click.Command = getattr(import_module(f".{module}", __name__), name)
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(hub.__version__, message="fanfare %(version)s")
def main() -> None:
    """Fanfare, a self-hosted push hub for feeds.

    Start a hub with `fanfare serve`. Then, in another terminal, add a feed with
    `fanfare feeds add URL` or watch one with `fanfare listen URL`. `fanfare demo` shows
    everything at work without a network.
    """
