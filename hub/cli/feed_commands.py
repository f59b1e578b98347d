"""``fanfare feeds``: what the hub polls, and what URLs and pages lead to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from typing import TextIO

import click

from hub.cli import say
from hub.cli.feed_facts import explain_feed, explain_plan, report
from hub.cli.hub_client import ANSWER_SECONDS, Document, Hub, speaks_to_hub
from hub.cli.import_progress import import_feeds
from hub.cli.secret_options import header_options, secret_option
from hub.cli.wording import (
    Failure,
    HubUnreachable,
    Undecided,
    moment,
    plural,
    print_table,
    printable,
)
from hub.core.durations import duration

ADDED_AT_ONCE = 8
LISTED_AT_ONCE = 64
"""As many of a file are looked at together by the hub."""


@click.group()
def feeds() -> None:
    """Feeds the hub polls: add, discover, list, report, show, explain, fetch, …"""


feeds.add_command(report)

kind_option = click.option(
    "--kind",
    type=click.Choice(["feed", "openfeeder", "scp"]),
    default=None,
    help="Look for sources of this kind only.",
)


@feeds.command()
@click.argument("urls", nargs=-1, metavar="URL…")
@click.option(
    "--file",
    type=click.File(encoding="utf-8-sig"),
    help="Also the URLs in a file, one a line.",
)
@click.option("--section", default="", help="A label to group feeds by.")
@click.option("--private", is_flag=True, help="Never shown to the public.")
@header_options
@secret_option("basic", "user:password to send.")
@secret_option("publish-secret", "What its publisher signs with.")
@click.option(
    "--subscription-callback", help="Where its publisher is asked who may subscribe."
)
@click.option("--exactly", is_flag=True, help="Take a page itself, not its feed.")
@kind_option
@speaks_to_hub
def add(
    hub: Hub,
    urls: tuple[str, ...],
    file: TextIO | None,
    section: str,
    private: bool,
    headers: dict[str, str],
    basic: str,
    publish_secret: str,
    subscription_callback: str | None,
    exactly: bool,
    kind: str | None,
) -> None:
    """Add feeds and say what their first fetch found.

    Of a page the feed that it names is added, of a site's address all that it offers
    to programs. If a page names several feeds, and none is clearly meant, they are
    listed and nothing is added: exit code 3.

    Credentials, also those in a URL, make a feed private. Nothing of a known feed is
    changed, and options that it is not in line with are an error: see `feeds edit`.
    """
    listed = [*_lines(file)]
    if not urls and not listed:
        raise click.UsageError("name at least one URL, or a --file")
    shared: Document = {
        "section": section,
        "private": private,
        "headers": headers,
        "basic": basic,
        "discover": not exactly,
    }
    if kind:
        shared["kind"] = kind
    if publish_secret:
        shared["publish_secret"] = publish_secret
    if subscription_callback is not None:
        shared["subscription_callback"] = subscription_callback
    with ThreadPoolExecutor(ADDED_AT_ONCE) as pool:
        results = [*pool.map(lambda url: _add_one(hub, {"url": url, **shared}), urls)]
    results += _add_listed(hub, listed, shared)
    failed = results.count(FeedOutcome.TROUBLE)
    if failed:
        raise Failure(f"trouble with {plural(failed, 'feed')} of {len(results)}")
    undecided = results.count(FeedOutcome.UNDECIDED)
    if undecided:
        raise Undecided(f"nothing added for {plural(undecided, 'page')}: choose a feed")


class FeedOutcome(Enum):
    WELL = auto()
    TROUBLE = auto()
    UNDECIDED = auto()


def _add_one(hub: Hub, body: Document) -> FeedOutcome:
    """Add one and print the outcome."""
    try:
        feed = hub.post("/api/feeds", body)
    except HubUnreachable:
        raise
    except Failure as error:
        say(f"not added  {printable(str(body['url']))}\n  {error.message}", err=True)
        return FeedOutcome.TROUBLE
    if "feeds" in feed:
        return _print_undecided(feed)
    return _print_added(feed, is_new=feed["added"])


def _add_listed(
    hub: Hub, urls: Sequence[str], shared: Mapping[str, object]
) -> Iterator[FeedOutcome]:
    """Add the feeds of a file, part by part, with the progress on standard error."""
    feeds = [{"url": url} for url in urls]
    wait, most = int(ANSWER_SECONDS) // 4, LISTED_AT_ONCE
    for imported in import_feeds(hub, feeds, shared, wait=wait, part_feeds=most):
        if imported["outcome"] == "undecided":
            yield _print_undecided(imported)
        elif imported["feed"] is None:
            say(
                f"not added  {printable(imported['url'])}\n"
                f"  {printable(imported['reason'])}",
                err=True,
            )
            yield FeedOutcome.TROUBLE
        else:
            is_new = imported["outcome"] == "added"
            yield _print_added(imported["feed"], is_new=is_new)


def _print_undecided(page: Document) -> FeedOutcome:
    say(f"not added  {printable(page['url'])}: a page that names")
    print_choices(page["feeds"])
    return FeedOutcome.UNDECIDED


def _print_added(feed: Document, *, is_new: bool) -> FeedOutcome:
    is_well = print_outcome("added" if is_new else "known", feed)
    if not is_new:
        say(f"  {_settings(feed)}")
    return FeedOutcome.WELL if is_well else FeedOutcome.TROUBLE


def _settings(feed: Document) -> str:
    """The values that a known feed has for what the options of ``add`` set."""
    section = printable(feed["section"])
    return ", ".join(
        (
            f"section {section}" if section else "no section",
            "private" if feed["private"] else "public",
            "with credentials" if feed["has_credentials"] else "no credentials",
        )
    )


def _lines(file: TextIO | None) -> Iterator[str]:
    try:
        for line in map(str.strip, file or ()):
            if line and not line.startswith("#"):
                yield line
    except UnicodeDecodeError:
        raise click.BadParameter("expected UTF-8 text", param_hint="--file") from None


@feeds.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array.")
@click.option(
    "--state",
    type=click.Choice(["active", "paused", "gone", "dead", "removed"]),
    default=None,
)
@speaks_to_hub
def list_feeds(hub: Hub, as_json: bool, state: str | None) -> None:
    """List the feeds."""
    found = list(hub.each("/api/feeds", "feeds", state=state))
    if as_json:
        say(json.dumps(found, indent=2))
        return
    rows = [
        (
            feed["id"],
            feed["state"],
            "-" if feed["code"] is None else feed["code"],
            feed["entries"],
            duration(feed["period"]),
            feed["error"][:40] or feed["title"][:40],
            feed["url"],
        )
        for feed in found
    ]
    if not rows:
        say("no feeds yet; add one with `fanfare feeds add URL`")
        return
    print_table(("ID", "STATE", "HTTP", "ENTRIES", "PERIOD", "TITLE", "URL"), rows)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@click.option(
    "--private/--public", default=None, help="Whether it is shown to the public."
)
@click.option("--section", help='A label to group feeds by; "" for none.')
@header_options
@secret_option("basic", "user:password to send.", default=None)
@click.option("--no-credentials", is_flag=True, help="Send none from now on.")
@secret_option(
    "publish-secret", 'What its publisher signs with; "" for nothing.', default=None
)
@click.option(
    "--subscription-callback",
    help='Where its publisher is asked who may subscribe; "" for nowhere.',
)
@speaks_to_hub
def edit(
    hub: Hub,
    feed: str,
    private: bool | None,
    section: str | None,
    headers: dict[str, str],
    basic: str | None,
    no_credentials: bool,
    publish_secret: str | None,
    subscription_callback: str | None,
) -> None:
    """Change what a feed is, and say what follows from it.

    Credentials, --basic and --header together, replace those it has. They make it
    private, and the operator's alone.
    """
    if no_credentials and (basic or headers):
        raise click.UsageError("--no-credentials goes without --basic and --header")
    wanted: Document = {
        "private": private,
        "section": section,
        "basic": "" if no_credentials else basic,
        "headers": headers or None,
        "publish_secret": publish_secret,
        "subscription_callback": subscription_callback,
    }
    body = {name: value for name, value in wanted.items() if value is not None}
    if not body:
        raise click.UsageError("say what is to change, as by --private or --section")
    found = hub.patch(f"/api/feeds/{_feed_id(hub, feed)}", body)
    say(f"edited  {printable(found['url'])}  (feed {found['id']})")
    say(f"  {_settings(found)}")
    for each in found["follows"]:
        say(f"  {printable(each)}")


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speaks_to_hub
def show(hub: Hub, feed: str, as_json: bool) -> None:
    """Explain a feed: last answer, validators, period, next fetch, subscribers."""
    found = hub.get(f"/api/feeds/{_feed_id(hub, feed)}")
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        explain_feed(found)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@speaks_to_hub
def explain(hub: Hub, feed: str, as_json: bool) -> None:
    """Say when a feed is fetched next, and why, with every number."""
    found = hub.get(f"/api/feeds/{_feed_id(hub, feed)}/plan")
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        explain_plan(found)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@speaks_to_hub
def fetch(hub: Hub, feed: str) -> None:
    """Fetch a feed now."""
    found = hub.post(f"/api/feeds/{_feed_id(hub, feed)}/fetch")
    if not found["fetched"]:
        raise Failure(f"not fetched: {why_not_fetched(found)}")
    if not print_outcome("fetched", found):
        raise Failure("the fetch brought trouble")


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@speaks_to_hub
def pause(hub: Hub, feed: str) -> None:
    """Stop polling a feed, for now."""
    found = hub.post(f"/api/feeds/{_feed_id(hub, feed)}/pause")
    say(f"paused  {printable(found['url'])}")


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@speaks_to_hub
def resume(hub: Hub, feed: str) -> None:
    """Poll a feed again that was paused, is gone or dead."""
    found = hub.post(f"/api/feeds/{_feed_id(hub, feed)}/resume")
    say(f"resumed  {printable(found['url'])}")
    say(f"  next fetch {moment(found['next_fetch'])}")


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@speaks_to_hub
def remove(hub: Hub, feed: str) -> None:
    """Remove a feed and end its subscriptions.

    Its state is kept for 30 days, should it be added again.
    """
    ended = hub.delete(f"/api/feeds/{_feed_id(hub, feed)}")["subscriptions_ended"]
    say(f"removed  {printable(feed)}\n  {plural(ended, 'subscription')} ended")


def _feed_id(hub: Hub, feed: str) -> int:
    if feed.isascii() and feed.isdigit():
        return int(feed)
    found = hub.get("/api/feeds", url=feed)["feeds"]
    if not found:
        raise Failure(f"no feed {feed}; `fanfare feeds list` names those there are")
    return int(found[0]["id"])


@feeds.command()
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
    """Why a feed that was asked for was not fetched, in words."""
    if feed["retry_after"]:
        return f"the server asked to be left alone until {moment(feed['retry_after'])}"
    return "the server has not answered yet, or is to be left alone for a while"
