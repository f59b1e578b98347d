"""``fanfare feeds show``: everything the hub knows about one feed, explained."""

from __future__ import annotations

import click

from .client import Document
from .wording import duration, moment, plural, print_facts, print_table, printable


def explain_feed(feed: Document) -> None:
    """Print a feed report: identity, last answer, then the period term by term."""
    print_facts(
        [
            ("feed", feed["id"]),
            ("url", feed["url"]),
            ("title", feed["title"]),
            ("format", feed["format"]),
            ("state", feed["state"] + (", private" if feed["private"] else "")),
            ("section", feed["section"]),
            ("subscribers", feed["subscribers"]),
            ("velocity", f"{feed['velocity']:.3g} new entries a day"),
            *_standing(feed),
            ("entries", f"{feed['entries']} in the last document"),
            *_answer(feed),
            *_oddities(feed),
            *_requests(feed),
            ("next fetch", _next_fetch(feed)),
            ("period", duration(feed["period"])),
        ]
    )
    click.echo()
    _print_terms(feed)


def explain_plan(feed: Document) -> None:
    """Print when a feed is fetched next, in one sentence, and then all its terms."""
    click.echo(f"next fetch {_next_fetch(feed)}{_because(feed)}\n")
    _print_terms(feed)


def _print_terms(feed: Document) -> None:
    print_table(
        ("TERM", "VALUE", "WHY"),
        [
            (term["name"], f"{term['value']:.6g} {term['unit']}", term["note"])
            for term in feed["period_terms"]
        ],
    )


def _because(feed: Document) -> str:
    """What decided: the end of skipped hours, or else the longest of all waits."""
    terms = {term["name"]: term for term in feed["period_terms"]}
    if feed["state"] != "active" or "rate now" not in terms:
        return ""
    own = ("backoff",) if "backoff" in terms else _WAITS
    waits = ("fresh", "retry after", *own)
    decisive = terms.get("skip") or max(
        (terms[name] for name in waits if _counts(terms.get(name))),
        key=lambda term: float(term["value"]),
    )
    if decisive["name"] != "wanted":
        return f" because of {decisive['name']}: {printable(decisive['note'])}"
    return (
        f" because {duration(decisive['value'])} of waiting, at"
        f" {terms['rate now']['value']:.3g} entries a day expected now, is worth a poll"
        f" at the price of {terms['price']['value']:.3g} entry-seconds"
    )


_WAITS = ("wanted", "floor", "ttl", "sy:updatePeriod")


def _counts(term: Document | None) -> bool:
    return term is not None and not term["note"].startswith("ignored")


def _next_fetch(feed: Document) -> str:
    resume = f"; `fanfare feeds resume {feed['id']}` polls it again"
    match feed["state"]:
        case "paused":
            return f"none{resume}"
        case "gone":
            return f"none: it answered 410{resume}"
        case "dead":
            return f"none: it answered nothing but 404 for long{resume}"
        case "removed":
            return "none: removed; add it again first"
        case _:
            return moment(feed["next_fetch"])


def _answer(feed: Document) -> list[tuple[str, object]]:
    trouble = ""
    if feed["error"]:
        trouble = f"{feed['error']} ({feed['failures']} times in a row)"
    return [
        ("last answer", "never fetched" if feed["code"] is None else feed["message"]),
        ("trouble", trouble),
        ("since", moment(feed["failing_since"]) if feed["failing_since"] else ""),
        ("last fetch", moment(feed["last_fetch"])),
        ("last parse", moment(feed["last_parse"])),
    ]


def _standing(feed: Document) -> list[tuple[str, object]]:
    """What maintenance found, once it has been there."""
    if not feed["maintained_at"]:
        return []
    porn_rank = feed["porn_rank"]
    return [
        ("popularity", f"{feed['popularity']:g}"),
        ("porn rank", "" if porn_rank is None else f"{porn_rank:g}"),
        ("stale", "yes: nothing could be read for days" if feed["is_stale"] else ""),
        ("related feeds", ", ".join(map(str, feed["related"]))),
        ("maintained", moment(feed["maintained_at"])),
    ]


def _oddities(feed: Document) -> list[tuple[str, object]]:
    """What is odd about its entries, or was."""
    rekeyed = f"{plural(feed['rekeyed'], 'known entry', 'known entries')} under new ids"
    return [
        ("bozo rank", f"{feed['bozo_rank']:g}" if feed["bozo_rank"] else ""),
        ("ids", "some are made by the hub" if feed["generated_ids"] else ""),
        (
            "re-keyed",
            f"{rekeyed}, {moment(feed['rekeyed_at'])}" if feed["rekeyed"] else "",
        ),
        (
            "gap",
            f"no entry was known, {moment(feed['gap_at'])}" if feed["gap_at"] else "",
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
    """How the next request will be made."""
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
