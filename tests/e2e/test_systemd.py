"""A hub under a service manager that speaks systemd's protocols, and the units."""

from __future__ import annotations

import asyncio
import configparser
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.support.chosen_engine import variables_of
from tests.support.command import ROOT, environment

UNITS = ROOT / "scripts" / "systemd"


@asynccontextmanager
async def managed_hub(
    tmp_path: Path, listener: socket.socket, channel: socket.socket
) -> AsyncIterator[asyncio.subprocess.Process]:
    """As systemd starts it: the listener is its file 3, and LISTEN_PID its own id."""
    script = f'exec 3<&{listener.fileno()}; LISTEN_PID=$$ exec "$@"'
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", script, "bash", sys.executable, "-m", "hub.cli", "serve"),
        cwd=ROOT,
        env=environment(
            {
                **variables_of(tmp_path / "hub.db"),
                "NOTIFY_SOCKET": channel.getsockname(),
                "WATCHDOG_USEC": "500000",
                "LISTEN_FDS": "1",
            }
        ),
        pass_fds=[listener.fileno()],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_it_tells_its_start_its_health_and_its_end_and_restarts_unnoticed(
    tmp_path: Path,
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel,
    ):
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(60)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/readyz"

        async def told(line: bytes) -> None:
            while line not in await asyncio.to_thread(channel.recv, 4096):
                pass

        async with aiohttp.ClientSession() as client:
            async with managed_hub(tmp_path, listener, channel) as first:
                await told(b"READY=1")
                await told(b"WATCHDOG=1\nSTATUS=ready")
                await told(b"WATCHDOG=1")
                async with client.get(url) as answer:
                    assert answer.status == 200
                first.terminate()
                await told(b"STOPPING=1")
                assert await first.wait() == 0
            asked = asyncio.create_task(client.get(url))  # while no hub runs
            async with (
                managed_hub(tmp_path, listener, channel),
                asyncio.timeout(60),
                await asked as answer,
            ):
                assert answer.status == 200


def test_the_unit_starts_a_notifying_service_with_a_watchdog() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNITS / "fanfare.service")
    service = unit["Service"]
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert int(service["WatchdogSec"]) > 10
    assert service["ExecStart"].endswith("/fanfare serve")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_finds_little_to_attack() -> None:
    command = ("systemd-analyze", "security", "--offline=true", "--threshold=19")
    judged = subprocess.run(
        (*command, str(UNITS / "fanfare.service")),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout[-200:]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_systemd_understands_every_line_of_the_units(tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/opt/fanfare/bin/fanfare", "/bin/true")
        (tmp_path / unit.name).write_text(text)
    read = subprocess.run(
        ("systemd-analyze", "verify", *map(str, tmp_path.iterdir())),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (read.returncode, read.stderr) == (0, "")
