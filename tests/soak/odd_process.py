"""Starting and ending `tests.soak.odd_hub`, with its log beside the database."""

from __future__ import annotations

import os
import socket
import sys
from asyncio.subprocess import Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.admin import TOKEN


@dataclass(frozen=True, slots=True)
class OddHub:
    process: Process
    url: str


@asynccontextmanager
async def odd_hub(database: Path, **more: str) -> AsyncIterator[OddHub]:
    """Run a hub for the block. ``more``: variables of its environment."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    environment = {
        **{name: value for name, value in os.environ.items() if "FANFARE" not in name},
        "FANFARE_DATABASE": f"sqlite:{database}",
        "FANFARE_PORT": f"{port}",
        "FANFARE_PUBLIC_URL": url,
        "FANFARE_ADMIN_TOKEN": TOKEN,
        "FANFARE_ALLOW_NETWORKS": "127.0.0.0/8",
        "FANFARE_LOG_LEVEL": "info",
        **more,
    }
    with database.with_name("hub.log").open("wb") as log:
        process = await create_subprocess_exec(
            *(sys.executable, "-m", "tests.soak.odd_hub"),
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        yield OddHub(process, url)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
