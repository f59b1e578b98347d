"""The command line: one module per noun.

A command's module is imported when the command is asked for. Modules import at the top
only what is quick to import, so that ``fanfare --help`` is, which asks for all; what
runs a hub or a parser is imported by the command that needs it.

Exit codes: 0 done, 1 failed (in part or in whole), 2 wrong usage, 3 hub unreachable, or
several feeds to choose from.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

COMMANDS: Final = {
    "db": "database:database",
    "deliveries": "deliveries:deliveries",
    "demo": "demo:demo",
    "feeds": "feeds:feeds",
    "health": "health:health",
    "listen": "listen:listen",
    "opml": "opml:opml",
    "parse": "parse:parse",
    "scp": "scp:scp",
    "serve": "serve:serve",
    "simulate": "simulate:simulate",
    "subs": "subscriptions:subscriptions",
    "tail": "tail:tail",
    "tokens": "tokens:tokens",
    "track": "track:track",
    "version": "version:version",
}
"""By name, the module of each and its name there."""


class Commands(click.Group):
    """Those of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found: click.Command = getattr(import_module(f".{module}", __name__), name)
        return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Fanfare, a self-hosted push hub for feeds.

    Start with `fanfare serve`, then `fanfare feeds add URL` in another terminal.
    """
