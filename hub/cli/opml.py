"""``fanfare opml``: lists of feeds, as other programs read and write them."""

from __future__ import annotations

import click

from .opml_import import discover, import_list


@click.group()
def opml() -> None:
    """Lists of feeds in OPML: import, discover."""


opml.add_command(import_list)
opml.add_command(discover)
