"""``fanfare ui``: a link to the pages of the operator, or of an account."""

from __future__ import annotations

import click

from hub.cli import say
from hub.cli.hub_client import Hub, speaks_to_hub
from hub.cli.wording import json_option, say_json


@click.command()
@json_option()
@speaks_to_hub
def ui(hub: Hub, as_json: bool) -> None:
    """Print a link that logs a browser in to the hub's pages.

    It works once, within five minutes. With a token without the scope admin the pages
    are those of its account.
    """
    made = hub.post("/api/login-links")
    if as_json:
        say_json(made)
        return
    say(made["url"])
    say("it works once, within five minutes", err=True)
