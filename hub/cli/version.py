"""``fanfare version``."""

from __future__ import annotations

import click

from hub import __version__
from hub.cli import say


@click.command()
def version() -> None:
    """Print the version."""
    say(f"fanfare {__version__}")
