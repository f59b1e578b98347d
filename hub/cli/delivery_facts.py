"""Prints requests to callbacks: where they failed and what was answered."""

from __future__ import annotations

from typing import Final

from hub.cli import say
from hub.cli.hub_client import Document
from hub.cli.wording import (
    moment,
    plural,
    print_facts,
    print_table,
    printable,
    say_json,
)
from protocols.http.request_stage import STAGE_WORDS

WITHHELD: Final = "the rest is not shown for callbacks in allowed networks"


def print_attempts(attempts: list[Document]) -> None:
    """Print a table of attempts, then the last failure in full."""
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
    last = next((each for each in attempts if each["error"]), None)
    if last is not None and last["failed_at"]:
        say("\nthe last failure:")
        print_failure(last)
        say(f"\n`fanfare deliveries show {last['id']}` shows what was sent")


def print_failure(attempt: Document) -> None:
    """Print where an attempt failed, and what was answered."""
    print_facts(
        [
            ("time", moment(attempt["at"]) if attempt["at"] else ""),
            ("error", attempt["error"]),
            ("why then", str(attempt.get("reason", "")).replace("_", " ")),
            ("failed", STAGE_WORDS.get(attempt["failed_at"] or "", "not kept")),
            ("after", f"{attempt['milliseconds']} ms"),
            ("answer", _answer_line(attempt)),
        ]
    )
    _print_answer(attempt)


def _answer_line(attempt: Document) -> str:
    if attempt["answer"] is not None:
        return str(attempt["answer"]["status_line"])
    status = f"HTTP {attempt['status']}" if attempt["status"] else "none"
    return f"{status}; {WITHHELD}" if attempt["answer_withheld"] else status


def print_report(report: Document) -> None:
    """Print a failed delivery in full."""
    print_facts(
        [
            ("delivery", report["id"]),
            ("subscription", report["subscription"]),
            ("topic", report["topic"]),
            ("callback", report["callback"]),
            ("record", report["position"]),
            *told_facts(report),
        ]
    )
    say()
    print_failure(report)
    request = report["request"]
    if request is None:
        say(f"\nthe request cannot be shown: {printable(report['request_missing'])}")
        return
    sameness = (
        "as it was sent"
        if request["is_same"]
        else "as it would be sent now, because the entries have changed"
    )
    say(f"\nthe request, {sameness} ({plural(request['size'], 'byte')}):")
    _print_request(request)


def told_facts(found: Document) -> list[tuple[str, str]]:
    """Name what a record told of, a fact for each entry; then say what is missing."""
    told, total = found["told"], found["told_total"]
    facts = [("told of", _told_entry(each)) for each in told]
    if total is None:
        unknown = "not known: the log no longer has it, or it may not be read any more"
        return [("told of", unknown)]
    if not total:
        return [("told of", "no entry that its callback is sent")]
    if total > len(told):
        more = f"{total - len(told)}{' more' if told else ''}"
        facts.append(("told of", f"{more} not shown, deleted or hidden since"))
    return facts


def _told_entry(entry: Document) -> str:
    """Name an entry that a request told of: ``News (entry 34)``."""
    number = "" if entry["id"] is None else f" (entry {entry['id']})"
    return f"{entry['title']}{number}"


def print_trial(trial: Document) -> None:
    """Print the request of a test delivery, and what came of it."""
    request = trial["request"]
    say(f"sent, marked as a test ({plural(request['size'], 'byte')}):")
    _print_request(request)
    say()
    if trial["delivered"]:
        print_facts(
            [
                ("delivered", f"{printable(trial['callback'])}"),
                ("after", f"{trial['milliseconds']} ms"),
                ("answer", _answer_line(trial)),
            ]
        )
        _print_answer(trial)
    else:
        print_failure({**trial, "at": None})


def _print_request(request: Document) -> None:
    say(f"    {printable(request['method'])} {printable(request['url'])}")
    shown = len(request["body"].encode())
    _print_message(request["headers"], request["body"], shown < request["size"])


def _print_answer(attempt: Document) -> None:
    answer = attempt["answer"]
    if answer is not None:
        _print_message(answer["headers"], answer["body"], answer["is_excerpt"])


def _print_message(headers: list[Document], body: str, is_excerpt: bool) -> None:
    """Print a message indented, so that its lines do not look like this command's."""
    for each in headers:
        say(f"    {printable(each['name'])}: {printable(each['value'])}".rstrip(": "))
    lines = body.splitlines()
    say("\n".join(["", *(f"    {each}" for each in lines)]) if lines else "")
    if is_excerpt:
        say("    […]")


def print_failed(page: Document, *, as_json: bool) -> None:
    """Print a page of the failed requests of all subscriptions."""
    if as_json:
        say_json(page)
        return
    failed = page["failed"]
    if not failed:
        say("no failed deliveries match")
        return
    print_table(
        ("ID", "TIME", "SUB", "ERROR", "CALLBACK"),
        [
            (
                each["id"],
                moment(each["at"]),
                each["subscription"],
                each["error"],
                each["callback"],
            )
            for each in failed
        ],
    )
    total = f"more than {page['total']}" if page["has_more"] else page["total"]
    say(f"\n{len(failed)} of {total}; `fanfare deliveries show ID` shows one in full,")
    say("and `fanfare subs show SUB` what was delivered since")


def lost_entries_of(dead: Document) -> str:
    """Say what a dead letter is of: ``4 entries: First, Second, Third, …``; "" if that
    is unknown."""
    if not dead["entries"]:
        return ""
    titles = dead["titles"] + ["…"] * (dead["entries"] > len(dead["titles"]))
    more = " or more" if dead["has_more"] else ""
    noun = "entry" if dead["entries"] == 1 else "entries"
    return f"{dead['entries']}{more} {noun}: {', '.join(titles)}"


def print_sent(page: Document, *, as_json: bool) -> None:
    """Print a page of what went to callbacks at the first try."""
    if as_json:
        say_json(page)
        return
    if not page["sent"]:
        say("nothing like that was sent in the last 7 days")
        return
    print_table(
        ("TIME", "RECORD", "TAKEN BY", "MEDIAN MS", "SLOWEST MS", "TOPIC"),
        [
            (
                moment(each["at"]),
                each["position"],
                f"{each['delivered']} of {each['callbacks']}",
                each["median_milliseconds"],
                each["slowest_milliseconds"],
                each["topic"] or f"feed {each['feed_id']}",
            )
            for each in page["sent"]
        ],
    )
