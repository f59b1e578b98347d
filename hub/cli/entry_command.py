"""``fanfare entry``: the way of one entry through the hub."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import click

from hub.cli import examples, say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.wording import json_option, plural, print_facts, print_table, say_json
from hub.core.durations import duration


@click.command(epilog=examples("fanfare entry 4711"))
@click.argument("id", type=click.IntRange(1))
@json_option()
@speaks_to_hub
def entry(hub: Hub, id: int, as_json: bool) -> None:
    """Show the way of an entry: published, seen, committed, delivered.

    ID: as `fanfare entries` lists it.
    """
    found = hub.get(f"/api/entries/{id}")
    if as_json:
        say_json(found)
        return
    print_facts(
        [
            ("entry", found["id"]),
            ("title", found["title"] or "(untitled)"),
            ("feed", f"{found['url']} (feed {found['feed']})"),
            ("guid", found["guid"]),
            ("revision", found["revision"]),
            ("withdrawn", "by its publisher" if found["deleted"] else ""),
        ]
    )
    say()
    stations = sorted(_stations(found), key=lambda each: _at(each[0]))
    print_table(
        ("AT", "AFTER", "STATION", "WHAT"),
        [
            (f"{_at(at):%F %T.%f}"[:-3] + "Z", _after(found, at), station, what)
            for at, station, what in stations
        ],
    )
    for each in found["waiting"]:
        say(f"waiting: {_callback(each)}: {_wait(each)}")
    if not found["records"]:
        say("the log has no record of it any more", err=True)
    if found["more_subscribers"] or found["more_ended"]:
        say("there are more subscriptions: `fanfare subs list`", err=True)


def _stations(found: Document) -> Iterator[tuple[str, str, str]]:
    """When it was where, and what happened there."""
    if found["published"]:
        doubt = "" if found["believed"] else "; not believed"
        yield found["published"], "published", f"by the date in the feed{doubt}"
    for each in found["pauses"]:
        yield each["paused_at"], "paused", f"its feed, by {each['paused_by'] or '?'}"
        if each["resumed_at"]:
            by = each["resumed_by"] or "?"
            yield each["resumed_at"], "resumed", f"its feed, by {by}"
    if poll := found["poll"]:
        reason = poll["reason"].replace("_", " ")
        yield poll["at"], "seen", f"by a poll ({reason}){_delay(found)}"
    for each in found["records"]:
        yield each["at"], "committed", f"record {each['position']} ({each['kind']})"
    for each in found["deliveries"]:
        outcome = each["error"] or f"answered {each['status']}"
        station = "not delivered" if each["error"] else "delivered"
        over = (
            f", over since {_clock(each['over_since'])}" if each["over_since"] else ""
        )
        yield each["at"], station, f"{_callback(each)}{over}: {outcome}"
    for each in found["given_up"]:
        yield each["at"], "given up", f"{_callback(each)}: {each['reason']}"


def _delay(found: Document) -> str:
    """Why it was not seen before, if its publisher showed it late."""
    if not (count := found["polls_without"]):
        return ""
    last = _clock(found["last_poll_without"])
    return (
        f"; {plural(count, 'poll')} in between, the last at {last}, did not have it:"
        " its publisher showed it later"
    )


def _wait(each: Document) -> str:
    since = f"since {_clock(each['failing_since'])}"
    if each["paused"]:
        return f"{since}, it is paused"
    next_try = "under way" if each["under_way"] else _clock(each["next_try"])
    return f"{since}, {each['last_error'] or 'catching up'}; next try {next_try}"


def _callback(each: Document) -> str:
    return f"{each['callback']} (subscription {each['subscription']})"


def _at(written: str) -> datetime:
    return datetime.fromisoformat(written)


def _clock(at: str) -> str:
    return f"{_at(at):%F %T}Z"


def _after(found: Document, at: str) -> str:
    """How long after its publication; "" if that is not known."""
    if found["believed"] is None:
        return ""
    seconds = (_at(at) - _at(found["believed"])).total_seconds()
    return f"{seconds * 1e3:.3g} ms" if 0 < seconds < 1 else duration(max(seconds, 0))
