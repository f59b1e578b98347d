"""What became of a feed that was added or fetched, in words."""

from __future__ import annotations

from hub.cli import say
from hub.cli.client import Document
from hub.cli.wording import moment, plural, printable


def print_outcome(done: str, feed: Document) -> bool:
    """Say what was done and found; whether the feed is well."""
    head = f"{done}  {printable(feed['url'])}  (feed {feed['id']})"
    if feed["error"]:
        say(
            f"{head}\n  trouble: {printable(feed['error'])}\n  {_next_fetch(feed)}",
            err=True,
        )
        return False
    say(f"{head}\n  {_finding(feed)}")
    return True


def _finding(feed: Document) -> str:
    if feed["last_fetch"] is None:
        return f"not fetched yet; `fanfare feeds show {feed['id']}` will tell"
    title = printable(feed["title"]) or "(no title)"
    entries = plural(feed["entries"], "entry", "entries")
    return f"{title}: {entries}; {_next_fetch(feed)}"


def _next_fetch(feed: Document) -> str:
    if feed["state"] == "active":
        return f"asked again {moment(feed['next_fetch'])}"
    return f"{feed['state']}: not asked again until `fanfare feeds resume {feed['id']}`"


def why_not_fetched(feed: Document) -> str:
    """The reason, in words, of a feed that was asked for and not fetched."""
    if feed["retry_after"]:
        return f"the server asked to be left alone until {moment(feed['retry_after'])}"
    return "the server has not answered yet, or is to be left alone for a while"
