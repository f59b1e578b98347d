"""``fanfare audit``: who did what."""

from __future__ import annotations

from typing import Final

import click

from hub.cli import examples, say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.wording import json_option, moment, print_table, say_json

TARGETS: Final = (
    *("feed", "subscription", "token", "plan", "import", "watched list"),
    *("dead letter", "connection", "playground", "callback", "topic", "other"),
)
SOURCES: Final = ("api", "cli", "pages", "account pages", "superfeedr")


@click.command(
    epilog=examples(
        "fanfare audit --since 2d --outcome refused",
        "fanfare audit --target feed --id 12 --without fetch_feed",
        "fanfare audit --account alice --operation unsubscribe",
    )
)
@click.option("--account", help="Only what this account did.")
@click.option("--token", type=click.IntRange(1), help="Only with the token of this id.")
@click.option("--session", help="Only what was done in this browser's session.")
@click.option("--source", type=click.Choice(SOURCES), help="Only by these means.")
@click.option("--operation", help="Only this operation, by its operationId.")
@click.option("--without", metavar="OPERATION", help="All but this operation.")
@click.option(
    "--target", type=click.Choice(TARGETS), help="Only to this kind of thing."
)
@click.option("--id", type=click.IntRange(1), help="Only to the one of this id.")
@click.option(
    "--outcome", type=click.Choice(("done", "refused")), help="Only with this outcome."
)
@click.option("--since", metavar="AGE|TIME", help="Only since then, such as 2h.")
@click.option("--until", metavar="AGE|TIME", help="Only before then.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="The most to list.",
)
@json_option("Print one JSON array.")
@speaks_to_hub
def audit(hub: Hub, /, limit: int, as_json: bool, **given: object) -> None:
    """List who did what, the latest first."""
    found = _latest(hub, limit, given)
    if as_json:
        say_json(found)
        return
    if not found:
        say("nothing like that was done, or it is no longer kept")
        return
    print_table(
        ("WHEN", "WHO", "BY", "WHAT", "TO", "OUTCOME"),
        [
            (
                moment(each["at"]),
                _who(each),
                each["source"],
                ": ".join(filter(None, (each["operation"], each["detail"]))),
                _target(each),
                each["status"] or "cut off",
            )
            for each in found
        ],
    )


def _latest(hub: Hub, limit: int, given: Document) -> list[Document]:
    found: list[Document] = []
    for each in hub.each("/api/audit", "records", by="before", **given):
        found.append(each)
        if len(found) == limit:
            break
    return found


def _who(record: Document) -> str:
    token = f" (token {record['token']})" if record["token"] else ""
    return f"{record['account']}{token}, {record['address']}"


def _target(record: Document) -> str:
    parts = record["target"], record["target_id"], record["target_name"]
    return " ".join(str(each) for each in parts if each)
