"""``fanfare connections``: the clients that are connected to the live stream."""

from __future__ import annotations

from itertools import islice

import click

from hub.cli import VerbGroup, examples, say
from hub.cli.hub_client import Hub, speaks_to_hub
from hub.cli.selection_options import limit_option, selection
from hub.cli.wording import age, json_option, print_table, printable, say_json
from hub.core.byte_sizes import byte_size

TRANSPORTS = ("websocket", "sse", "stream", "poll")
SORTS = ("id", "-id", "-queue", "-messages", "-bytes", "-topics")


@click.group(cls=VerbGroup, name="connections")
def connections() -> None:
    """List live connections: websockets, event streams and long polls; end one."""


@connections.command(
    name="list",
    epilog=examples(
        "fanfare connections list --sort -queue --limit 20",
        "fanfare connections list --topic https://example.org/feed.xml",
    ),
)
@click.option(
    "--transport", type=click.Choice(TRANSPORTS), help="How they are connected."
)
@click.option("--topic", default="", help="A topic that they listen to.")
@click.option("--account", default="", help="Whose token they showed; anonymous: none.")
@click.option("--address", default="", help="Where they are from.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    help="The order: from the oldest (id), the newest (-id), or from the most.",
)
@limit_option
@json_option("Print one JSON array.")
@speaks_to_hub
def list_connections(
    hub: Hub, /, sort: str | None, limit: int | None, as_json: bool, **given: object
) -> None:
    """List live connections, with what waits for each and what it was sent."""
    wanted = selection(**given)
    if sort:
        wanted["sort"] = sort
    every = hub.each("/api/connections", "connections", by="cursor", **wanted)
    found = list(islice(every, limit))
    if as_json:
        say_json(found)
        return
    if not found:
        say("no connections")
        return
    rows = [
        (
            each["id"],
            each["transport"],
            each["account"],
            each["address"],
            age(each["opened_at"]),
            byte_size(each["queue_bytes"]),
            each["messages"],
            byte_size(each["bytes"]),
            each["topic_count"],
            next(iter(each["topics"]), ""),
        )
        for each in found
    ]
    print_table(
        (
            *("ID", "TRANSPORT", "ACCOUNT", "ADDRESS", "AGE"),
            *("WAITS", "MESSAGES", "BYTES", "TOPICS", "FIRST TOPIC"),
        ),
        rows,
    )


@connections.command()
@click.argument("connection", type=click.IntRange(1), metavar="ID")
@json_option()
@speaks_to_hub
def disconnect(hub: Hub, connection: int, as_json: bool) -> None:
    """End a live connection; its client is told not to come back.

    To keep somebody out, revoke the token, or make the feed private.
    """
    found = hub.delete(f"/api/connections/{connection}")
    if as_json:
        say_json(found)
        return
    who = printable(found["account"])
    where = f" at {printable(found['address'])}" if found["address"] else ""
    say(f"disconnected  connection {found['id']} of {who}{where}")
