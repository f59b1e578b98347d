"""What ``fanfare feeds show`` and ``report`` print: all that is known of feeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from hub.cli import say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.wording import (
    cut,
    health_of,
    json_option,
    moment,
    plural,
    print_facts,
    print_table,
    printable,
    say_json,
)
from hub.core.durations import duration

TITLE_WIDTH = 60


def explain_feed(feed: Document, *, verbose: bool) -> None:
    """Print a feed report: identity, last answer, when it is polled next and why.

    If ``verbose``, also print every term of the polling period.
    """
    print_facts(
        [
            ("feed", feed["id"]),
            ("url", feed["url"]),
            ("title", feed["title"]),
            ("format", feed["format"]),
            ("state", health_of(feed)),
            ("access", "private" if feed["private"] else "public"),
            ("category", feed["category"]),
            ("subscribers", feed["subscribers"]),
            (
                "velocity",
                f"{feed['velocity']:.3g} new entries a day, the mean of three weeks; of"
                " a new feed of 2.5 days, even if it is known for less",
            ),
            *_maintenance(feed),
            ("entries", _entries(feed)),
            *delay_facts(feed["freshness"]),
            *_site(feed["site"]),
            *_push(feed["push"]),
            *_answer(feed),
            *_quality(feed),
            *_requests(feed),
            ("next fetch", _next_fetch(feed)),
            ("because", feed["next_fetch_reason"]),
            ("period", _period(feed)),
        ]
    )
    if verbose:
        say()
        _print_terms(feed["period_terms"])


def _period(feed: Document) -> str:
    own = feed["own_period"]
    if own:
        return f"{duration(own)}, as set"
    is_new = feed["next_fetch_reason"].startswith("it is new")
    return duration(feed["period"]) + (", once it is new no more" if is_new else "")


def explain_plan(plan: Document, *, verbose: bool) -> None:
    """Print when a feed is fetched next, in one sentence, then what led to it.

    If ``verbose``, also print every term of the plan.
    """
    say(f"{printable(plan['sentence'])}\n")
    print_facts(
        [
            ("feed", f"{plan['id']}  {plan['url']}"),
            ("rate", f"{plan['rate']:.3g} entries a day"),
            ("rate now", f"{plan['rate_now']:.3g} entries a day"),
            ("price", f"{plan['price']:.3g} entry-seconds"),
            ("hints in force", ", ".join(plan["hints_in_force"]) or "none"),
            *_site(plan["site"]),
            *_push(plan["push"]),
        ]
    )
    if verbose:
        say()
        _print_terms(plan["terms"])
    say("\nexpected entries in each hour (UTC), relative to the mean:\n")
    hours = [f"{factor:.1f}" for factor in plan["hours"]]
    print_table(
        ("", *(str(hour) for hour in range(24))),
        [(day, *hours[24 * i : 24 * i + 24]) for i, day in enumerate(_DAYS)],
    )


def print_polls(history: Document) -> None:
    """Print a table of polls, the latest first, and what explains the gaps."""
    if history["polls"]:
        _print_poll_table(history["polls"])
    else:
        say(f"of {printable(history['url'])} no poll is kept, or none of that time")
    for name in ("before", "after"):
        if poll := history.get(name):
            said = f"{_reason(poll)}, {poll['outcome']}, HTTP {poll['code'] or '-'}"
            say(f"the poll {name}: {moment(poll['at'])}, {said}")
    for pause in history.get("pauses", ()):
        say(_pause(pause))


def _pause(pause: Document) -> str:
    began, ended = pause["paused_at"], pause["resumed_at"]
    start = f"{moment(began)}{_by(pause['paused_by'])}"
    if ended is None:
        return f"paused since {start}"
    return f"paused from {start} until {moment(ended)}{_by(pause['resumed_by'])}"


def _by(who: str | None) -> str:
    return f" ({printable(who)})" if who else ""


def _print_poll_table(polls: Sequence[Document]) -> None:
    rows = [
        (
            moment(poll["at"]),
            _reason(poll),
            poll["outcome"],
            poll["code"] or "-",
            poll["milliseconds"],
            poll["entries"] or "",
        )
        for poll in polls
    ]
    print_table(("AT", "REASON", "OUTCOME", "HTTP", "MS", "ENTRIES"), rows)


def _reason(poll: Document) -> str:
    reason = str(poll["reason"]).replace("_", " ")
    asked_by = poll.get("asked_by")
    return f"{reason} ({printable(asked_by)})" if asked_by else reason


def print_entries(found: Document) -> None:
    """Print a table of entries, newest first."""
    if not found["entries"]:
        say(f"the hub has no entry of {printable(found['url'])}")
        return
    rows = [
        (
            each["id"],
            moment(each["published"]) if each["published"] else "",
            each["revision"],
            cut(each["title"] or "(untitled)", TITLE_WIDTH),
        )
        for each in found["entries"]
    ]
    print_table(("ID", "PUBLISHED", "REVISION", "TITLE"), rows)


def delay_facts(freshness: Document) -> list[tuple[str, object]]:
    """Return how late new entries are, as lines for `print_facts`."""
    late = (
        _delay(freshness["publication_to_commit"], "publication"),
        _undated(freshness.get("undated", 0)),
    )
    return [
        ("new entries", "; ".join(each for each in late if each)),
        ("first delivery", _delay(freshness["commit_to_delivery"], "commit")),
    ]


def _delay(delay: Document, since: str) -> str:
    if not delay["entries"]:
        return ""
    half = _within(delay["p50"], "half", "half")
    most = _within(delay["p99"], "99 %", "1 %")
    after = "of" if delay["p50"] is not None else "after"
    return f"{half} {after} {since}, {most}, of {delay['entries']:,}"


def _within(seconds: float | None, share: str, rest: str) -> str:
    """How long ``share`` of the delays took at most; None: beyond what is counted, and
    so more than the ``rest`` did."""
    if seconds is None:
        return f"over {rest} later than is counted"
    return f"{share} within {duration(seconds)}"


def _undated(count: int) -> str:
    return f"{count:,} without a believable date" if count else ""


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _entries(feed: Document) -> str:
    where = "pages of the site" if feed["site"] else "in the last document"
    return f"{feed['entries']} {where}"


def _site(site: Document | None) -> list[tuple[str, object]]:
    """Return how far the reading of a site has come; empty for a plain feed."""
    if site is None:
        return []
    walked, reread = site["walked_at"], site["reread_at"]
    return [
        ("site", f"{site['kind']}, {plural(site['pages'], 'page')} known"),
        ("first reading", "" if site["is_read"] else "under way: nothing is sent yet"),
        ("under way", site["phase"]),
        ("changes since", site["cursor"] or "not reported by the site"),
        ("full walk", moment(walked) if walked else "not yet"),
        ("every page read", moment(reread) if reread else ""),
    ]


def _push(push: Document | None) -> list[tuple[str, object]]:
    """Return whether a hub pushes the feed, and how well; empty if none does."""
    if push is None:
        return []
    counts = ", ".join(
        f"{push[name]} {name}" for name in ("brought", "late", "missed", "foreign")
    )
    polled = "polled rarely" if push["is_trusted"] else "polled like any other feed"
    return [
        ("hub", f"{push['hub']} ({push['way']}), {push['state']}; {polled}"),
        ("pushed", f"{moment(push['pushed_at'])}: {counts}"),
        ("pushed until", moment(push["until"]) if push["until"] else ""),
        ("hub's error", push["error"]),
        ("hub asked again", moment(push["retry_at"]) if push["retry_at"] else ""),
    ]


def _print_terms(terms: Sequence[Document]) -> None:
    print_table(
        ("TERM", "VALUE", "WHY"),
        [
            (term["name"], f"{term['value']:.6g} {term['unit']}", term["note"])
            for term in terms
        ],
    )


def _next_fetch(feed: Document) -> str:
    resume = f"; `fanfare feeds resume {feed['id']}` polls it again"
    match feed["state"]:
        case "paused":
            return f"none{resume}"
        case "gone":
            return f"none: it answered 410{resume}"
        case "dead":
            return f"none: it answered nothing but 404 for days{resume}"
        case "removed":
            return "none: removed; add it again first"
        case _:
            return moment(feed["next_fetch"])


def _answer(feed: Document) -> list[tuple[str, object]]:
    error = ""
    if feed["error"]:
        count = feed["failures"]
        error = feed["error"] + (f" ({count} times in a row)" if count > 1 else "")
    return [
        ("last answer", "never fetched" if feed["code"] is None else feed["message"]),
        ("error", error),
        ("since", moment(feed["failing_since"]) if feed["failing_since"] else ""),
        ("last fetch", moment(feed["last_fetch"])),
        ("last parse", moment(feed["last_parse"])),
    ]


def _maintenance(feed: Document) -> list[tuple[str, object]]:
    """Return what maintenance found; empty until it has looked at the feed."""
    if not feed["maintained_at"]:
        return []
    porn_rank = feed["porn_rank"]
    return [
        ("popularity", f"{feed['popularity']:g}"),
        ("porn rank", "" if porn_rank is None else f"{porn_rank:g}"),
        (
            "stale",
            "yes: no document could be parsed for days" if feed["is_stale"] else "",
        ),
        ("related feeds", ", ".join(map(str, feed["related"]))),
        ("maintained", moment(feed["maintained_at"])),
    ]


def _quality(feed: Document) -> list[tuple[str, object]]:
    """Return what is odd about the feed's entries, or was."""
    rekeyed = f"{plural(feed['rekeyed'], 'known entry', 'known entries')} under new ids"
    return [
        ("bozo rank", f"{feed['bozo_rank']:g}" if feed["bozo_rank"] else ""),
        ("ids", "some were made by the hub" if feed["generated_ids"] else ""),
        (
            "re-keyed",
            f"{rekeyed}, {moment(feed['rekeyed_at'])}" if feed["rekeyed"] else "",
        ),
        (
            "gap",
            f"no entry was known, {moment(feed['gap_at'])}" if feed["gap_at"] else "",
        ),
        (
            "waiting",
            f"{plural(feed['waiting'], 'entry', 'entries')} over the daily limit, after"
            f" {feed['told_of_day']:,} new, {feed['bytes_of_day'] / 1e6:,.1f} MB"
            if feed["waiting"]
            else "",
        ),
        (
            "left out",
            f"{plural(feed['dropped'], 'entry', 'entries')} of the last document"
            if feed["dropped"]
            else "",
        ),
        *(("note", problem) for problem in feed["problems"]),
    ]


def _requests(feed: Document) -> list[tuple[str, object]]:
    """Return how the next request will be made."""
    validators = feed["validators"] or {"etag": "", "last_modified": ""}
    moved = feed["fetch_url"] if feed["fetch_url"] != feed["url"] else ""
    return [
        ("fetched from", moved),
        ("etag", validators["etag"]),
        ("last modified", validators["last_modified"]),
        ("honours validators", "yes" if feed["answers_304"] else "not seen yet"),
        ("fresh until", moment(feed["fresh_until"]) if feed["fresh_until"] else ""),
        ("not before", moment(feed["retry_after"]) if feed["retry_after"] else ""),
    ]


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
@click.option("--kind", type=click.Choice(KINDS), help="Report only this kind.")
@json_option("Print one JSON array.")
@speaks_to_hub
def report(hub: Hub, kind: str | None, as_json: bool) -> None:
    """List feeds that need attention: dead, failing, moved, wasteful and others.

    Each comes with a suggestion. A feed is wasteful if it takes more than 2,000 polls
    for an entry.
    """
    found = list(hub.each("/api/findings", "feeds", kind=kind))
    if as_json:
        say_json(found)
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
    """Print each suggestion once: most feeds of a kind have the same."""
    say()
    for suggestion in dict.fromkeys(suggestions):
        say(f"  {printable(suggestion)}")
    say()
