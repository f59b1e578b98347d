"""``fanfare parse``: show how the hub reads a document."""

from __future__ import annotations

import click

from hub.cli import examples, say
from hub.cli.wording import Failure, json_option, plural, printable


@click.command(
    epilog=examples(
        "fanfare parse feed.xml", "fanfare parse --explain https://example.org/feed.xml"
    )
)
@click.argument("source", metavar="FILE|URL|-")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["json", "atom"]),
    default="json",
    show_default=True,
    help="The format to print.",
)
@click.option(
    "--explain",
    "is_explained",
    is_flag=True,
    help="Print why the document is read as it is, instead of the feed.",
)
@json_option("Print JSON, also with --explain.")
def parse(source: str, format_: str, is_explained: bool, as_json: bool) -> None:
    """Parse a feed and print it as subscribers get it.

    --explain prints instead which parser read the document, its encoding and repairs,
    how each entry is identified and why, and what was dropped and why.

    No running hub is needed. A URL is fetched under the address guard, with the
    FANFARE_ALLOW_… settings of this environment.
    """
    from hub.cli.parsed_documents import print_explanation, read_document, render

    if as_json and format_ == "atom":
        raise click.UsageError("--json cannot be combined with --format atom")
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
