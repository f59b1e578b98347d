"""``fanfare tokens``: tokens of accounts, and their scopes."""

from __future__ import annotations

import click

from hub.cli import VerbGroup, examples, say
from hub.cli.hub_client import Hub, speaks_to_hub
from hub.cli.renamed_options import renamed_option
from hub.cli.secret_options import secret_option
from hub.cli.wording import json_option, moment, print_table, printable, say_json

SCOPES = ("subscribe", "unsubscribe", "list", "retrieve", "admin")


@click.group(cls=VerbGroup, name="tokens")
def tokens() -> None:
    """Create, list and revoke tokens."""


@tokens.command(
    epilog=examples(
        "fanfare tokens create --account alice --scope subscribe --scope list"
    )
)
@click.option(
    "--account",
    default="operator",
    show_default=True,
    help="The account of the token; a new name makes a new account.",
)
@renamed_option(
    "--scope",
    "scopes",
    former="--right",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="What the token may do. Repeatable.",
)
@click.option("--label", default="", help="A note on what the token is for.")
@secret_option(
    "value",
    "The token itself, 32 hexadecimal digits, such as one of Superfeedr's. By default"
    " it is generated.",
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
        f" {', '.join(made['scopes'])}; it is not shown again",
        err=True,
    )


@tokens.command(name="list", epilog=examples("fanfare tokens list --scope subscribe"))
@click.option("--account", help="Only those of this account.")
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="Only those that may do this, and were not revoked.",
)
@json_option("Print one JSON array.")
@speaks_to_hub
def list_tokens(
    hub: Hub, account: str | None, scope: str | None, as_json: bool
) -> None:
    """List tokens, including revoked ones, without their values."""
    found = list(hub.each("/api/tokens", "tokens", account=account, scope=scope))
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
    say(
        "not listed: the admin token of the settings, which may do everything; whether"
        " anybody may subscribe without a token is FANFARE_OPEN_HUB (fanfare settings)",
        err=True,
    )


@tokens.command()
@click.argument("token", type=click.IntRange(1), metavar="ID")
@json_option()
@speaks_to_hub
def revoke(hub: Hub, token: int, as_json: bool) -> None:
    """Revoke a token at once."""
    found = hub.delete(f"/api/tokens/{token}")
    if as_json:
        say_json(found)
    else:
        say(f"revoked  token {found['id']} of {printable(found['account'])}")
