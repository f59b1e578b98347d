"""``fanfare version``."""

from __future__ import annotations

import click

from hub import __version__


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"fanfare {__version__}")
