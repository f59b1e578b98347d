"""``python -m tests.soak.odd_hub``: a hub in a process of its own, in odd surroundings.

Every name leads to this machine, and none is exempt from pacing and caps, as loopback
would be. The clock of the machine is ahead by as many seconds as are written in the
file that ``ODD_CLOCK`` names.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from hashlib import blake2b
from ipaddress import ip_network
from pathlib import Path

import uvloop

from hub.composition import build_hub
from hub.http import HttpNetwork, Purpose
from hub.main import run_until_stopped, stop_signal
from hub.runtime.clock import SystemClock
from hub.runtime.logs import configure_logs
from hub.settings import load_settings
from hub.web.server.http_server import listening_socket
from storage.database_url import open_storage

LOOPBACK = (ip_network("127.0.0.0/8"),)


class PacedNetwork(HttpNetwork):
    """A network that may reach this machine, and treats it like any other."""

    def is_exempt(self, host: str, purpose: Purpose) -> bool:
        return False


async def look_up(host: str) -> Sequence[str]:
    """Give each name an address of its own, so that ports do not run out."""
    high, low = blake2b(host.encode(), digest_size=2).digest()
    return (f"127.1.{high}.{low}",)


async def main() -> None:
    settings = load_settings(os.environ, {})
    configure_logs(settings.log_level, settings.log_format)
    stop = stop_signal()
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listening_socket(settings.host, settings.port))
        storage = await open_storage(settings.database)
        stack.push_async_callback(storage.close)
        network = await stack.enter_async_context(
            PacedNetwork(
                allow_topics=LOOPBACK,
                allow_callbacks=LOOPBACK,
                allow_hubs=LOOPBACK,
                lookup=look_up,
            )
        )
        built = await build_hub(
            settings,
            storage,
            settings.admin_token,
            settings.public_url,
            stack,
            clock=SystemClock(_wall()),
            network=network,
            lookup=look_up,
        )
        await run_until_stopped(built, listener, stop)


def _wall() -> Callable[[], float]:
    path = os.environ.get("ODD_CLOCK")
    if not path:
        return time.time
    offset = Path(path)
    return lambda: time.time() + float(offset.read_text() or 0)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    sys.exit(0)
