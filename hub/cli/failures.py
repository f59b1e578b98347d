"""How a command fails: one clear line on stderr and a documented exit code."""

from __future__ import annotations

from typing import IO, Any

import click

from hub.cli import say
from hub.cli.wording import printable


class Failure(click.ClickException):
    """The command could not be done: exit code 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        say(f"fanfare: {printable(self.message)}", err=True)


class HubUnreachable(Failure):
    """No hub answers at the URL: exit code 3."""

    exit_code = 3


class Undecided(Failure):
    """A page names several feeds, and it is for the caller to choose: exit code 3."""

    exit_code = 3
