"""``fanfare account``: the account whose token is used; ``accounts``: all accounts."""

from __future__ import annotations

from urllib.parse import quote

import click

from hub.cli import VerbGroup, say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.wording import (
    json_option,
    moment,
    print_facts,
    print_table,
    say_json,
)


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


@click.group(cls=VerbGroup)
def accounts() -> None:
    """List and show accounts: their tokens' scopes, subscriptions and credits."""


@accounts.command(name="list")
@click.option("--search", help="Only those whose name begins so.")
@json_option("Print one JSON array.")
@speaks_to_hub
def list_accounts(hub: Hub, search: str | None, as_json: bool) -> None:
    """List accounts by name.

    Each with its good tokens and what these may do, when one was last used, its
    subscriptions by state, requests sent and live connections.
    """
    found = list(hub.each("/api/accounts", "accounts", search=search))
    if as_json:
        say_json(found)
        return
    if not found:
        say("no account's name begins so")
        return
    print_table(
        ("ACCOUNT", "TOKENS", "SCOPES", "LAST USED", "SUBSCRIPTIONS", "SENT", "LIVE"),
        [
            (
                each["account"],
                each["tokens"],
                " ".join(each["scopes"]),
                moment(each["used_at"]),
                _states(each["subscriptions"]),
                each["notified"],
                each["live_connections"],
            )
            for each in found
        ],
    )


@accounts.command()
@click.argument("name")
@json_option()
@speaks_to_hub
def show(hub: Hub, name: str, as_json: bool) -> None:
    """Show one account."""
    found = hub.get(f"/api/accounts/{quote(name, safe='')}")
    if as_json:
        say_json(found)
        return
    print_facts(
        [
            ("account", found["account"]),
            ("tokens", found["tokens"]),
            ("these may", ", ".join(found["scopes"]) or "nothing"),
            ("last used", moment(found["used_at"])),
            ("subscriptions", _states(found["subscriptions"])),
            ("requests sent", found["notified"]),
            ("credits", found["credits"]),
            ("live connections", found["live_connections"]),
        ]
    )


def _states(counts: Document) -> str:
    """Return the states that occur, with counts: ``12 ok, 1 failing``."""
    there = [f"{count:,} {state}" for state, count in counts.items() if count]
    return ", ".join(there) or "none"
