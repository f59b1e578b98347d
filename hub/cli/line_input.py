"""URLs that a command is given: as arguments, in a file, or on standard input."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, Final

import click

STANDARD_INPUT: Final = "-"
_BARE_HOST: Final = re.compile(r"(localhost|[^\s/:@?#]+\.[^\s/:@?#]+)(:\d+)?([/?#].*)?")
"""A URL as people type it, without a scheme: ``example.org/news``."""


def read_lines(file: IO[str], option: str) -> Iterator[str]:
    """Yield the lines that are neither empty nor comments.

    Raises `click.BadParameter` if the file is not UTF-8.
    """
    try:
        for line in map(str.strip, file):
            if line and not line.startswith("#"):
                yield line
    except UnicodeDecodeError:
        raise click.BadParameter("expected UTF-8 text", param_hint=option) from None


def with_input(arguments: Sequence[str], option: str) -> list[str]:
    """Return the arguments, with each ``-`` replaced by the lines of standard input."""
    given: list[str] = []
    for each in arguments:
        if each != STANDARD_INPUT:
            given.append(each)
            continue
        with click.open_file(each, encoding="utf-8-sig") as file:
            given += read_lines(file, option)
    return given


def with_scheme(url: str) -> str:
    """Add ``https://`` to a URL without a scheme (``example.org``), and to nothing
    else."""
    return f"https://{url}" if _BARE_HOST.fullmatch(url) else url
