"""The command line: one module per noun.

A command's module is imported when the command is asked for. Modules import at the top
only what is quick to import, so that ``fanfare --help`` is, which asks for all; what
runs a hub or a parser is imported by the command that needs it.

Whatever a command prints goes through `say`.

Exit codes: 0 done, 1 failed (in part or in whole), 2 wrong usage, 3 hub unreachable, or
several feeds to choose from.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Final

import click

import hub

COMMANDS: Final = {
    "db": "database_commands:database",
    "deliveries": "operator_commands:deliveries",
    "demo": "demo_command:demo",
    "feeds": "feed_commands:feeds",
    "health": "operator_commands:health",
    "listen": "listen_command:listen",
    "opml": "opml_commands:opml",
    "parse": "parse_command:parse",
    "scp": "operator_commands:scp",
    "serve": "serve_command:serve",
    "simulate": "simulate_command:simulate",
    "subs": "subscription_commands:subscriptions",
    "tail": "tail_command:tail",
    "tokens": "token_commands:tokens",
    "track": "track_commands:track",
    "version": "version_command:version",
}
"""By name, the module of each and its name there."""


_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # Cc but tab and line feed, with C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # that turn the direction of text
    "\u2028\u2029\ud800-\udfff]"  # lines and halves of characters that are none
)


def say(text: str | bytes = "", *, err: bool = False, nl: bool = True) -> None:
    """Print: whatever a command prints goes through here.

    In a terminal, what could steer it, or show text in another order than it has, is
    made visible (``\\x9b``, ``\\u202e``), wherever the text is from. Programs, which
    read standard output when it is no terminal, get it as it is.
    """
    stream = sys.stderr if err else sys.stdout
    if stream is not None and stream.isatty():
        readable = text.decode(errors="replace") if isinstance(text, bytes) else text
        text = visible(readable)
    click.echo(text, err=err, nl=nl)


def visible(text: str) -> str:
    """With control characters, and those that turn text around, written out."""
    return _STEERING.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Commands(click.Group):
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

    Start with `fanfare serve`, then `fanfare feeds add URL` in another terminal.
    """
