"""A whole hub in its own process, started as a user starts it, and its memory."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

_READY = b"HTTP/1.1 200"


class HubUnderTest:
    def __init__(self, process: Process, port: int, started: float) -> None:
        self._process = process
        self.port = port
        self.started = started  # monotonic

    @property
    def megabytes(self) -> float:
        """Resident memory now, of the hub's main process."""
        text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    async def wait_ready(self) -> None:
        async with asyncio.timeout(60):
            while True:
                if self._process.returncode is not None:
                    raise RuntimeError(f"the hub ended: {self._process.returncode}")
                if await self._is_ready():
                    return
                await asyncio.sleep(0.05)

    async def _is_ready(self) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        try:
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: hub\r\n\r\n")
            return (await reader.readline()).startswith(_READY)
        finally:
            writer.close()


@asynccontextmanager
async def running_hub(database: Path) -> AsyncIterator[HubUnderTest]:
    port = _free_port()
    environment = {
        **os.environ,
        "FANFARE_DATABASE": f"sqlite:{database}",
        "FANFARE_PORT": str(port),
        "FANFARE_ALLOW_NETWORKS": "127.0.0.0/8",
        "FANFARE_LOG_LEVEL": "error",
    }
    process = await create_subprocess_exec(
        *(sys.executable, "-m", "hub.cli", "serve"),
        env=environment,
        stdout=DEVNULL,
    )
    try:
        yield HubUnderTest(process, port, time.monotonic())
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
