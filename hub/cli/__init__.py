"""The command line: one module per noun.

Modules import at the top only what is quick to import, so that ``fanfare --help`` is;
what runs a hub or a parser is imported by the command that needs it.

Exit codes: 0 done, 1 failed (in part or in whole), 2 wrong usage, 3 hub unreachable, or
several feeds to choose from.
"""

from __future__ import annotations

import click

from .database import database
from .deliveries import deliveries
from .demo import demo
from .feeds import feeds
from .health import health, version
from .listen import listen
from .opml import opml
from .parse import parse
from .scp import scp
from .serve import serve
from .simulate import simulate
from .subscriptions import subscriptions
from .tail import tail
from .tokens import tokens
from .track import track


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Fanfare, a self-hosted push hub for feeds.

    Start with `fanfare serve`, then `fanfare feeds add URL` in another terminal.
    """


for command in (
    serve,
    feeds,
    subscriptions,
    deliveries,
    tokens,
    listen,
    tail,
    opml,
    scp,
    parse,
    opml,
    track,
    simulate,
    demo,
    database,
    health,
    version,
):
    main.add_command(command)
