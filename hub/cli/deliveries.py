"""``fanfare deliveries``: what is late or was given up."""

from __future__ import annotations

import json

import click

from hub.cli import say
from hub.cli.client import Hub, speaks_to_hub
from hub.cli.wording import moment, next_try, print_table


@click.group()
def deliveries() -> None:
    """Deliveries in trouble: list, retry."""


@deliveries.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True)
@speaks_to_hub
def list_deliveries(hub: Hub, as_json: bool, limit: int) -> None:
    """List stragglers (to be tried again) and dead ranges (given up)."""
    found = hub.get("/api/deliveries", limit=limit)
    if as_json:
        say(json.dumps(found, indent=2))
        return
    if not found["stragglers"] and not found["dead"]:
        say("nothing is late and nothing was given up")
    if found["stragglers"]:
        print_table(
            ("LATE", "SUBSCRIPTION", "TRIES", "NEXT TRY", "LAST ERROR", "CALLBACK"),
            [
                (
                    "straggler",
                    each["subscription"],
                    each["attempts"],
                    next_try(each["next_try"], each["under_way"]),
                    each["last_error"] or each["last_status"],
                    each["callback"],
                )
                for each in found["stragglers"]
            ],
        )
    if found["dead"]:
        print_table(
            ("DEAD", "SUBSCRIPTION", "RECORDS", "SINCE", "REASON", "CALLBACK"),
            [
                (
                    each["id"],
                    each["subscription"],
                    f"{each['first']}-{each['last']}",
                    moment(each["at"]),
                    each["reason"],
                    each["callback"],
                )
                for each in found["dead"]
            ],
        )


@deliveries.command()
@click.option("--subscription", type=click.IntRange(1), help="Try a late one now.")
@click.option("--dead", type=click.IntRange(1), help="Deliver a dead range after all.")
@speaks_to_hub
def retry(hub: Hub, subscription: int | None, dead: int | None) -> None:
    """Try a delivery again, now."""
    if (subscription is None) == (dead is None):
        raise click.UsageError("name either --subscription or --dead")
    body = {"dead": dead} if subscription is None else {"subscription": subscription}
    hub.post("/api/deliveries/retry", body)
    say("due now; `fanfare subs show` tells how it went")
