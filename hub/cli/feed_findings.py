"""``fanfare feeds report``: the feeds that something may be done about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click

from hub.cli import say
from hub.cli.client import Document, Hub, speaks_to_hub
from hub.cli.wording import plural, print_table, printable

KINDS = (
    "dead",
    "failing",
    "moved",
    "throttled",
    "flooding",
    "wasteful",
    "hub",
    "pushed",
)


@click.command()
@click.option("--kind", type=click.Choice(KINDS), help="Only these.")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@speaks_to_hub
def report(hub: Hub, kind: str | None, as_json: bool) -> None:
    """Say which feeds want a look: dead, failing, moved, flooding, wasteful and others.

    With what may be done about each. A feed is wasteful that is polled more than 300
    times for an entry.
    """
    found = list(hub.each("/api/findings", "feeds", kind=kind))
    if as_json:
        say(json.dumps(found, indent=2))
        return
    if not found:
        say("nothing to report")
        return
    for each in KINDS:
        _print_kind(each, found)
    say(f"{plural(len(found), 'feed')} reported")


def _print_kind(kind: str, feeds: Iterable[Document]) -> None:
    of_kind = [
        (feed, finding)
        for feed in feeds
        for finding in feed["findings"]
        if finding["kind"] == kind
    ]
    if not of_kind:
        return
    say(f"{kind}: {plural(len(of_kind), 'feed')}\n")
    rows = [(feed["id"], finding["what"], feed["url"]) for feed, finding in of_kind]
    print_table(("ID", "WHAT", "URL"), rows)
    _print_suggestions([finding["suggestion"] for _, finding in of_kind])


def _print_suggestions(suggestions: Sequence[str]) -> None:
    """Each once: most feeds of a kind have the same."""
    say()
    for suggestion in dict.fromkeys(suggestions):
        say(f"  {printable(suggestion)}")
    say()
