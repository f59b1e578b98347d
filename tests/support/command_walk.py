"""Walks the command line: every group and every verb of its table of commands."""

from __future__ import annotations

from collections.abc import Iterator

import click


def groups(group: click.Group, *before: str) -> Iterator[tuple[str, ...]]:
    """The words that lead to each group, beginning with the group itself."""
    yield before
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from groups(command, *before, name)


def verbs(
    group: click.Group, *before: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each command that does something, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, *before, name)
        elif command is not None:
            yield (*before, name), command
