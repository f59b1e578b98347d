"""``fanfare serve``: run the hub. Its options are the settings, one for one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import click

from hub.admin_token import token_file
from hub.cli import examples, say
from hub.cli.hub_client import read_settings
from hub.cli.wording import Failure, json_option
from hub.hub_address import address_file, read_address
from hub.settings import SETTINGS, Setting, Settings


def _option(each: Setting) -> click.Option:
    default = f"default: {each.shown_default}"
    return click.Option(
        [each.option, each.field],
        help=f"{each.help}  [{each.variable}; {default}]",
        metavar="VALUE",
    )


@click.command(
    params=[_option(each) for each in SETTINGS],
    epilog=examples(
        "fanfare serve",
        "fanfare serve --port 9000 --public-url https://hub.example",
        "FANFARE_CONTACT=ops@hub.example fanfare serve",
    ),
)
@json_option("Print the hub's URL and files as one JSON object.")
def serve(as_json: bool, **options: str | None) -> None:
    """Run the hub until SIGTERM or Ctrl-C.

    Every option is also an environment variable, shown in brackets; the option takes
    precedence. A secret can be read from a file: FANFARE_ADMIN_TOKEN_FILE names it.
    """
    _hold_standard_streams()
    settings = read_settings(options)
    from hub.main import CannotStart, HubFailed, end_in_time, run
    from hub.runtime.logs import configure_logs

    announce = partial(_announce_as_json, settings) if as_json else _announce
    configure_logs(settings.log_level, settings.log_format)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(run(settings, announce, _own_command(), end_in_time))
    except (CannotStart, HubFailed) as error:
        raise Failure(str(error)) from error


def _hold_standard_streams() -> None:
    """Open the standard streams that the parent has closed.

    Else a socket could get the number of one, and what is printed to it; libuv aborts
    when it closes such a descriptor.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def _announce(text: str) -> None:
    with suppress(OSError):  # a full disk or a closed pipe is no reason not to run
        say(text)


def _announce_as_json(settings: Settings, text: str) -> None:
    """Print where the hub is, as its address file tells commands, not the ``text``."""
    database = settings.local_path.absolute()
    address = read_address(address_file(database))
    document = {
        "url": address and address.url,
        "public_url": address and address.public_url,
        "database": settings.database_name,
        "admin_token_file": None if settings.admin_token else str(token_file(database)),
    }
    _announce(json.dumps(document))


def _own_command() -> str:
    """Return how to call this program: by name if a shell finds it, or else by path."""
    called = sys.argv[0]
    is_found = shutil.which("fanfare") == called or called.endswith(".py")
    return "fanfare" if is_found else called


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the constructor of uvloop's event loop; None without uvloop."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
