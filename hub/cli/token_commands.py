"""``fanfare tokens``: tokens of accounts, and their scopes."""

from __future__ import annotations

import click

from hub.cli import VerbGroup, say
from hub.cli.hub_client import Hub, speaks_to_hub
from hub.cli.secret_options import secret_option
from hub.cli.wording import json_option, moment, print_table, printable, say_json

SCOPES = ("subscribe", "unsubscribe", "list", "retrieve", "admin")


@click.group(cls=VerbGroup, name="tokens")
def tokens() -> None:
    """Tokens: create, list, revoke."""


@tokens.command()
@click.option(
    "--account",
    default="operator",
    show_default=True,
    help="Whose token; a new name is a new account.",
)
@click.option(
    "--scope",
    "--right",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="What it may do; may be repeated.",
)
@click.option("--label", default="", help="What it is for, for people.")
@secret_option(
    "value", "The token itself, such as one of Superfeedr's: 32 hexadecimal digits."
)
@json_option()
@speaks_to_hub
def create(
    hub: Hub,
    account: str,
    scopes: tuple[str, ...],
    label: str,
    value: str,
    as_json: bool,
) -> None:
    """Make a token and print it; it cannot be shown again."""
    body = {"account": account, "scopes": list(scopes), "label": label, "value": value}
    made = hub.post("/api/tokens", body)
    if as_json:
        say_json(made)
        return
    say(made["token"])
    say(
        f"token {made['id']} of {printable(made['account'])}:"
        f" {', '.join(made['scopes'])}; keep it, it is not shown again",
        err=True,
    )


@tokens.command(name="list")
@json_option("One JSON array.")
@speaks_to_hub
def list_tokens(hub: Hub, as_json: bool) -> None:
    """List the tokens, revoked ones included; not what they are."""
    found = list(hub.each("/api/tokens", "tokens"))
    if as_json:
        say_json(found)
        return
    if not found:
        say("no tokens; make one with `fanfare tokens create --scope list`")
        return
    rows = [
        (
            each["id"],
            each["account"],
            " ".join(each["scopes"]),
            moment(each["used_at"]),
            "revoked" if each["revoked_at"] else "good",
            each["label"],
        )
        for each in found
    ]
    print_table(("ID", "ACCOUNT", "SCOPES", "LAST USED", "STATE", "LABEL"), rows)


@tokens.command()
@click.argument("token", type=click.IntRange(1), metavar="ID")
@json_option()
@speaks_to_hub
def revoke(hub: Hub, token: int, as_json: bool) -> None:
    """Revoke a token; it is refused from now on."""
    found = hub.delete(f"/api/tokens/{token}")
    if as_json:
        say_json(found)
    else:
        say(f"revoked  token {found['id']} of {printable(found['account'])}")
