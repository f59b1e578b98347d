"""``fanfare version``, in a module of its own: it imports nothing else."""

from __future__ import annotations

import json

import click

import hub
from hub.cli import say


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def version(as_json: bool) -> None:
    """Print the version."""
    if as_json:
        say(json.dumps({"version": hub.__version__}))
    else:
        say(f"fanfare {hub.__version__}")
