"""``fanfare version``, in a module of its own: it imports nothing else."""

from __future__ import annotations

import click

import hub
from hub.cli import say


@click.command()
def version() -> None:
    """Print the version."""
    say(f"fanfare {hub.__version__}")
