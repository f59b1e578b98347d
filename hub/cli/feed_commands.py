"""``fanfare feeds``: what the hub polls, and what URLs and pages lead to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TextIO

import click

from hub.cli import Colour, VerbGroup, say, say_coloured
from hub.cli.feed_facts import explain_feed, explain_plan, print_polls, report
from hub.cli.feed_watch import next_poll
from hub.cli.hub_client import ANSWER_SECONDS, Document, Hub, speaks_to_hub
from hub.cli.import_progress import import_feeds
from hub.cli.line_input import STANDARD_INPUT, read_lines, with_input, with_scheme
from hub.cli.progress import waiting
from hub.cli.secret_options import header_options, secret_option
from hub.cli.selection_options import (
    category_option,
    feed_selection,
    health_cells,
    limit_option,
    selection,
    sort_option,
)
from hub.cli.wording import (
    SPAN,
    Failure,
    HubUnreachable,
    Undecided,
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
"""As many of a file are looked at together by the hub."""


@click.group(cls=VerbGroup)
def feeds() -> None:
    """Feeds that the hub polls: add, list, show, change and fetch them."""


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
    help='Also the URLs in a file, one a line; "-": standard input.',
)
@category_option
@click.option("--private", is_flag=True, help="Never shown to the public.")
@header_options
@secret_option("basic", "user:password to send.")
@secret_option("publish-secret", "What its publisher signs with.")
@click.option(
    "--subscription-callback", help="Where its publisher is asked who may subscribe."
)
@click.option("--exactly", is_flag=True, help="Take a page itself, not its feed.")
@kind_option
@json_option("One JSON array: what became of each.")
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
    """Add feeds and say what their first fetch found.

    Of a page the feed that it names is added, of a site's address all that it offers
    to programs. If a page names several feeds, and none is clearly meant, they are
    listed and nothing is added: exit code 3. A URL without https:// is given it; "-"
    stands for the lines of standard input.

    Credentials, also those in a URL, make a feed private. Nothing of a known feed is
    changed, and options that it is not in line with are an error: see `feeds edit`.
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
    """What became of each, as ``POST /api/imports`` says it."""

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
            say(f"not added  {url}: a page that names")
            print_choices(outcome["feeds"])
        case "refused":
            say(f"not added  {url}\n  {printable(outcome['reason'])}", err=True)
        case "known":
            print_outcome("known", feed)
            say(f"  {_settings(feed)}")
        case _:
            print_outcome("added", feed)


def _judge(outcomes: Sequence[Document]) -> None:
    """Raises `Failure` if not all is well."""
    failed = sum(
        each["outcome"] == "refused" or bool((each["feed"] or {}).get("error"))
        for each in outcomes
    )
    if failed:
        raise _failure(failed, len(outcomes))
    undecided = sum(each["outcome"] == "undecided" for each in outcomes)
    if undecided:
        raise Undecided(f"nothing added for {plural(undecided, 'page')}: choose a feed")


def _settings(feed: Document) -> str:
    """The values that a known feed has for what the options of ``add`` set."""
    category = printable(feed["category"])
    return ", ".join(
        (
            f"category {category}" if category else "no category",
            "private" if feed["private"] else "public",
            "with credentials" if feed["has_credentials"] else "no credentials",
        )
    )


@feeds.command(name="list")
@feed_selection
@sort_option("id", "url", "since")
@limit_option
@json_option("One JSON array.")
@click.option("--urls", is_flag=True, help="The URLs alone, one a line.")
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
    """List the feeds: how each is, and since when.

    A feed is ok, failing (its last poll failed), slow (its server took 3 s or longer),
    pushed (its hub tells of what is new, so that it is polled rarely), paused, or gone
    (given up: no longer polled).
    """
    if as_json and urls:
        raise click.UsageError("--urls goes without --json")
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
        say("no such feeds")
    else:
        say("no feeds yet; add one with `fanfare feeds add URL`")


def _print_feeds(feeds: Sequence[Document]) -> None:
    rows = [
        (
            feed["id"],
            *health_cells(feed),
            "-" if feed["code"] is None else feed["code"],
            feed["entries"],
            duration(feed["period"]),
            feed["category"][:20],
            feed["health"]["reason"][:40] or feed["title"][:40],
            feed["url"],
        )
        for feed in feeds
    ]
    headings = ("ID", "STATE", "SINCE", "HTTP", "ENTRIES", "PERIOD", "CATEGORY")
    print_table((*headings, "TITLE", "URL"), rows)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@click.option(
    "--private/--public", default=None, help="Whether it is shown to the public."
)
@click.option(
    "--new-url", help="Where it is from now on; its entries and subscribers stay."
)
@category_option
@click.option(
    "--period",
    type=SPAN,
    help="Poll it so often: 90, 15m, 6h, 2d; 0: as it is planned.",
)
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
@json_option()
@speaks_to_hub
def edit(
    hub: Hub,
    feed: str,
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
) -> None:
    """Change what a feed is, and say what follows from it.

    Credentials, --basic and --header together, replace those it has. They make it
    private, and the operator's alone.
    """
    if no_credentials and (basic or headers):
        raise click.UsageError("--no-credentials goes without --basic and --header")
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
        raise click.UsageError("say what is to change, as by --private or --category")
    found = hub.patch(f"/api/feeds/{_feed_id(hub, feed)}", body)
    if as_json:
        say_json(found)
        return
    say(f"edited  {printable(found['url'])}  (feed {found['id']})")
    say(f"  {_settings(found)}")
    for each in found["follows"]:
        say(f"  {printable(each)}")


verbose_option = click.option(
    "--verbose", is_flag=True, help="Also every term that the period is made of."
)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@verbose_option
@json_option()
@speaks_to_hub
def show(hub: Hub, feed: str, verbose: bool, as_json: bool) -> None:
    """Explain a feed: last answer, validators, period, next fetch, subscribers."""
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
    """Say when a feed is fetched next, why, and what is expected in each hour."""
    found = hub.get(f"/api/feeds/{_feed_id(hub, feed)}/plan")
    if as_json:
        say_json(found)
    else:
        explain_plan(found, verbose=verbose)


@feeds.command()
@click.argument("feed", metavar="URL|ID")
@json_option()
@speaks_to_hub
def history(hub: Hub, feed: str, as_json: bool) -> None:
    """List the last 64 polls of a feed, the latest first: when, why and with what."""
    found = hub.get(f"/api/feeds/{_feed_id(hub, feed)}/history")
    if as_json:
        say_json(found)
    else:
        print_polls(found)


feeds_argument = click.argument("feeds", nargs=-1, required=True, metavar="URL|ID…")
"""Several, or ``-`` for the lines of standard input: see `_each_feed`."""
FeedVerb = Callable[[str, int], Document]
"""Given the name that was typed and the id; returns what is printed as JSON."""


@feeds.command()
@feeds_argument
@json_option("One JSON array.")
@speaks_to_hub
def fetch(hub: Hub, feeds: tuple[str, ...], as_json: bool) -> None:
    """Fetch feeds now."""

    def fetch_one(name: str, feed_id: int) -> Document:
        with waiting(f"fetching {name}"):
            found = hub.post(f"/api/feeds/{feed_id}/fetch")
        if not found["fetched"]:
            say(f"{_named(found)}\n  not fetched: {why_not_fetched(found)}", err=True)
        elif found["error"] or not as_json:
            print_outcome("fetched", found)
        return found

    def has_failed(found: Document) -> bool:
        return not found["fetched"] or bool(found["error"])

    _each_feed(hub, feeds, fetch_one, has_failed, as_json=as_json)


@feeds.command()
@feeds_argument
@json_option("One JSON array.")
@speaks_to_hub
def pause(hub: Hub, feeds: tuple[str, ...], as_json: bool) -> None:
    """Stop polling feeds, for now."""

    def pause_one(name: str, feed_id: int) -> Document:
        found = hub.post(f"/api/feeds/{feed_id}/pause")
        if not as_json:
            say(f"paused  {printable(found['url'])}")
        return found

    _each_feed(hub, feeds, pause_one, as_json=as_json)


@feeds.command()
@feeds_argument
@json_option("One JSON array.")
@speaks_to_hub
def resume(hub: Hub, feeds: tuple[str, ...], as_json: bool) -> None:
    """Poll feeds again that were paused, are gone or dead."""

    def resume_one(name: str, feed_id: int) -> Document:
        found = hub.post(f"/api/feeds/{feed_id}/resume")
        if not as_json:
            say(f"resumed  {printable(found['url'])}")
            say(f"  next fetch {moment(found['next_fetch'])}")
        return found

    _each_feed(hub, feeds, resume_one, as_json=as_json)


@feeds.command()
@feeds_argument
@json_option("One JSON array.")
@speaks_to_hub
def remove(hub: Hub, feeds: tuple[str, ...], as_json: bool) -> None:
    """Remove feeds and end their subscriptions.

    Their state is kept for 30 days, should they be added again.
    """

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
    verb: FeedVerb,
    is_failure: Callable[[Document], bool] = lambda found: False,
    *,
    as_json: bool,
) -> None:
    """Do it to each; one that fails keeps none of the others from it. Then it raises
    `Failure`."""
    done: list[Document] = []
    failures: list[Failure] = []
    named = with_input(feeds, "URL|ID")
    for name in named:
        try:
            done.append(verb(name, _feed_id(hub, name)))
        except HubUnreachable:
            raise
        except Failure as error:
            failures.append(error)
            if len(named) > 1:
                say(f"{printable(name)}\n  {printable(error.message)}", err=True)
    if as_json:
        say_json(done)
    if len(named) == 1 and failures:
        raise failures[0]
    failed = len(failures) + sum(map(is_failure, done))
    if failed:
        raise _failure(failed, len(named))


def _failure(failed: int, total: int) -> Failure:
    return Failure(f"{failed:,} of {total:,} feeds failed")


def _feed_id(hub: Hub, feed: str) -> int:
    if feed.isascii() and feed.isdigit():
        return int(feed)
    found = hub.get("/api/feeds", url=with_scheme(feed))["feeds"]
    if not found:
        raise Failure(f"no feed {feed}; `fanfare feeds list` names those there are")
    return int(found[0]["id"])


@feeds.command()
@click.argument("page", metavar="URL")
@json_option()
@kind_option
@speaks_to_hub
def discover(hub: Hub, page: str, as_json: bool, kind: str | None) -> None:
    """Say what feed or site is at a URL, or which feeds a page names. Adds nothing.

    Exit code 3 if there are several and none is clearly meant.
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
    """One a line; the best first."""
    for feed in sorted(feeds, key=lambda feed: feed["url"] != best):
        facts = [printable(each) for each in (feed["title"], feed["type"]) if each]
        about = f"  ({', '.join(facts)})" if facts else ""
        say(f"  {printable(feed['url'])}{about}")


def print_outcome(done: str, feed: Document) -> bool:
    """Say what was done and found, and when it is polled next; whether it is well."""
    is_well = not feed["error"]
    finding = _finding(feed) if is_well else f"error: {printable(feed['error'])}"
    parts = [
        (f"{done}  {_named(feed)}\n  ", None),
        (finding, None if is_well else Colour.BAD),
        (f"\n  {next_poll(feed)}", None),
    ]
    say_coloured(parts, err=not is_well)
    return is_well


def _named(feed: Document) -> str:
    return f"{printable(feed['url'])}  (feed {feed['id']})"


def _finding(feed: Document) -> str:
    if feed["last_fetch"] is None:
        return f"not fetched yet; `fanfare feeds show {feed['id']}` will tell"
    title = printable(feed["title"]) or "(no title)"
    return f"{title}: {plural(feed['entries'], 'entry', 'entries')}"


def why_not_fetched(feed: Document) -> str:
    """Why a feed that was asked for was not fetched, in words."""
    if feed["retry_after"]:
        return f"the server asked to be left alone until {moment(feed['retry_after'])}"
    return "the server has not answered yet, or is to be left alone for a while"
