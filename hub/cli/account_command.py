"""``fanfare account``: whose token is used, and how that account is."""

from __future__ import annotations

import click

from hub.cli.hub_client import Hub, speaks_to_hub
from hub.cli.wording import json_option, print_facts, say_json


@click.command()
@json_option()
@speaks_to_hub
def account(hub: Hub, as_json: bool) -> None:
    """Show the account of the token: what it may do, its credits and subscriptions."""
    found = hub.get("/api/account")
    if as_json:
        say_json(found)
        return
    print_facts(
        [
            ("account", found["account"]),
            ("scopes", ", ".join(found["scopes"])),
            ("subscriptions", _count(found["subscriptions"])),
            ("failing", _count(found["failing"])),
            ("requests sent", found["notified"]),
            ("credits", found["credits"]),
        ]
    )


def _count(count: int | None) -> str:
    return "many" if count is None else f"{count}"
