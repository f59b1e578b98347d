"""``fanfare feeds``: what the hub polls, and what URLs and pages lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TextIO

import click

from hub.cli import Colour, VerbGroup, examples, say, say_coloured
from hub.cli.feed_facts import (
    explain_feed,
    explain_plan,
    print_entries,
    print_polls,
    report,
)
from hub.cli.feed_watch import next_poll
from hub.cli.hub_client import ANSWER_SECONDS, Document, Hub, speaks_to_hub
from hub.cli.import_progress import import_feeds
from hub.cli.line_input import STANDARD_INPUT, read_lines, with_input, with_scheme
from hub.cli.plan_commands import EACH_OR_PLAN, is_by_filter
from hub.cli.progress import waiting
from hub.cli.repeated_verbs import Verb, failed_of, repeat_verb
from hub.cli.secret_options import header_options, secret_option
from hub.cli.selection_options import (
    category_option,
    feed_selection,
    feed_selection_to_edit,
    health_cells,
    limit_option,
    plan_options,
    selection,
    sort_option,
)
from hub.cli.wording import (
    SINCE,
    SPAN,
    Failure,
    HubUnreachable,
    Undecided,
    cut,
    json_option,
    moment,
    plural,
    print_table,
    printable,
    say_json,
)
from hub.core.durations import duration

ADDED_AT_ONCE = 8
LISTED_AT_ONCE = 64
"""So many feeds of a file go to the hub in one request."""


@click.group(cls=VerbGroup)
def feeds() -> None:
    """Add, list, show, edit, fetch, pause and remove feeds."""


feeds.add_command(report)

kind_option = click.option(
    "--kind",
    type=click.Choice(["feed", "openfeeder", "scp"]),
    default=None,
    help="Look only for a source of this kind.  [default: any]",
)


@feeds.command(
    epilog=examples(
        "fanfare feeds add https://example.org/feed.xml example.com",
        "fanfare feeds add --file urls.txt --category news",
        "fanfare feeds add --basic-file login.txt https://intranet.example/feed",
    )
)
@click.argument("urls", nargs=-1, metavar="URL…")
@click.option(
    "--file",
    type=click.File(encoding="utf-8-sig"),
    help='Read URLs from a file, one a line, # for comments; "-": standard input.',
)
@category_option
@click.option(
    "--private",
    is_flag=True,
    help="Make the feeds private: they appear in no public list or page.",
)
@header_options
@secret_option("basic", "Credentials to fetch with, as user:password.")
@secret_option("publish-secret", "The secret its publisher signs pings with.")
@click.option(
    "--subscription-callback",
    help="The URL at which its publisher is asked who may subscribe.",
)
@click.option(
    "--exactly", is_flag=True, help="Add a page itself instead of the feed it names."
)
@kind_option
@json_option("Print one JSON array with the outcome of each.")
@speaks_to_hub
def add(
    hub: Hub,
    urls: tuple[str, ...],
    file: TextIO | None,
    category: str | None,
    private: bool,
    headers: dict[str, str],
    basic: str,
    publish_secret: str,
    subscription_callback: str | None,
    exactly: bool,
    kind: str | None,
    as_json: bool,
) -> None:
    """Add feeds and print what their first fetch finds.

    If a URL is a page, the feed it names is added. If a page names several feeds
    without a clear choice, they are listed, nothing is added, and the exit code is 3.
    https:// may be left out; "-" reads URLs from standard input.

    Credentials, also in a URL, make a feed private. A feed that exists is not changed;
    options that contradict it are an error: use `feeds edit`.
    """
    named = [each for each in urls if each != STANDARD_INPUT]
    listed = [] if file is None else [*read_lines(file, "--file")]
    if len(named) < len(urls):
        listed += with_input([STANDARD_INPUT], "URL")
    if not named and not listed:
        raise click.UsageError("name at least one URL, or a --file")
    terms: Document = {
        "category": category or "",
        "private": private,
        "headers": headers,
        "basic": basic,
        "discover": not exactly,
    }
    if kind:
        terms["kind"] = kind
    if publish_secret:
        terms["publish_secret"] = publish_secret
    if subscription_callback is not None:
        terms["subscription_callback"] = subscription_callback
    outcomes = []
    for each in (*_add_named(hub, named, terms), *_add_listed(hub, listed, terms)):
        outcomes.append(each)
        if not as_json:
            _print_added(each)
    if as_json:
        say_json(outcomes)
    elif any(each["feed"] for each in outcomes):
        say("to poll a feed now: fanfare feeds fetch URL|ID")
    _judge(outcomes)


def _add_named(
    hub: Hub, urls: Sequence[str], terms: Mapping[str, object]
) -> Iterator[Document]:
    """Yield what became of each URL, in the form of ``POST /api/imports``."""

    def add_one(url: str) -> Document:
        return _add_one(hub, {"url": with_scheme(url), **terms})

    with (
        ThreadPoolExecutor(ADDED_AT_ONCE) as pool,
        waiting("waiting for the first fetches"),
    ):
        yield from pool.map(add_one, urls)


def _add_one(hub: Hub, body: Document) -> Document:
    outcome: Document = {"url": body["url"], "reason": "", "feed": None, "feeds": []}
    try:
        answer = hub.post("/api/feeds", body)
    except HubUnreachable:
        raise
    except Failure as error:
        return {**outcome, "outcome": "refused", "reason": error.message}
    if "feeds" in answer:
        return {**outcome, "outcome": "undecided", "feeds": answer["feeds"]}
    return {
        **outcome,
        "outcome": "added" if answer["added"] else "known",
        "feed": answer,
    }


def _add_listed(
    hub: Hub, urls: Sequence[str], terms: Mapping[str, object]
) -> Iterator[Document]:
    """Add the feeds of a list, part by part, with the progress on standard error."""
    feeds = [{"url": with_scheme(url)} for url in urls]
    wait, most = int(ANSWER_SECONDS) // 4, LISTED_AT_ONCE
    return import_feeds(hub, feeds, terms, wait=wait, part_feeds=most)


def _print_added(outcome: Document) -> None:
    url, feed = printable(outcome["url"]), outcome["feed"]
    match outcome["outcome"]:
        case "undecided":
            say(f"not added  {url}: the page names several feeds:")
            print_choices(outcome["feeds"])
        case "refused":
            say(f"not added  {url}\n  {printable(outcome['reason'])}", err=True)
        case "known":
            print_outcome("known", feed)
            say(f"  {_settings(feed)}")
        case _:
            print_outcome("added", feed)


def _judge(outcomes: Sequence[Document]) -> None:
    """Raise `Failure` if feeds failed, or else `Undecided` if a page needs a choice."""
    failed = sum(
        each["outcome"] == "refused" or bool((each["feed"] or {}).get("error"))
        for each in outcomes
    )
    if failed:
        raise failed_of(failed, len(outcomes), "feeds")
    undecided = sum(each["outcome"] == "undecided" for each in outcomes)
    if undecided:
        raise Undecided(f"nothing added for {plural(undecided, 'page')}; choose a feed")


def _settings(feed: Document) -> str:
    """Return in words what a known feed has for the options of ``add``."""
    category = printable(feed["category"])
    return ", ".join(
        (
            f"category {category}" if category else "no category",
            "private" if feed["private"] else "public",
            "with credentials" if feed["has_credentials"] else "no credentials",
        )
    )


@feeds.command(
    name="list",
    epilog=examples(
        "fanfare feeds list --failing",
        "fanfare feeds list --category news --sort -since --limit 20",
        "fanfare feeds list --state paused --urls | fanfare feeds resume -",
    ),
)
@feed_selection
@sort_option("id", "url", "since", "subscribers")
@limit_option
@json_option("Print one JSON array.")
@click.option("--urls", is_flag=True, help="Print only the URLs, one a line.")
@speaks_to_hub
def list_feeds(
    hub: Hub,
    /,
    limit: int | None,
    sort: str | None,
    as_json: bool,
    urls: bool,
    **given: object,
) -> None:
    """List feeds with their state and since when they are in it.

    The state is ok, failing (the last poll failed), slow (the server took 3 s or
    longer), pushed (the feed's hub pushes new entries, so it is polled rarely), paused,
    or gone (given up and no longer polled).
    """
    if as_json and urls:
        raise click.UsageError("--urls cannot be combined with --json")
    wanted = selection(**given)
    every = hub.each("/api/feeds", "feeds", sort=sort, **wanted)
    found = list(islice(every, limit))
    if as_json:
        say_json(found)
    elif urls:
        for feed in found:
            say(feed["url"])
    elif found:
        _print_feeds(found)
    elif wanted:
        say("no feeds match")
    else:
        say("no feeds yet; add one with `fanfare feeds add URL`")


def _print_feeds(feeds: Sequence[Document]) -> None:
    """Print a table of feeds; if every one has a reason for its state, the reasons."""
    if all(feed["health"]["reason"] for feed in feeds):
        failures = [
            (feed["id"], *health_cells(feed), feed["health"]["reason"], feed["url"])
            for feed in feeds
        ]
        print_table(("ID", "STATE", "SINCE", "WHY", "URL"), failures)
        return
    rows = [
        (
            feed["id"],
            *health_cells(feed),
            "-" if feed["code"] is None else feed["code"],
            moment(feed["last_failure"]["at"]) if feed["last_failure"] else "-",
            feed["entries"],
            duration(feed["period"]),
            feed["category"][:20],
            cut(feed["health"]["reason"] or feed["title"], 40),
            feed["url"],
        )
        for feed in feeds
    ]
    headings = ("ID", "STATE", "SINCE", "HTTP", "FAILED", "ENTRIES")
    print_table((*headings, "PERIOD", "CATEGORY", "TITLE", "URL"), rows)


@feeds.command(
    epilog=examples(
        "fanfare feeds edit 7 --category news --public",
        "fanfare feeds edit 7 --new-url https://example.org/new.xml",
        "fanfare feeds edit https://example.org/feed.xml --period 6h",
        "fanfare feeds edit --in-category old --category new",
    )
)
@click.argument("feed", metavar="[URL|ID]", required=False)
@feed_selection_to_edit
@plan_options
@click.option(
    "--private/--public",
    default=None,
    help="Make the feed private or public.",
)
@click.option(
    "--new-url", help="The feed's new URL; its entries and subscriptions stay."
)
@category_option
@click.option(
    "--period",
    type=SPAN,
    help="Poll at this interval: 90 (seconds), 15m, 6h, 2d; 0: as planned.",
)
@header_options
@secret_option("basic", "Credentials to fetch with, as user:password.", default=None)
@click.option("--no-credentials", is_flag=True, help="Remove all credentials.")
@secret_option(
    "publish-secret",
    'The secret its publisher signs pings with; "" removes it.',
    default=None,
)
@click.option(
    "--subscription-callback",
    help='The URL at which its publisher is asked who may subscribe; "" removes it.',
)
@json_option()
@speaks_to_hub
def edit(
    hub: Hub,
    /,
    feed: str | None,
    private: bool | None,
    new_url: str | None,
    category: str | None,
    period: float | None,
    headers: dict[str, str],
    basic: str | None,
    no_credentials: bool,
    publish_secret: str | None,
    subscription_callback: str | None,
    as_json: bool,
    in_category: str | None,
    **given: object,
) -> None:
    """Change a feed and print the consequences.

    --basic and --header replace all credentials the feed has. Credentials make it
    private, readable by the operator only. With a filter instead of a feed, set the
    --category of all matching feeds.
    """
    if no_credentials and (basic or headers):
        raise click.UsageError(
            "--no-credentials cannot be combined with --basic or --header"
        )
    wanted: Document = {
        "url": with_scheme(new_url) if new_url else new_url,
        "own_period": period,
        "private": private,
        "category": category,
        "basic": "" if no_credentials else basic,
        "headers": headers or None,
        "publish_secret": publish_secret,
        "subscription_callback": subscription_callback,
    }
    body = {name: value for name, value in wanted.items() if value is not None}
    if not body:
        raise click.UsageError("name a change, such as --private or --category")
    if feed is None and [*body] != ["category"]:
        raise click.UsageError("name a feed; a filter can only set --category")
    given["category"] = in_category
    is_planned = is_by_filter(
        hub, "set_category", "feeds", feed, given, as_json=as_json, category=category
    )
    if is_planned or feed is None:
        return
    found = hub.patch(f"/api/feeds/{_feed_id(hub, feed)}", body)
    if as_json:
        say_json(found)
        return
    say(f"edited  {printable(found['url'])}  (feed {found['id']})")
    say(f"  {_settings(found)}")
    if new_url or basic or headers:
        _say_finding(found)
    for each in found["follows"]:
        say(f"  {printable(each)}")


verbose_option = click.option(
    "--verbose", is_flag=True, help="Also print every term of the polling period."
)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@verbose_option
@json_option()
@speaks_to_hub
def show(hub: Hub, feed: str, verbose: bool, as_json: bool) -> None:
    """Show a feed: last answer, validators, period, next fetch, subscribers.

    Also how late its entries are, warnings about them, and of a site the pages known,
    from where changes are requested, and when all of it was last read.
    """
    found = hub.get(f"/api/feeds/{_feed_id(hub, feed)}")
    if as_json:
        say_json(found)
    else:
        explain_feed(found, verbose=verbose)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@verbose_option
@json_option()
@speaks_to_hub
def explain(hub: Hub, feed: str, verbose: bool, as_json: bool) -> None:
    """Explain when a feed is polled next and why, with its expected posting times."""
    found = hub.get(f"/api/feeds/{_feed_id(hub, feed)}/plan")
    if as_json:
        say_json(found)
    else:
        explain_plan(found, verbose=verbose)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@click.option("--since", type=SINCE, help="From then on.")
@click.option("--until", type=SINCE, help="Before then.")
@json_option()
@speaks_to_hub
def history(
    hub: Hub, feed: str, since: str | None, until: str | None, as_json: bool
) -> None:
    """List the last polls of a feed, the latest first, with reason and outcome.

    Kept are those of a day, at most 1,440, and the last 64 however old they are.
    """
    path = f"/api/feeds/{_feed_id(hub, feed)}/history"
    found = hub.get(path, since=since, until=until)
    if as_json:
        say_json(found)
    else:
        print_polls(found)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@json_option()
@speaks_to_hub
def entries(hub: Hub, feed: str, limit: int, as_json: bool) -> None:
    """List the newest entries of a feed, with their dates and revisions."""
    found = hub.get(f"/api/feeds/{_feed_id(hub, feed)}/entries", limit=limit)
    if as_json:
        say_json(found)
    else:
        print_entries(found)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@json_option()
@speaks_to_hub
def parse(hub: Hub, feed: str, as_json: bool) -> None:
    """Fetch a feed's document by the hub, and print how it is read.

    It is fetched as for a poll, with the feed's credentials, and the feed stays as it
    is.
    """
    from hub.cli.parsed_documents import print_explained

    with waiting(f"fetching {feed}"):
        found = hub.post(f"/api/feeds/{_feed_id(hub, feed)}/parse")
    if as_json:
        say_json(found)
    else:
        print_explained(found)
    if found["explanation"] is None:
        raise Failure(f"{printable(found['url'])}: {found['error']}")


feeds_argument = click.argument("feeds", nargs=-1, metavar="[URL|ID…]")
"""Feeds by URL or id; ``-`` stands for the lines of standard input.

If no feed is named, options select feeds.
"""


@feeds.command()
@feeds_argument
@feed_selection
@plan_options
@json_option(EACH_OR_PLAN)
@speaks_to_hub
def fetch(hub: Hub, /, feeds: tuple[str, ...], as_json: bool, **given: object) -> None:
    """Fetch feeds now, named or matching a filter."""
    if is_by_filter(hub, "fetch", "feeds", feeds, given, as_json=as_json):
        return

    def fetch_one(name: str, feed_id: int) -> Document:
        with waiting(f"fetching {name}"):
            found = hub.post(f"/api/feeds/{feed_id}/fetch")
        if not found["fetched"]:
            say(f"{_named(found)}\n  not fetched: {why_not_fetched(found)}", err=True)
        elif found["error"]:
            print_outcome("fetched", found)
        elif not as_json:
            polls = hub.get(f"/api/feeds/{feed_id}/history")["polls"]
            print_outcome("fetched", {**found, "new": polls[0]["entries"]})
        return found

    def has_failed(found: Document) -> bool:
        return not found["fetched"] or bool(found["error"])

    _each_feed(hub, feeds, fetch_one, has_failed, as_json=as_json)


@feeds.command()
@feeds_argument
@feed_selection
@plan_options
@json_option(EACH_OR_PLAN)
@speaks_to_hub
def pause(hub: Hub, /, feeds: tuple[str, ...], as_json: bool, **given: object) -> None:
    """Pause feeds, named or matching a filter: none is polled until it is resumed."""
    _switch(hub, feeds, "pause", given, as_json=as_json)


@feeds.command()
@feeds_argument
@feed_selection
@plan_options
@json_option(EACH_OR_PLAN)
@speaks_to_hub
def resume(hub: Hub, /, feeds: tuple[str, ...], as_json: bool, **given: object) -> None:
    """Resume polling paused, gone or dead feeds, named or matching a filter."""
    _switch(hub, feeds, "resume", given, as_json=as_json)


def _switch(
    hub: Hub,
    feeds: Sequence[str],
    action: str,
    given: dict[str, object],
    *,
    as_json: bool,
) -> None:
    if is_by_filter(hub, action, "feeds", feeds, given, as_json=as_json):
        return

    def switch_one(name: str, feed_id: int) -> Document:
        found = hub.post(f"/api/feeds/{feed_id}/{action}")
        if not as_json:
            say(f"{action}d  {printable(found['url'])}")
            if action == "resume":
                say(f"  next fetch {moment(found['next_fetch'])}")
        return found

    _each_feed(hub, feeds, switch_one, as_json=as_json)


@feeds.command()
@feeds_argument
@feed_selection
@plan_options
@json_option(EACH_OR_PLAN)
@speaks_to_hub
def remove(hub: Hub, /, feeds: tuple[str, ...], as_json: bool, **given: object) -> None:
    """Remove feeds, named or matching a filter, and end their subscriptions.

    Their state is kept for 30 days in case they are added again.
    """
    if is_by_filter(hub, "remove", "feeds", feeds, given, as_json=as_json):
        return

    def remove_one(name: str, feed_id: int) -> Document:
        answer = hub.delete(f"/api/feeds/{feed_id}")
        if not as_json:
            ended = plural(answer["subscriptions_ended"], "subscription")
            say(f"removed  {printable(name)}\n  {ended} ended")
        return {"id": feed_id, **answer}

    _each_feed(hub, feeds, remove_one, as_json=as_json)


def _each_feed(
    hub: Hub,
    feeds: Sequence[str],
    verb: Verb,
    is_failure: Callable[[Document], bool] = lambda found: False,
    *,
    as_json: bool,
) -> None:
    """Apply a verb to each feed that is named; see `repeat_verb`."""
    repeat_verb(
        with_input(feeds, "URL|ID"),
        lambda name: [_feed_id(hub, name)],
        verb,
        is_failure,
        what="feeds",
        as_json=as_json,
    )


def _feed_id(hub: Hub, feed: str) -> int:
    if feed.isascii() and feed.isdigit():
        return int(feed)
    found = hub.get("/api/feeds", url=with_scheme(feed))["feeds"]
    if not found:
        raise Failure(f"no feed {feed}; see `fanfare feeds list`")
    return int(found[0]["id"])


@feeds.command()
@click.argument("page", metavar="URL")
@json_option()
@kind_option
@speaks_to_hub
def discover(hub: Hub, page: str, as_json: bool, kind: str | None) -> None:
    """Show which feed or site is at a URL, or which feeds a page names.

    Adds nothing. Exit code 3 if there are several feeds without a clear choice.
    """
    wanted = {"url": with_scheme(page), "kind": kind or ""}
    with waiting(f"looking at {page}"):
        found = hub.post("/api/discover", wanted)
    if as_json:
        say_json(found)
    else:
        _print(page, found)
    if found["is_feed"] or found["best"]:
        return
    if found["feeds"]:
        raise Undecided(f"{plural(len(found['feeds']), 'feed')} to choose from")
    raise Failure(f"no feed: {found['error']}")


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
    """Print feeds, one a line, the best first."""
    for feed in sorted(feeds, key=lambda feed: feed["url"] != best):
        facts = [printable(each) for each in (feed["title"], feed["type"]) if each]
        about = f"  ({', '.join(facts)})" if facts else ""
        say(f"  {printable(feed['url'])}{about}")


def print_outcome(done: str, feed: Document) -> bool:
    """Print what was done and found, and when the feed is polled next.

    Returns whether the feed has no error.
    """
    is_well = not feed["error"]
    say(f"{done}  {_named(feed)}", err=not is_well)
    _say_finding(feed)
    say(f"  {next_poll(feed)}", err=not is_well)
    return is_well


def _say_finding(feed: Document) -> None:
    is_well = not feed["error"]
    finding = _finding(feed) if is_well else f"error: {printable(feed['error'])}"
    say_coloured(
        [("  ", None), (finding, None if is_well else Colour.BAD)], err=not is_well
    )


def _named(feed: Document) -> str:
    return f"{printable(feed['url'])}  (feed {feed['id']})"


def _finding(feed: Document) -> str:
    if feed["last_fetch"] is None:
        return f"not fetched yet; see `fanfare feeds show {feed['id']}`"
    title = printable(feed["title"]) or "(no title)"
    news = f", {feed['new']} new" if feed.get("new") else ""
    return f"{title}: {plural(feed['entries'], 'entry', 'entries')}{news}"


def why_not_fetched(feed: Document) -> str:
    """Return in words why a feed was not fetched although that was asked for."""
    if feed["retry_after"]:
        return f"the server asks for no request until {moment(feed['retry_after'])}"
    return "the server has not answered yet, or wants no requests for a while"
