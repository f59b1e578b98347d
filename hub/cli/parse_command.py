"""``fanfare parse``: what the hub makes of a document, without a hub."""

from __future__ import annotations

import click

from hub.cli import say
from hub.cli.wording import Failure, json_option, plural, printable


@click.command()
@click.argument("source", metavar="FILE|URL|-")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "atom"]),
    default="json",
    show_default=True,
    help="How to print it.",
)
@click.option(
    "--explain",
    "is_explained",
    is_flag=True,
    help="Say why it is read as it is, instead of printing it.",
)
@json_option("JSON, also of the explanation.")
def parse(source: str, format_: str, is_explained: bool, as_json: bool) -> None:
    """Parse a feed and print it the way subscribers get it.

    With --explain: which parser read it, in which encoding, after which repairs; what
    each entry is known by and why; what was dropped and why.

    Needs no running hub. A URL is fetched under the address guard, with the
    FANFARE_ALLOW_… settings of this environment.
    """
    from hub.cli.parsed_documents import print_explanation, read_document, render

    if as_json and format_ == "atom":
        raise click.UsageError("--json goes without --format atom")
    document = read_document(source)
    if is_explained:
        print_explanation(document, as_json=as_json)
    parsed = document.parsed
    if parsed is None:
        raise Failure(f"{source}: {document.error}")
    if is_explained:
        return
    say(render(parsed, source, format_))
    say(
        f"{parsed.format}, read by: {parsed.path},"
        f" {plural(len(parsed.entries), 'entry', 'entries')}",
        err=True,
    )
    for problem in parsed.problems:
        say(f"note: {printable(problem)}", err=True)
