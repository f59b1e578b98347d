"""``fanfare health``."""

from __future__ import annotations

import json

import click

from hub.cli import say
from hub.cli.client import Hub, speaks_to_hub
from hub.cli.failures import Failure
from hub.cli.wording import moment, print_facts
from hub.core.durations import duration


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speaks_to_hub
def health(hub: Hub, as_json: bool) -> None:
    """Is the hub ready, and how much is waiting? Exit code 1 if it is not ready."""
    found = hub.get("/api/health")
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        backlog, database = found["backlog"], found["database"]
        print_facts(
            [
                ("hub", f"{hub.url}, version {found['version']}"),
                ("up for", duration(found["uptime"])),
                ("feeds", backlog["feeds"]),
                ("oldest due", _due(backlog["oldest_due"])),
                ("subscriptions", backlog["subscriptions"]),
                (
                    "to deliver",
                    f"{backlog['fanouts']} records, {backlog['chunks']} chunks",
                ),
                ("stragglers", backlog["stragglers"]),
                ("dead", backlog["dead"]),
                ("database", f"{database['location']}, {database['size_bytes']} bytes"),
            ]
        )
    for warning in found["warnings"]:
        say(f"warning: {warning}", err=True)
    if not found["ready"]:
        raise Failure("not ready: " + "; ".join(found["troubles"]))


def _due(at: str | None) -> str:
    return "nothing is due" if at is None else moment(at)
