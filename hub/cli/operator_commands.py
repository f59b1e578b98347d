"""``fanfare health``, ``settings``, ``deliveries``, ``hubs``, ``outputs`` and
``scp``."""

from __future__ import annotations

from typing import Any, Final

import click

from hub.cli import VerbGroup, examples, say
from hub.cli.delivery_facts import (
    lost_entries_of,
    print_failed,
    print_report,
    print_sent,
)
from hub.cli.feed_facts import delay_facts
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.plan_commands import is_by_filter
from hub.cli.progress import waiting
from hub.cli.renamed_options import renamed_option
from hub.cli.selection_options import delivery_selection, plan_options
from hub.cli.wording import (
    SINCE,
    Command,
    Failure,
    age,
    json_option,
    moment,
    next_try,
    plural,
    print_facts,
    print_table,
    printable,
    say_json,
)
from hub.core.byte_sizes import byte_size
from hub.core.durations import duration
from hub.settings import DEFAULT


@click.command()
@json_option()
@speaks_to_hub
def health(hub: Hub, as_json: bool) -> None:
    """Show whether the hub is ready, its backlog, and what is wrong.

    With how many feeds and subscriptions are in which state, how late entries are, the
    disk and when it is full, and of what is wrong since when and what to do. Exit code
    1 if the hub is not ready.
    """
    found = hub.get("/api/health")
    if as_json:
        say_json(found)
    else:
        backlog, database = found["backlog"], found["database"]
        live_lag = found["freshness"]["live_lag"]
        split = found["freshness"]["split_per_second"]
        print_facts(
            [
                ("hub", f"{hub.url}, version {found['version']}"),
                ("up for", duration(found["uptime"])),
                ("feeds", _states(found["feed_states"], "feeds")),
                ("next poll", _due(backlog["oldest_due"])),
                ("subscriptions", _states(found["subscription_states"], "subs")),
                ("over", _over(found["ended_subscriptions"])),
                ("to deliver", _undelivered(backlog)),
                ("retrying", _listed(backlog["retrying"], "subscription")),
                ("given up", _listed(backlog["dead_letters"], "dead letter")),
                *delay_facts(found["freshness"]),
                ("live streams", f"{duration(live_lag)} behind"),
                ("deliveries", f"{split:.3g} a second, in the last minute"),
                (
                    "database",
                    f"{database['location']}, {byte_size(database['size_bytes'])}",
                ),
                ("search", _search(found["search"])),
                *_disk_facts(found["disk"]),
            ]
        )
    for each in found["conditions"]:
        mark = "not ready" if each["error"] else "warning"
        say(f"{mark}: {printable(each['what'])}", err=True)
        over = ", and over by now" if each.get("over") else ""
        say(f"  since {moment(each['since'])}{over}", err=True)
        if each["advice"]:
            say(f"  what to do: {printable(each['advice'])}", err=True)
    if not found["ready"]:
        raise Failure("the hub is not ready")


@click.command()
@click.option("--given", is_flag=True, help="Only those that were given.")
@json_option()
@speaks_to_hub
def settings(hub: Hub, given: bool, as_json: bool) -> None:
    """Show the settings of the hub, and where each value is from.

    Secrets are not shown. `fanfare serve --help` says what each is for.
    """
    found = [
        each
        for each in hub.get("/api/settings")["settings"]
        if not given or each["source"] != DEFAULT
    ]
    if as_json:
        say_json({"settings": found})
        return
    print_table(
        ("setting", "given by", "value"),
        [(each["name"], each["source"], _setting_value(each)) for each in found],
    )


def _setting_value(setting: Document) -> str:
    if setting["secret"] and setting["source"] != DEFAULT:
        return "(set)"
    return str(setting["value"]) or "none"


def _disk_facts(disk: dict[str, Any]) -> list[tuple[str, str]]:
    sizes = [f"{what} {byte_size(disk[key])}" for key, what in _PURPOSES.items()]
    free, size = byte_size(disk["disk_free"]), byte_size(disk["disk_size"])
    return [
        ("used for", ", ".join(sizes)),
        ("disk", f"{free} of {size} free"),
        ("outlook", disk["outlook"]),
    ]


_PURPOSES: Final = {
    "entries": "entries",
    "search": "search index",
    "seen": "seen entries",
    "deliveries": "deliveries",
    "other": "all else",
    "free_pages": "free pages",
    "collections": "collections",
}


def _over(ended: dict[str, int]) -> str:
    """Return how many subscriptions have ended, and the command that lists them."""
    if not ended["gone"] + ended["ended"]:
        return ""
    of_day = f" ({ended['gone_of_day']:,} in the last day)" if ended["gone"] else ""
    counted = f"{ended['gone']:,} gone{of_day}, {ended['ended']:,} ended otherwise"
    return f"{counted} (fanfare subs list --state over)"


def _states(counts: dict[str, int], group: str) -> str:
    """Return counts of states, and the command that lists what fails.

    For example ``1,000: 990 ok, 10 failing (fanfare feeds list --failing)``.
    """
    found = {state: count for state, count in counts.items() if count}
    parts = [f"{count:,} {state}" for state, count in found.items()]
    said = parts if len(parts) > 1 else [f"all {state}" for state in found]
    total = ": ".join(filter(None, (f"{sum(found.values()):,}", ", ".join(said))))
    return f"{total} (fanfare {group} list --failing)" if "failing" in found else total


def _search(index: dict[str, Any]) -> str:
    if index["state"] == "off":
        return "off (FANFARE_SEARCH_DAYS=0)"
    days = index["days"]
    covers = "all entries" if days is None else f"entries of the last {days:g} days"
    if index["state"] == "building":
        return f"{covers}; the index is being built, {int(100 * index['share'])} % done"
    return covers


def _due(at: str | None) -> str:
    return "none is due" if at is None else f"due {moment(at)}"


def _undelivered(backlog: Document) -> str:
    """Return in words how many first deliveries wait."""
    if not backlog["fanouts"] and not backlog["chunks"]:
        return "no first delivery waits"
    oldest = backlog["oldest_undelivered"]
    since = f", the oldest found {age(oldest)} ago" if oldest else ""
    records = plural(backlog["fanouts"], "record")
    chunks = plural(backlog["chunks"], "chunk")
    return f"{records}, and {chunks} of up to 500 deliveries{since}"


def _listed(count: int, what: str) -> str:
    return f"{plural(count, what)} (fanfare deliveries list)" if count else "none"


@click.group(cls=VerbGroup)
def deliveries() -> None:
    """List, show, retry and discard deliveries that failed."""


@deliveries.command(
    name="list",
    epilog=examples(
        "fanfare deliveries list",
        "fanfare deliveries list --status 5xx --host you.example --since 2h",
    ),
)
@json_option()
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=100,
    show_default=True,
    help="The most to list.",
)
@click.option("--failed", is_flag=True, help="List failed requests, newest first.")
@delivery_selection
@click.option(
    "--subscription",
    type=click.IntRange(1),
    help="Failed requests of this subscription.",
)
@speaks_to_hub
def list_deliveries(
    hub: Hub,
    as_json: bool,
    limit: int,
    failed: bool,
    status: str | None,
    host: str | None,
    topic: str | None,
    since: str | None,
    until: str | None,
    subscription: int | None,
) -> None:
    """List retrying subscriptions and dead letters (deliveries that were given up).

    With --failed, --status, --host, --topic, --since, --until or --subscription, list
    the failed requests of all subscriptions instead.
    """
    if failed or status or host or topic or since or until or subscription:
        page = hub.get(
            "/api/deliveries/failed",
            limit=limit,
            status=status,
            host=host,
            topic=topic,
            since=since,
            until=until,
            subscription=subscription,
        )
        print_failed(page, as_json=as_json)
        return
    found = hub.get("/api/deliveries", limit=limit)
    if as_json:
        say_json(found)
        return
    if not found["retrying"] and not found["dead_letters"]:
        say("no retrying subscriptions and no dead letters")
    if found["retrying"]:
        print_table(
            ("SUBSCRIPTION", "COUNTED", "NEXT TRY", "LAST ERROR", "CALLBACK"),
            [
                (
                    each["subscription"],
                    each["attempts"],
                    next_try(each),
                    each["last_error"] or "none: it is catching up",
                    each["callback"],
                )
                for each in found["retrying"]
            ],
        )
        say(
            "counted: failures by the schedule; a try ahead of it, because of a new"
            " record, does not count",
            err=True,
        )
    if found["dead_letters"]:
        print_table(
            (
                *("DEAD LETTER", "SUBSCRIPTION", "RECORDS", "SINCE", "REASON"),
                *("CALLBACK", "OF"),
            ),
            [
                (
                    each["id"],
                    each["subscription"],
                    f"{each['first']}-{each['last']}",
                    moment(each["at"]),
                    each["reason"],
                    each["callback"],
                    lost_entries_of(each),
                )
                for each in found["dead_letters"]
            ],
        )


@deliveries.command(name="sent")
@json_option()
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=100,
    show_default=True,
    help="The most to list.",
)
@click.option("--topic", help="Only what the feed of this topic had to tell.")
@click.option("--since", type=SINCE, help="Since then: an age such as 2h, or a time.")
@click.option("--until", type=SINCE, help="Before then: an age or a time.")
@speaks_to_hub
def list_sent(
    hub: Hub,
    as_json: bool,
    limit: int,
    topic: str | None,
    since: str | None,
    until: str | None,
) -> None:
    """List what went to callbacks at the first try, the latest first.

    A line is of up to 500 callbacks that a record was sent to together.
    """
    page = hub.get(
        "/api/deliveries/sent", limit=limit, topic=topic, since=since, until=until
    )
    print_sent(page, as_json=as_json)


@deliveries.command()
@json_option()
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=20,
    show_default=True,
    help="The most to list.",
)
@speaks_to_hub
def slowest(hub: Hub, as_json: bool, limit: int) -> None:
    """List the callbacks that take longest to answer, by their last 16 requests.

    Callbacks that have answered each of these within 100 ms are left out.
    """
    found = hub.get("/api/deliveries/slowest", limit=limit)
    if as_json:
        say_json(found)
        return
    since = found.get("since")  # a former hub may not say
    known = f"since {moment(since)}" if since else "that are kept"
    if not found["callbacks"]:
        say(f"no callback took 100 ms for any of its last 16 requests {known}")
        return
    print_table(
        ("SUBSCRIPTION", "MEDIAN MS", "SLOWEST MS", "REQUESTS", "FAILED", "CALLBACK"),
        [
            (
                each["subscription"],
                each["median_milliseconds"],
                each["slowest_milliseconds"],
                each["requests"],
                each["failed"],
                each["callback"],
            )
            for each in found["callbacks"]
        ],
    )
    say(f"by the last 16 requests of each {known}", err=True)


@deliveries.command()
@click.argument("delivery", type=click.IntRange(1), metavar="ID")
@json_option()
@speaks_to_hub
def show(hub: Hub, delivery: int, as_json: bool) -> None:
    """Show a failed delivery in full: the request, where it failed, and the answer."""
    found = hub.get(f"/api/deliveries/failed/{delivery}")
    if as_json:
        say_json(found)
    else:
        print_report(found)


def undelivered_options(command: Command) -> Command:
    """Give a command the options that name or select what was not delivered."""
    for option in (
        json_option(),
        plan_options,
        delivery_selection,
        click.option(
            "--outcome",
            type=click.Choice(["given-up", "retried"]),
            help="Only dead letters (given-up), or only retrying subscriptions.",
        ),
        renamed_option(
            "--dead-letter",
            former="--dead",
            type=click.IntRange(1),
            help="The id of a dead letter.",
        ),
        click.option(
            "--subscription",
            type=click.IntRange(1),
            help="The id of a retrying subscription.",
        ),
    ):
        command = option(command)
    return command


@deliveries.command(
    epilog=examples(
        "fanfare deliveries retry --dead-letter 7",
        "fanfare deliveries retry --status 5xx --host you.example --since 2h",
    )
)
@undelivered_options
@speaks_to_hub
def retry(hub: Hub, /, as_json: bool, **given: object) -> None:
    """Try a retrying subscription or a dead letter again now, or all that match.

    --status, --host and --since match failed requests; what these were to deliver is
    tried again.
    """
    named = _named(given)
    if is_by_filter(hub, "retry", "deliveries", named, given, as_json=as_json):
        return
    _act_on_one(hub, "retry", named, as_json=as_json)
    if not as_json:
        say("due now; `fanfare subs show` shows the result")


@deliveries.command(
    epilog=examples(
        "fanfare deliveries discard --subscription 7",
        "fanfare deliveries discard --host gone.example",
    )
)
@undelivered_options
@speaks_to_hub
def discard(hub: Hub, /, as_json: bool, **given: object) -> None:
    """Discard a dead letter or what a retrying subscription lacks, or all that match.

    It is not sent any more. --status, --host and --since match failed requests; what
    these were to deliver is discarded.
    """
    named = _named(given)
    if is_by_filter(hub, "discard", "deliveries", named, given, as_json=as_json):
        return
    _act_on_one(hub, "discard", named, as_json=as_json)
    if not as_json:
        say("discarded")


def _named(given: dict[str, object]) -> Document:
    """Take the id of a subscription or dead letter out of ``given``; {} without one.

    Raises `click.UsageError` if both are named.
    """
    ids = {name: given.pop(name) for name in ("subscription", "dead_letter")}
    named = {name: value for name, value in ids.items() if value is not None}
    if len(named) > 1:
        raise click.UsageError("give either --subscription or --dead-letter")
    return named


def _act_on_one(hub: Hub, verb: str, named: Document, *, as_json: bool) -> None:
    answer = hub.post(f"/api/deliveries/{verb}", named)
    if as_json:
        say_json({**named, **answer})


@click.command()
@json_option()
@speaks_to_hub
def outputs(hub: Hub, as_json: bool) -> None:
    """Show what the hub publishes, who reads it, and how its last build went."""
    found = hub.get("/api/outputs")
    if as_json:
        say_json(found)
        return
    print_facts(
        [
            ("topics", f"{found['topics']:,}"),
            ("OPML", _opml(found)),
            ("OpenFeeder", _openfeeder(found)),
            *_collection_facts(found["collections"]),
            ("counted since", moment(found["counted_since"])),
        ]
    )
    if found["readers"]:
        print_table(
            ("OUTPUT", "READER", "LATELY", "IN A DAY"),
            [
                (each["output"], each["reader"] or "others", each["hour"], each["day"])
                for each in found["readers"]
            ],
        )


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=100,
    show_default=True,
    help="The most to list: those with the most subscriptions.",
)
@json_option()
@speaks_to_hub
def hubs(hub: Hub, limit: int, as_json: bool) -> None:
    """List other people's hubs that push feeds, and how well each does."""
    found = hub.get("/api/hubs", limit=limit)
    if as_json:
        say_json(found)
        return
    total, *others = found["hubs"] or [None]
    if not others:
        say("no feed has been pushed by another hub yet", err=True)
        return
    print_table(
        ("HUB", "USED", "BROUGHT FIRST", "LATE", "CONFIRMED", "PUSHES"),
        [
            _push_hub(each)
            for each in (*others, {**total, "hub": "all hubs", "used": None})
        ],
    )


def _push_hub(found: Document) -> tuple[str, ...]:
    counts = found["counts"]
    news = counts["brought"] + counts["missed"]
    share = f"{100 * counts['brought'] / news:.0f} % of {news:,}" if news else "-"
    return (
        found["hub"],
        {True: "yes", False: "no"}.get(found["used"], "-"),
        share,
        f"{counts['late']:,}",
        f"{counts['confirmed']:,} of {counts['requested']:,}",
        f"{counts['delivered']:,}",
    )


def _opml(outputs: Document) -> str:
    size = outputs["opml_size"]
    return "made on request" if size is None else byte_size(size)


def _openfeeder(outputs: Document) -> str:
    if not outputs["openfeeder"]:
        return "off (FANFARE_OPENFEEDER)"
    key = ", for those who have the key" if outputs["openfeeder_key"] else ""
    return f"{plural(outputs['pages'], 'page')}{key}"


def _collection_facts(found: Document | None) -> list[tuple[str, str]]:
    if found is None:
        return [("collections", "off (FANFARE_SCP)")]
    size = byte_size(found["size"])
    return [
        ("collections", f"{plural(found['total'], 'file')}, {size}"),
        ("published", moment(found["made"])),
        ("next delta", moment(found["next_delta"])),
        ("next snapshot", moment(found["next_snapshot"])),
        ("last build", _last_build(found)),
    ]


def _last_build(collections: Document) -> str:
    if collections["wanted"] or collections["pages_written"] is not None:
        return f"under way, {collections['pages_written'] or 0:,} pages so far"
    last = collections["last_build"]
    if last is None:
        return "none since the hub has started"
    if last["error"]:
        return f"failed {moment(last['begun'])}: {last['error']}"
    files, pages = plural(last["files"], "file"), plural(last["pages"], "page")
    return f"{moment(last['begun'])}: {files}, {pages}"


BUILD_SECONDS: Final = 24 * 3_600.0
"""Deadline of a build, which takes long if there are many pages."""


@click.group(cls=VerbGroup)
def scp() -> None:
    """Build collections of pages for crawlers (SCP)."""


@scp.command()
@click.option("--snapshots", is_flag=True, help="Build all snapshots, due or not.")
@json_option()
@speaks_to_hub
def build(hub: Hub, snapshots: bool, as_json: bool) -> None:
    """Build deltas of what has changed, and the snapshots that are due."""
    with waiting("building collections", look=lambda: _pages_written(hub)):
        found = hub.post("/api/scp/build", {"snapshots": snapshots}, BUILD_SECONDS)
    if as_json:
        say_json(found)
        return
    if not found["collections"]:
        say("nothing has changed")
        return
    print_table(
        ("TYPE", "SECTION", "PAGES", "BYTES", "NAME"),
        [
            (each["type"], each["section"], each["pages"], each["size"], each["name"])
            for each in found["collections"]
        ],
    )


def _pages_written(hub: Hub) -> str:
    """Return how far a build is: ``120,000 pages``; "" while that is not known."""
    try:
        pages = hub.get("/api/scp/build")["pages_written"]
    except Failure:
        return ""
    return f"{pages:,} pages" if pages else ""
