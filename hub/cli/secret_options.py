"""Options for secrets: on the command line, in a file, or typed when asked for.

Other users of the machine see the command line, and the shell's history keeps it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Final, TextIO

import click

LONGEST_SECRET: Final = 64 * 1024
FROM_INPUT: Final = "-"
"""The value for a secret that is to be asked for, or read from standard input."""

Command = Callable[..., Any]


def secret_option(
    name: str, help: str, *, default: str | None = ""
) -> Callable[[Command], Command]:
    """Give a command ``--NAME`` and ``--NAME-file``; it gets the value as ``name``.

    Without either, the value is ``default``.
    """
    parameter = name.replace("-", "_")
    of_file = f"{parameter}_file"

    def decorate(command: Command) -> Command:
        @click.option(f"--{name}", parameter, metavar="TEXT", help=_with_input(help))
        @click.option(
            f"--{name}-file",
            of_file,
            type=click.File(encoding="utf-8"),
            metavar="FILE",
            help=f"Read --{name} from the first line of a file.",
        )
        @functools.wraps(command)
        def call(*args: object, **kwargs: Any) -> None:
            given, file = kwargs.pop(parameter), kwargs.pop(of_file)
            secret = _read_secret(f"--{name}", given, file)
            command(
                *args, **kwargs, **{parameter: default if secret is None else secret}
            )

        return call

    return decorate


def _with_input(help: str) -> str:
    return f'{help} "-": ask for it, or read it from standard input.'


def _read_secret(option: str, given: str | None, file: TextIO | None) -> str | None:
    """Return the secret, or None if none is given. Raises `click.UsageError`."""
    if given is not None and file is not None:
        raise click.UsageError(f"give either {option} or {option}-file")
    if given == FROM_INPUT or (file is not None and file.name == "<stdin>"):
        return _ask(option)
    return given if file is None else _first_line(file, f"{option}-file")


def _ask(option: str) -> str:
    """Ask for a secret without echo at a terminal, or read a line of standard input."""
    if sys.stdin.isatty():
        secret: str = click.prompt(option.lstrip("-"), hide_input=True, err=True)
        return secret
    return _first_line(sys.stdin, option)


def _first_line(file: TextIO, option: str) -> str:
    try:
        line = file.readline(LONGEST_SECRET + 1).rstrip("\r\n")
    except UnicodeDecodeError:
        raise click.BadParameter("expected UTF-8 text", param_hint=option) from None
    if not line or len(line) > LONGEST_SECRET:
        expected = f"expected a line of 1 to {LONGEST_SECRET} characters"
        raise click.BadParameter(expected, param_hint=option)
    return line


def header_options(command: Command) -> Command:
    """Give a command ``--header`` and ``--header-file``: its ``headers``, by name."""

    @click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="A header to send with each fetch. Repeatable.",
    )
    @click.option(
        "--header-file",
        type=click.File(encoding="utf-8"),
        metavar="FILE",
        help='Read headers from a file, one a line; "-": from standard input.',
    )
    @functools.wraps(command)
    def call(
        *args: object, headers: tuple[str, ...], header_file: TextIO | None, **more: Any
    ) -> None:
        lines = [*map(_header_of_option, headers), *_headers_of(header_file)]
        command(*args, headers=dict(lines), **more)

    return call


def _header_of_option(text: str) -> tuple[str, str]:
    return _read_header(text, "--header", shown=text)


def _headers_of(file: TextIO | None) -> list[tuple[str, str]]:
    """Return names and values of the headers in a file, without empty lines."""
    if file is None:
        return []
    try:
        lines = file.read(LONGEST_SECRET).splitlines()
    except UnicodeDecodeError:
        expected = "expected UTF-8 text"
        raise click.BadParameter(expected, param_hint="--header-file") from None
    return [
        _read_header(line, "--header-file", shown="the line")
        for line in lines
        if line.strip()
    ]


def _read_header(text: str, option: str, *, shown: str) -> tuple[str, str]:
    name, separator, value = text.partition(":")
    if not separator or not name.strip():
        expected = f"expected 'Name: value', not {shown!r}"
        raise click.BadParameter(expected, param_hint=option)
    return name.strip(), value.strip()
