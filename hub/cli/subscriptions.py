"""``fanfare subs``: who is told of new entries."""

from __future__ import annotations

import json

import click

from hub.cli import say
from hub.cli.client import Document, Hub, speaks_to_hub
from hub.cli.subscription_import import import_subscriptions
from hub.cli.wording import moment, next_try, print_facts, print_table, printable
from protocols.websub.signatures import OF_OLD


@click.group(name="subs")
def subscriptions() -> None:
    """Subscriptions: add, import, list, show, remove."""


subscriptions.add_command(import_subscriptions)


@subscriptions.command()
@click.argument("callback")
@click.argument("topic")
@click.option("--secret", default="", help="Signs every delivery.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "atom", "as-is", "by-topic"]),
    default="json",
    show_default=True,
    help="What is delivered; as-is: the topic's own document; by-topic: that, but Atom"
    " of a feed.",
)
@click.option("--updates", is_flag=True, help="Also every update, and deletions.")
@click.option("--batch", is_flag=True, help="Several records may share a request.")
@speaks_to_hub
def add(
    hub: Hub,
    callback: str,
    topic: str,
    secret: str,
    format_: str,
    updates: bool,
    batch: bool,
) -> None:
    """Tell CALLBACK of the new entries of TOPIC from now on.

    A topic the hub does not know yet becomes a private feed.
    """
    body: Document = {
        "callback": callback,
        "topic": topic,
        "secret": secret,
        "format": format_,
        "updates": "all" if updates else "fresh",
        "batch": batch,
    }
    found = hub.post("/api/subscriptions", body)
    say(
        f"subscribed  {printable(found['callback'])}  (subscription {found['id']})\n"
        f"  to {printable(found['topic'])}"
    )
    trouble = found["feed_status"]["error"]
    if trouble:
        say(f"  note: the feed is in trouble: {printable(trouble)}", err=True)


@subscriptions.command(name="list")
@click.option("--topic", help="Only those to this topic.")
@click.option("--callback", help="Only those of this callback.")
@click.option("--account", help="Only those of this account.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@speaks_to_hub
def list_subscriptions(
    hub: Hub,
    topic: str | None,
    callback: str | None,
    account: str | None,
    as_json: bool,
) -> None:
    """List the subscriptions."""
    found = list(
        hub.each(
            "/api/subscriptions",
            "subscriptions",
            topic=topic,
            callback=callback,
            account=account,
        )
    )
    if as_json:
        say(json.dumps(found, indent=2))
        return
    if not found:
        say("no subscriptions; add one with `fanfare subs add CALLBACK TOPIC`")
        return
    rows = [
        (each["id"], each["state"], each["format"], each["callback"], each["topic"])
        for each in found
    ]
    print_table(("ID", "STATE", "FORMAT", "CALLBACK", "TOPIC"), rows)


@subscriptions.command()
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speaks_to_hub
def show(hub: Hub, subscription: int, as_json: bool) -> None:
    """Show a subscription with its last attempts."""
    found = hub.get(f"/api/subscriptions/{subscription}")
    if as_json:
        say(json.dumps(found, indent=2))
        return
    print_facts(
        [
            ("subscription", found["id"]),
            ("callback", found["callback"]),
            ("topic", found["topic"]),
            ("state", found["state"]),
            ("ended", found["ended_reason"]),
            ("format", found["format"]),
            ("updates", found["updates"]),
            ("signed", _signing(found)),
            ("former secret", _former_secret(found)),
            ("since", moment(found["created_at"])),
            ("late", _lateness(found)),
        ]
    )
    _print_attempts(found["attempts"])


def _former_secret(found: Document) -> str:
    until = found["former_secret_until"]
    return f"signs as well until {moment(until)}" if until else ""


def _lateness(found: Document) -> str:
    late = found["straggler"]
    if late is None:
        return "gave up; each new record is one try" if found["exhausted"] else ""
    reason = late["last_error"] or f"HTTP {late['last_status']}"
    return (
        f"{reason} since {moment(late['failing_since'])},"
        f" next try: {next_try(late['next_try'], late['under_way'])}"
    )


def _signing(found: Document) -> str:
    if not found["has_secret"]:
        return "no secret"
    if found["algorithm"] == OF_OLD:
        return "sha1, as clients of old know it; sha256 in X-Hub-Signature-256"
    return str(found["algorithm"])


def _print_attempts(attempts: list[Document]) -> None:
    if not attempts:
        say("\nno attempts yet")
        return
    say()
    print_table(
        ("TIME", "RECORD", "STATUS", "MS", "ERROR"),
        [
            (
                moment(each["at"]),
                each["position"],
                each["status"] or "-",
                each["milliseconds"],
                each["error"],
            )
            for each in attempts
        ],
    )


@subscriptions.command()
@click.argument("subscription", type=click.IntRange(1), metavar="ID")
@speaks_to_hub
def remove(hub: Hub, subscription: int) -> None:
    """End a subscription; its callback is told."""
    found = hub.delete(f"/api/subscriptions/{subscription}")
    say(f"ended  {printable(found['callback'])}")
