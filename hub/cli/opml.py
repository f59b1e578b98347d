"""``fanfare opml``: lists of feeds, as other programs read and write them."""

from __future__ import annotations

from pathlib import Path

import click

from hub.cli import say
from hub.cli.client import Hub, speaks_to_hub
from hub.cli.failures import Failure
from hub.cli.opml_import import discover, import_list


@click.group()
def opml() -> None:
    """Lists of feeds in OPML: import, discover, export."""


@opml.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; without it, standard output.",
)
@speaks_to_hub
def export(hub: Hub, output: Path | None) -> None:
    """Write the public feeds as OPML 2.0, as /myPublicFeeds.opml has them."""
    document = hub.read("/myPublicFeeds.opml")
    if output is None:
        say(document, nl=False)
        return
    try:
        output.write_bytes(document)
    except OSError as error:
        raise Failure(f"{output} cannot be written: {error.strerror}") from error
    say(f"wrote {output}")


opml.add_command(import_list)
opml.add_command(discover)
