"""Options that say which feeds or subscriptions are meant, and how lists show them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hub.cli.hub_client import Document
from hub.cli.wording import age

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]


def _given(*options: Option) -> Callable[[Command], Command]:
    """All of them, as one decorator."""

    def give(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return give


def _common(states: str, where: str) -> tuple[Option, ...]:
    return (
        click.option("--failing", is_flag=True, help="Only those that fail."),
        click.option(
            "--state",
            multiple=True,
            help=f"Only those in this state: {states}. May be repeated.",
        ),
        click.option("--search", help=f"Only those with this part of {where}."),
        click.option(
            "--since",
            metavar="AGE|TIME",
            help="Only those that have been in their state since then, or for so long"
            " (7d), or longer.",
        ),
        click.option(
            "--within",
            metavar="AGE|TIME",
            help="Only those that have been in their state no longer than that.",
        ),
    )


category_option = click.option(
    "--category", "--section", "category", help="A label to group feeds by."
)
feed_selection = _given(
    *_common("ok, failing, slow, pushed, paused, gone or removed", "a URL or title"),
    click.option(
        "--category",
        "--section",
        "category",
        help='Only those of this category; "" for those of none.',
    ),
)
"""Which feeds: `selection` of what is given."""
subscription_selection = _given(
    *_common("ok, failing, slow, paused, gone or ended", "a callback or topic"),
    click.option("--topic", help="Only those to this topic."),
    click.option("--callback", help="Only those of this callback."),
)
"""Which subscriptions."""
limit_option = click.option(
    "--limit", type=click.IntRange(1), help="No more than so many."
)


def sort_option(*keys: str) -> Callable[[Command], Command]:
    return click.option(
        "--sort",
        type=click.Choice([*keys, *(f"-{key}" for key in keys)]),
        help="By what they are listed; since: those first that have been in their"
        " state for the longest; with a minus: the other way round.",
    )


def selection(**given: object) -> Document:
    """What was given of the options, as the API takes it."""
    return {
        name: value
        for name, value in given.items()
        if value not in (None, (), False) and (value != "" or name == "category")
    }


def health_cells(found: Document) -> tuple[str, str]:
    """The state, and since when, for a table."""
    health = found["health"]
    return health["state"], age(health["since"])
