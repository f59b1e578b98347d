"""The ``fanfare`` command, which runs in a process of its own each time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.admin import TOKEN
from tests.support.hub_process import HubProcess
from tests.support.nursery import ForkedHub, fork_command

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's variables without those of any hub, and the given ones."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("FANFARE_")}
    return {**inherited, **variables}


def knowing(hub: HubProcess) -> dict[str, str]:
    """The variables by which a command finds a hub."""
    return {
        "FANFARE_PUBLIC_URL": hub.url,
        "FANFARE_ADMIN_TOKEN": TOKEN,
        **hub.location,
        **hub.settings,
    }


async def start_fanfare(
    *arguments: str, variables: Mapping[str, str], directory: Path = ROOT
) -> asyncio.subprocess.Process:
    """Start a command as it is started at a terminal."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "hub.cli", *arguments),
        cwd=directory,
        env=environment(variables),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=_heed_interrupts,
    )


def _heed_interrupts() -> None:
    """Let Ctrl-C end this process, and so the commands that it starts.

    A suite that a shell has started in its background ignores Ctrl-C.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


async def fork_fanfare(*arguments: str, variables: Mapping[str, str]) -> ForkedHub:
    """Like `start_fanfare`, without importing the program anew
    (`tests.support.nursery`)."""
    return await fork_command(*arguments, environment=environment(variables))


async def fanfare(*arguments: str, variables: Mapping[str, str]) -> Outcome:
    """Run a command to its end, which must come within a minute."""
    process = await fork_fanfare(*arguments, variables=variables)
    try:
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode is not None
    return Outcome(process.returncode, out.decode(), err.decode())
