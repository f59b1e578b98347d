"""``fanfare entry``: the way of one entry through the hub."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import click

from hub.cli import examples, say
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.wording import json_option, print_facts, print_table, say_json
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
        why = "it is paused" if each["paused"] else each["last_error"] or "catching up"
        say(f"waiting: {each['callback']} (subscription {each['subscription']}): {why}")
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
        yield poll["at"], "seen", f"by a poll ({poll['reason'].replace('_', ' ')})"
    for each in found["records"]:
        yield each["at"], "committed", f"record {each['position']} ({each['kind']})"
    for each in found["deliveries"]:
        outcome = each["error"] or f"answered {each['status']}"
        station = "not delivered" if each["error"] else "delivered"
        yield each["at"], station, f"{_callback(each)}: {outcome}"
    for each in found["given_up"]:
        yield each["at"], "given up", f"{_callback(each)}: {each['reason']}"


def _callback(each: Document) -> str:
    return f"{each['callback']} (subscription {each['subscription']})"


def _at(written: str) -> datetime:
    return datetime.fromisoformat(written)


def _after(found: Document, at: str) -> str:
    """How long after its publication; "" if that is not known."""
    if found["believed"] is None:
        return ""
    seconds = (_at(at) - _at(found["believed"])).total_seconds()
    return f"{seconds * 1e3:.3g} ms" if 0 < seconds < 1 else duration(max(seconds, 0))
