"""A server in a process of its own, which prints its port and serves until it is ended.

What it takes to play the other side is then not counted as the hub's.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast


@asynccontextmanager
async def running_apart(module: str, *arguments: str) -> AsyncIterator[int]:
    """``python -m MODULE ARGUMENTS``, and its port."""
    process = await create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments), stdout=PIPE
    )
    output = cast(asyncio.StreamReader, process.stdout)
    try:
        yield int(await output.readline())
    finally:
        process.terminate()
        await process.wait()


async def serve_apart(make: Callable[[], asyncio.Protocol], *, backlog: int) -> None:
    """In that process: ``make`` what answers a connection, on any port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(make, "127.0.0.1", 0, backlog=backlog)
    port: int = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.Event().wait()
