"""``fanfare feeds discover``, and the choices that a page leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from hub.cli import say
from hub.cli.client import Document, Hub, speaks_to_hub
from hub.cli.failures import Failure, Undecided
from hub.cli.wording import plural, printable

kind_option = click.option(
    "--kind",
    type=click.Choice(["feed", "openfeeder", "scp"]),
    default=None,
    help="Look for sources of this kind only.",
)


@click.command()
@click.argument("page", metavar="URL")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@kind_option
@speaks_to_hub
def discover(hub: Hub, page: str, as_json: bool, kind: str | None) -> None:
    """Say what feed or site is at a URL, or which feeds a page names. Adds nothing.

    Exit code 3 if there are several and none is clearly meant.
    """
    found = hub.post("/api/discover", {"url": page, "kind": kind or ""})
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        _print(page, found)
    if found["is_feed"] or found["best"]:
        return
    if found["feeds"]:
        raise Undecided(f"{plural(len(found['feeds']), 'feed')} to choose from")
    raise Failure(f"no feed: {found['trouble']}")


def _print(page: str, found: Document) -> None:
    if found["is_feed"]:
        entries = plural(found["entries"], "entry", "entries")
        title = printable(found["title"]) or "(no title)"
        say(f"a feed  {printable(page)}\n  {found['format']}, {title}: {entries}")
        return
    print_choices(found["feeds"], best=found["best"])
    if found["best"]:
        say(f"  `fanfare feeds add` takes the first: {found['reason']}")


def print_choices(feeds: Sequence[Document], best: str | None = None) -> None:
    """One a line; the best first."""
    for feed in sorted(feeds, key=lambda feed: feed["url"] != best):
        facts = [printable(each) for each in (feed["title"], feed["type"]) if each]
        about = f"  ({', '.join(facts)})" if facts else ""
        say(f"  {printable(feed['url'])}{about}")
