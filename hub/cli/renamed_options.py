"""Options that were renamed: the former name still works, but is in no help.

A command that is given the former name prints the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from hub.cli import say

Command = TypeVar("Command", bound=Callable[..., Any])


def renamed_option(
    name: str,
    *declarations: str,
    former: str,
    multiple: bool = False,
    required: bool = False,
    type: click.ParamType[Any] | None = None,
    **attributes: Any,
) -> Callable[[Command], Command]:
    """Like `click.option`, for an option that was called ``former``.

    If both names are given, the new one counts; of an option that is ``multiple``, the
    values of both.
    """
    kept = f"{__name__}: {former}"
    if required:  # click cannot check it: either name will do
        attributes["help"] += "  [required]"

    def keep(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value not in (None, ()):
            say(f"fanfare: {former} is now called {name}", err=True)
            context.meta[kept] = value

    def merge(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        source = context.get_parameter_source(parameter.name or "")
        if multiple:
            value = (*value, *context.meta.get(kept, ()))
        elif source is not ParameterSource.COMMANDLINE:
            value = context.meta.get(kept, value)
        if required and value in (None, ()):
            raise click.MissingParameter(ctx=context, param=parameter)
        return value

    def decorate(command: Command) -> Command:
        command = click.option(
            former,
            multiple=multiple,
            type=type,
            callback=keep,
            expose_value=False,
            is_eager=True,
            hidden=True,
        )(command)
        return click.option(
            *(name, *declarations),
            multiple=multiple,
            type=type,
            callback=merge,
            **attributes,
        )(command)

    return decorate
