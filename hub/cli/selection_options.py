"""Options that select feeds, subscriptions or deliveries, and how lists show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from hub.cli.hub_client import Document
from hub.cli.renamed_options import renamed_option
from hub.cli.wording import SINCE, age

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]


def _given(*options: Option) -> Callable[[Command], Command]:
    """Return one decorator that applies all options."""

    def give(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return give


def _common(states: str, where: str) -> tuple[Option, ...]:
    return (
        click.option("--failing", is_flag=True, help="Only failing ones."),
        click.option(
            "--state",
            multiple=True,
            help=f"Only those in this state: {states}. Repeatable.",
        ),
        click.option("--search", help=f"Only those with this text in their {where}."),
        click.option(
            "--since",
            metavar="AGE|TIME",
            help="Only those that have been in their state since this time, or for at"
            " least this long, such as 7d.",
        ),
        click.option(
            "--within",
            metavar="AGE|TIME",
            help="Only those that entered their state after this time, or no longer ago"
            " than this.",
        ),
    )


category_option = renamed_option(
    "--category",
    former="--section",
    help="A label to group feeds by, at most 200 characters.",
)
_FEEDS: Final = (
    *_common(
        "ok, failing, slow, pushed, paused, gone, removed, active (all that are polled)"
        " or track (track queries)",
        "URL or title",
    ),
    click.option("--host", help="Only feeds at this host, without a port."),
    click.option(
        "--format",
        help="Only feeds of this format: rss, rdf, atom, jsonfeed, creator, openfeeder,"
        " scp or part.",
    ),
)
_OF_CATEGORY: Final = 'Only those of this category; "" for those without one.'
feed_selection = _given(
    *_FEEDS,
    renamed_option("--category", former="--section", help=_OF_CATEGORY),
)
"""Options that select feeds; `selection` turns them into a filter."""
feed_selection_to_edit = _given(
    *_FEEDS, click.option("--in-category", help=_OF_CATEGORY)
)
"""The same for a command whose ``--category`` is the category that feeds get."""
subscription_selection = _given(
    *_common(
        "ok, failing, slow, paused, gone, ended or over (gone or ended)",
        "callback or topic",
    ),
    click.option("--topic", help="Only those to this topic."),
    click.option("--callback", help="Only those of this callback."),
    click.option(
        "--feed", type=click.IntRange(1), help="Only those to this feed, by its id."
    ),
)
"""Options that select subscriptions."""
account_option = click.option(
    "--account", help="Only those of this account, by its name."
)
delivery_selection = _given(
    click.option(
        "--status",
        help="Failed requests with this status: 404, 5xx, or none (no answer).",
    ),
    click.option(
        "--host", help="Failed requests to callbacks at this host, without a port."
    ),
    click.option("--topic", help="Failed requests of subscriptions to this topic."),
    click.option(
        "--since",
        type=SINCE,
        help="Failed requests since then: an age such as 2h, or a time.",
    ),
    click.option(
        "--until",
        type=SINCE,
        help="Failed requests before then: an age or a time.",
    ),
)
"""Options that select deliveries, by requests that failed."""
plan_options = _given(
    click.option("--all", "every", is_flag=True, help="All of them."),
    click.option("--yes", is_flag=True, help="Do not ask for confirmation."),
)
"""Options of a command that acts on all that a selection finds."""
limit_option = click.option(
    "--limit", type=click.IntRange(1), help="The most to list.  [default: all]"
)


def sort_option(*keys: str) -> Callable[[Command], Command]:
    return click.option(
        "--sort",
        type=click.Choice([*keys, *(f"-{key}" for key in keys)]),
        help="The order. since: those longest in their state first. A minus reverses"
        " the order.  [default: id]",
    )


def selection(**given: object) -> Document:
    """Return the options that were given, as a filter of the API."""
    return {
        name: value
        for name, value in given.items()
        if value not in (None, (), False) and (value != "" or name == "category")
    }


def health_cells(found: Document) -> tuple[str, str]:
    """Return the state and since when, as cells of a table."""
    health = found["health"]
    return health["state"], age(health["since"])
