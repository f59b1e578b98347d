"""``fanfare events``: what happens to feeds, subscriptions and the hub, by webhook."""

from __future__ import annotations

import click

from hub.cli import VerbGroup, examples, say
from hub.cli.hub_client import Hub, speaks_to_hub
from hub.cli.secret_options import secret_option
from hub.cli.wording import json_option, print_table, printable, say_json
from protocols.operational_events import EVERY_TYPE, MEANINGS


@click.group(cls=VerbGroup)
def events() -> None:
    """Operational events: feeds and callbacks that fail or recover, a full disk."""


@events.command(
    epilog=examples(
        "fanfare events subscribe https://ops.example/hook",
        "fanfare events subscribe https://ops.example/hook --types 'feed.*,hub.disk'",
    )
)
@click.argument("callback")
@click.option(
    "--types",
    default=EVERY_TYPE,
    show_default=True,
    metavar="TYPE,...",
    help="The types of events, or such as feed.*; `fanfare events types` lists them.",
)
@secret_option("secret", "The secret that signs every message.  [made by the hub]")
@json_option()
@speaks_to_hub
def subscribe(hub: Hub, callback: str, types: str, secret: str, as_json: bool) -> None:
    """Tell CALLBACK of operational events from now on.

    Each event is a Standard Webhooks message, signed with the secret. A secret that the
    hub makes is printed once. `fanfare subs` lists, shows, tests and removes the
    subscription like any other.
    """
    body = {"callback": callback, "types": types.split(","), "secret": secret}
    made = hub.post("/api/events/subscriptions", body)
    if as_json:
        say_json(made)
        return
    say(
        f"subscribed  {printable(made['callback'])}  (subscription {made['id']})\n"
        f"  to {printable(', '.join(made['events']))}"
    )
    if made["secret"]:
        say(f"  secret  {printable(made['secret'])}")
        say("  keep it: it is not shown again")
    say(f"  try it: fanfare subs test {made['id']}")


@events.command(name="types")
@json_option("Print one JSON array.")
def list_types(as_json: bool) -> None:
    """List the types of events, and when each is sent."""
    if as_json:
        say_json([{"type": each, "when": when} for each, when in MEANINGS.items()])
        return
    print_table(("TYPE", "WHEN"), list(MEANINGS.items()))
