"""``fanfare plans``, and commands that take a filter in the place of ids.

An action on many things is planned first: the hub says how many there are and shows
some. It is done once the plan is confirmed: at a terminal by hand, in a script by
``--yes``, or later by ``fanfare plans confirm``.
"""

from __future__ import annotations

import sys
import time
from typing import Final

import click

from hub.cli import VerbGroup, is_terminal, say, say_in_place
from hub.cli.hub_client import Document, Hub, speaks_to_hub
from hub.cli.progress import Progress
from hub.cli.selection_options import selection
from hub.cli.wording import (
    Failure,
    json_option,
    moment,
    print_facts,
    print_table,
    printable,
    say_json,
)

LOOK_SECONDS: Final = 0.3
"""Pause between two looks how far a plan is."""
LIFETIME: Final = "1 h"
EACH_OR_PLAN: Final = "Print one JSON array; with a filter the plan as one object."
_ONE: Final = {"feeds": "feed", "subscriptions": "subscription"}
_DELIVERIES: Final = (
    "dead letter or retrying subscription",
    "dead letters and retrying subscriptions",
)


def is_by_filter(
    hub: Hub,
    action: str,
    kind: str,
    named: object,
    given: dict[str, object],
    *,
    as_json: bool,
    category: str | None = None,
) -> bool:
    """Return whether options in ``given`` select the things, because none is ``named``.

    If so, the action is planned here, and done once it is confirmed. ``given`` has the
    options of `plan_options` too. Raises `click.UsageError` for both ways or neither.
    """
    every, yes = given.pop("every"), bool(given.pop("yes"))
    wanted = selection(**given)
    if named and (wanted or every):
        raise click.UsageError(f"name {kind} or give a filter, not both")
    if named:
        return False
    if not wanted and not every:
        raise click.UsageError(
            f"name {kind}, or give a filter such as --since; --all for all of them"
        )
    body: Document = {"action": action, kind: wanted}
    if category is not None:
        body["category"] = category
    _plan(hub, body, is_confirmed=yes, as_json=as_json)
    return True


def _plan(hub: Hub, body: Document, *, is_confirmed: bool, as_json: bool) -> None:
    plan = hub.post("/api/plans", body)
    if not as_json:
        _print_plan(plan)
    if not plan["count"]:
        plan = hub.post(f"/api/plans/{plan['id']}/cancel")
    elif is_confirmed or (not as_json and _is_agreed(hub, plan)):
        return _confirm(hub, plan["id"], as_json=as_json)
    if as_json:
        say_json(plan)


def _is_agreed(hub: Hub, plan: Document) -> bool:
    """Ask at a terminal whether to do it; without one, print how to continue later."""
    if not (is_terminal() and sys.stdin.isatty()):
        how = f"fanfare plans confirm {plan['id']}"
        say(f"nothing is done yet; within {LIFETIME}: {how}")
        return False
    question = f"Type yes to {_described(plan)}"
    answer = click.prompt(question, default="no", show_default=False, err=True)
    if answer.strip().lower() == "yes":
        return True
    hub.post(f"/api/plans/{plan['id']}/cancel")
    say("nothing is done")
    return False


def _confirm(hub: Hub, plan_id: int, *, as_json: bool) -> None:
    """Have a plan done, and show how far it is. Raises `Failure` if a part failed."""
    plan = _wait(hub, hub.post(f"/api/plans/{plan_id}/confirm"))
    if as_json:
        say_json(plan)
    else:
        _print_outcome(plan)
    if plan["failed"]:
        raise Failure(f"{plan['failed']:,} of {_counted(plan)} failed")


def _wait(hub: Hub, plan: Document) -> Document:
    progress = Progress(plan["count"], plan["kind"])
    try:
        while plan["state"] == "running":
            time.sleep(LOOK_SECONDS)
            plan = hub.get(f"/api/plans/{plan['id']}")
            gone = plan["done"] + plan["failed"] - progress.done
            if gone:
                progress.add(gone, f"{plan['failed']:,} failed")
    except KeyboardInterrupt:
        say_in_place("")
        say(
            f"the hub goes on; fanfare plans show {plan['id']}, or cancel {plan['id']}",
            err=True,
        )
        raise
    finally:
        say_in_place("")
    return plan


def _counted(plan: Document) -> str:
    """Return how many things a plan is for: ``12 feeds``."""
    many = plan["kind"]
    if many == "deliveries":
        one, many = _DELIVERIES
    else:
        one = _ONE[many]
    return f"{plan['count']:,} {one if plan['count'] == 1 else many}"


def _described(plan: Document) -> str:
    """Return what a plan does: ``pause 12 feeds``."""
    if plan["action"] == "set_category":
        category = printable(plan["category"] or "") or "none"
        return f"set the category of {_counted(plan)} to {category}"
    return f"{plan['action']} {_counted(plan)}"


def _print_plan(plan: Document) -> None:
    if not plan["count"]:
        say(f"no such {plan['kind']}")
        return
    say(f"plan {plan['id']}: {_described(plan)}")
    _print_items(plan["sample"])
    more = plan["count"] - len(plan["sample"])
    if more > 0:
        say(f"and {more:,} more")


def _print_items(items: list[Document]) -> None:
    rows = [(each["id"], each["note"], each["name"]) for each in items]
    print_table(("ID", "STATE", "WHICH"), rows)


def _print_outcome(plan: Document) -> None:
    say(f"plan {plan['id']} is {plan['state']}: {_progress(plan)}")
    if plan["failures"]:
        _print_items(plan["failures"])


def _progress(plan: Document) -> str:
    parts = [f"{plan['done']:,} of {_counted(plan)}"]
    if plan["failed"]:
        parts.append(f"{plan['failed']:,} failed")
    if plan.get("undelivered") is not None:  # a former hub does not say
        lacking = f"{plan['undelivered']:,}"
        if plan.get("more_undelivered"):
            lacking += " or more"
        is_health = plan["kind"] == "subscriptions"
        how = "failing or slow" if is_health else "not accepted"
        parts.append(
            f"done means made due: of what the filter finds in any state, {lacking}"
            f" {how} now"
        )
    elif plan.get("more_undelivered"):
        parts.append("done means made due: what is not accepted now is no longer known")
    if plan["left_out"]:
        parts.append(f"{plan['left_out']:,} left out, no longer as they were")
    return ", ".join(parts)


# --- fanfare plans ---


@click.group(cls=VerbGroup)
def plans() -> None:
    """List, show, confirm and cancel plans to act on many at once."""


plan_argument = click.argument("plan", type=click.IntRange(1), metavar="ID")


@plans.command(name="list")
@json_option("Print one JSON array.")
@speaks_to_hub
def list_plans(hub: Hub, as_json: bool) -> None:
    """List the plans, the latest first."""
    found = [*hub.each("/api/plans", "plans")][::-1]
    if as_json:
        say_json(found)
    elif not found:
        say("no plans; `fanfare feeds pause --failing` makes one, for example")
    else:
        rows = [
            (
                each["id"],
                each["state"] if each["count"] else "empty",
                _described(each),
                each["done"],
                each["failed"],
                each["made_by"],
                moment(each["created_at"]),
            )
            for each in found
        ]
        headings = ("ID", "STATE", "PLAN", "DONE", "FAILED", "BY", "MADE")
        print_table(headings, rows)


@plans.command()
@plan_argument
@json_option()
@speaks_to_hub
def show(hub: Hub, plan: int, as_json: bool) -> None:
    """Show what a plan is for, and its progress."""
    found = hub.get(f"/api/plans/{plan}")
    if as_json:
        say_json(found)
        return
    wanted = {name: value for name, value in found["filter"].items() if value}
    print_facts(
        [
            ("plan", found["id"]),
            ("what", _described(found)),
            ("which", _filter(wanted) or "all"),
            ("by", found["made_by"]),
            ("made", moment(found["created_at"])),
            ("state", found["state"]),
            ("progress", _progress(found) if found["confirmed_at"] else ""),
            ("until", moment(found["expires_at"]) if _is_waiting(found) else ""),
        ]
    )
    say()
    _print_items(found["failures"] or found["sample"])


def _is_waiting(plan: Document) -> bool:
    return bool(plan["state"] == "planned")


def _filter(wanted: Document) -> str:
    """Return a filter in one line: ``state failing, gone; category news``."""
    return "; ".join(
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in wanted.items()
    )


@plans.command()
@plan_argument
@json_option()
@speaks_to_hub
def confirm(hub: Hub, plan: int, as_json: bool) -> None:
    """Carry out a plan and show its progress.

    The hub continues after Ctrl-C.
    """
    _confirm(hub, plan, as_json=as_json)


@plans.command()
@plan_argument
@json_option()
@speaks_to_hub
def cancel(hub: Hub, plan: int, as_json: bool) -> None:
    """Stop a plan, or drop one that is not confirmed; what is done stays done."""
    found = hub.post(f"/api/plans/{plan}/cancel")
    if as_json:
        say_json(found)
    else:
        _print_outcome(found)
