"""``fanfare serve``: run the hub. Its options are the settings, one for one."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress

import click

from hub.cli import say
from hub.cli.hub_client import read_settings
from hub.cli.wording import Failure
from hub.settings import SETTINGS, Setting


def _option(each: Setting) -> click.Option:
    default = f"default: {each.shown_default}"
    return click.Option(
        [each.option, each.field],
        help=f"{each.help}  [{each.variable}; {default}]",
        metavar="TEXT",
    )


@click.command(params=[_option(each) for each in SETTINGS])
def serve(**options: str | None) -> None:
    """Run the hub until SIGTERM or Ctrl-C.

    Every option is also a variable of the environment, given in brackets; the option
    wins. A secret can be in a file, named by the variable with _FILE at its end.
    """
    _hold_standard_streams()
    settings = read_settings(options)
    from hub.main import CannotStart, HubFailed, end_in_time, run
    from hub.runtime.logs import configure_logs

    configure_logs(settings.log_level, settings.log_format)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(run(settings, _announce, _own_command(), end_in_time))
    except (CannotStart, HubFailed) as error:
        raise Failure(str(error)) from error


def _hold_standard_streams() -> None:
    """Whoever starts this may have closed them. A socket in the place of one would get
    what is meant for it, and libuv aborts when it is to close it."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free


def _announce(text: str) -> None:
    with suppress(OSError):  # a full disk or a closed pipe is no reason not to run
        say(text)


def _own_command() -> str:
    """What to type for this program: its name where the shell finds it, or its path."""
    called = sys.argv[0]
    is_found = shutil.which("fanfare") == called or called.endswith(".py")
    return "fanfare" if is_found else called


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop where there is one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
