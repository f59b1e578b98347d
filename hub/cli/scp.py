"""``fanfare scp``: collections for crawlers."""

from __future__ import annotations

import json

import click

from hub.cli import say
from hub.cli.client import Hub, speaks_to_hub
from hub.cli.wording import print_table


@click.group()
def scp() -> None:
    """Collections of pages for crawlers (SCP): build."""


@scp.command()
@click.option("--snapshots", is_flag=True, help="All snapshots, too, due or not.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speaks_to_hub
def build(hub: Hub, snapshots: bool, as_json: bool) -> None:
    """Build now what has changed, and the snapshots that are due."""
    found = hub.post("/api/scp/build", {"snapshots": snapshots})
    if as_json:
        say(json.dumps(found, indent=2))
        return
    if not found["collections"]:
        say("nothing has changed")
        return
    print_table(
        ("TYPE", "SECTION", "PAGES", "BYTES", "NAME"),
        [
            (each["type"], each["section"], each["pages"], each["size"], each["name"])
            for each in found["collections"]
        ],
    )
