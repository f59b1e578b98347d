"""``fanfare parse``: what the hub makes of a document, without a hub."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from .failures import Failure
from .wording import plural, printable


@click.command()
@click.argument("source", metavar="FILE|URL")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "atom"]),
    default="json",
    show_default=True,
    help="How to print it.",
)
def parse(source: str, format_: str) -> None:
    """Parse a feed and print it the way subscribers get it.

    Needs no running hub. A URL is fetched under the address guard, with the
    FANFARE_ALLOW_… settings of this environment.
    """
    from .parsing import ParseFailed, parse_source, render

    try:
        parsed = asyncio.run(parse_source(source))
    except ParseFailed as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot read {Path(source)}: {error.strerror}") from error
    click.echo(render(parsed, source, format_))
    click.echo(
        f"{parsed.format}, read by: {parsed.path},"
        f" {plural(len(parsed.entries), 'entry', 'entries')}",
        err=True,
    )
    for problem in parsed.problems:
        click.echo(f"note: {printable(problem)}", err=True)
