"""The hub's end of one parse worker."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from functools import partial
from pathlib import Path
from typing import Self, cast

from msgspec.structs import replace

from hub.ingest.worker_frames import (
    LENGTH,
    MOST_BYTES,
    READY,
    Parsed,
    Result,
    Task,
    decode_batch,
    decode_result,
    encode_task,
)
from hub.runtime.offloading import run_by_size
from protocols.model import Entry

WORKER_MODULE = "hub.ingest.parse_worker"
START_SECONDS = 60.0
"""Seconds for loading Python and its libraries, even on a busy machine."""
_SOURCE_ROOT = Path(__file__).parents[2]


class WorkerDied(Exception):
    """The worker ended, or sent something that is not a result."""


class WorkerProcess:
    """A worker process that was started; it takes one task at a time.

    If its answer was not awaited to its end the worker is of no more use: `kill` it.
    """

    def __init__(
        self,
        process: Process,
        tasks: asyncio.StreamWriter,
        results: asyncio.StreamReader,
    ) -> None:
        self._process = process
        self._tasks = tasks
        self._results = results
        self.documents = 0  # how many it has been given

    @classmethod
    async def start(cls, module: str = WORKER_MODULE) -> Self:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, stdin=PIPE, stdout=PIPE, env=_environment()
        )
        # both exist, because the process was started with pipes
        tasks = cast(asyncio.StreamWriter, process.stdin)
        results = cast(asyncio.StreamReader, process.stdout)
        return cls(process, tasks, results)

    async def wait_ready(self) -> None:
        """Wait until the worker can read documents. Raises WorkerDied."""
        try:
            async with asyncio.timeout(START_SECONDS):
                if await self._results.readexactly(len(READY)) != READY:
                    raise WorkerDied
        except (OSError, EOFError) as error:  # TimeoutError is an OSError
            raise WorkerDied from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, task: Task) -> Result:
        """The result of a task. Raises WorkerDied."""
        self.documents += 1
        try:
            for piece in encode_task(task):
                self._tasks.write(piece)
            await self._tasks.drain()
            return await self._read_result()
        except (OSError, EOFError, ValueError) as error:
            raise WorkerDied from error

    async def _read_result(self) -> Result:
        """Decode entries batch by batch, so that other tasks run in between."""
        payload = await self._read_frame(MOST_BYTES)
        result = await run_by_size(partial(decode_result, payload), len(payload))
        if not isinstance(result, Parsed):
            return result
        room = MOST_BYTES - len(payload)
        entries: list[Entry] = []
        for _ in range(result.batches):
            payload = await self._read_frame(room)
            room -= len(payload)
            entries += await run_by_size(partial(decode_batch, payload), len(payload))
            await asyncio.sleep(0)
        return Parsed(replace(result.feed, entries=tuple(entries)))

    async def _read_frame(self, most_bytes: int) -> bytes:
        (length,) = LENGTH.unpack(await self._results.readexactly(LENGTH.size))
        if length > most_bytes:
            raise WorkerDied
        return await self._results.readexactly(length)

    def kill(self) -> None:
        if self.is_alive:
            self._process.kill()

    async def wait(self) -> None:
        """Wait until the worker has ended and its pipes are closed; `kill` it first."""
        self._tasks.close()
        while await self._results.read(1 << 16):
            pass
        await self._process.wait()


def _environment() -> dict[str, str]:
    """The variables that Python needs, without any of the hub's settings and
    secrets."""
    inherited = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TMPDIR")
    kept = {name: os.environ[name] for name in inherited if name in os.environ}
    return kept | {"PYTHONPATH": str(_SOURCE_ROOT), "PYTHONUTF8": "1"}
