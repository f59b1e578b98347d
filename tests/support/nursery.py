"""Processes that run the hub, forked from one that has imported it.

A hub imports some eight hundred modules before it does anything, and reads the
certificates that the system trusts; that takes longer than most tests. Here it is done
once. Each hub is a process of its own all the same, to be stopped and killed.
`fork_hub` and `fork_command` are for tests; `main` is the process they fork from.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
from asyncio import StreamReader, StreamReaderProtocol, Task
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module, reload
from pathlib import Path
from typing import NoReturn

from hub.cli import COMMANDS
from hub.http.dialling import system_tls
from hub.ingest.document_parser import reader_name
from hub.runtime import failpoints

ROOT = Path(__file__).parents[2]
_LONGEST_REQUEST = 1 << 17
_IMPORTED = (
    "apscheduler.executors.asyncio",
    "apscheduler.triggers.interval",
    "encodings.idna",
    "hub.main",
    "hub.runtime.logs",
    "hub.ingest.document_parser",
    "storage.postgres.opening",
    "storage.sqlite",
    "uvicorn.lifespan.off",
    "uvloop",
    *sorted({f"hub.cli.{place.partition(':')[0]}" for place in COMMANDS.values()}),
)
_ALWAYS_THE_SAME: Sequence[Callable[[], object]] = (reader_name, system_tls)
"""What a hub reads from the disk when it starts, and keeps."""


class ForkedHub:
    """The part of `asyncio.subprocess.Process` that tests need of a hub.

    ``stderr`` is ``stdout`` if both go to one pipe.
    """

    def __init__(
        self,
        pid: int,
        stdout: StreamReader,
        stderr: StreamReader,
        status: StreamReader,
    ) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._watch: Task[int] = asyncio.create_task(self._await_end(status))

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):  # its end is not told yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        return await asyncio.shield(self._watch)

    async def communicate(self) -> tuple[bytes, bytes]:
        """Return what a process with separate errors prints until its end."""
        printed = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return printed[0], printed[1]

    async def _await_end(self, status: StreamReader) -> int:
        self.returncode = int(await status.readline() or -signal.SIGKILL)
        await status.read()  # to its end, so that its pipe is closed
        return self.returncode


async def fork_hub(*arguments: str, environment: Mapping[str, str]) -> ForkedHub:
    """Run ``fanfare`` with these arguments; ``stdout`` has its errors, too."""
    said, saying = os.pipe()
    pid, status = await _fork(arguments, environment, saying, saying)
    stdout = await _reader(said)
    return ForkedHub(pid, stdout, stdout, status)


async def fork_command(*arguments: str, environment: Mapping[str, str]) -> ForkedHub:
    """Like `fork_hub`, with errors in a pipe of their own."""
    said, saying = os.pipe()
    complained, complaining = os.pipe()
    pid, status = await _fork(arguments, environment, saying, complaining)
    return ForkedHub(pid, await _reader(said), await _reader(complained), status)


async def _fork(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    saying: int,
    complaining: int,
) -> tuple[int, StreamReader]:
    """Return the id of the process, and the reader that gets its exit status.

    Closes the pipes that the process prints to.
    """
    told, telling = os.pipe()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    request = json.dumps([arguments, dict(environment), files]).encode()
    try:
        socket.send_fds(_nursery(), [request], [saying, complaining, telling])
    finally:
        for descriptor in {saying, complaining, telling}:
            os.close(descriptor)
    status = await _reader(told)
    return int(await status.readline()), status


@cache
def _nursery() -> socket.socket:
    """Start the process that forks; it ends with this one, and kills the hubs left."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        nursery = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            start_new_session=True,
        )
    atexit.register(_end, nursery, ours)
    return ours


def _end(nursery: subprocess.Popen[bytes], requests: socket.socket) -> None:
    requests.close()
    nursery.wait(10)


async def _reader(descriptor: int) -> StreamReader:
    reader = StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return reader


# --- the process that forks ------------------------------------------------------


def main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    for module in _IMPORTED:
        import_module(module)
    for read in _ALWAYS_THE_SAME:
        read()
    gc.collect()
    gc.freeze()
    Nursery(requests).run()


class Nursery:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._telling: dict[int, int] = {}  # by process, where its end is told
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._waking, False)

    def run(self) -> None:
        """Fork on request and report every end, until no request can come any more."""
        signal.set_wakeup_fd(self._waking)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._woken in ready:
                    os.read(self._woken, 1024)
                    self._reap()
                if self._requests in ready and not self._serve():
                    break
        for pid in self._telling:
            os.kill(pid, signal.SIGKILL)

    def _serve(self) -> bool:
        request, descriptors, _, _ = socket.recv_fds(
            self._requests, _LONGEST_REQUEST, 3
        )
        if not request:
            return False
        arguments, environment, files = json.loads(request)
        saying, complaining, telling = descriptors
        pid = os.fork()
        if not pid:
            resource.setrlimit(resource.RLIMIT_NOFILE, files)
            self._become_hub(arguments, environment, saying, complaining)
        os.write(telling, b"%d\n" % pid)
        os.close(saying)
        os.close(complaining)
        self._telling[pid] = telling
        return True

    def _reap(self) -> None:
        while self._telling:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            telling = self._telling.pop(pid)
            with suppress(BrokenPipeError):  # the test is over
                os.write(telling, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(telling)

    def _become_hub(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        saying: int,
        complaining: int,
    ) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(saying, 1)
            os.dup2(complaining, 2)
            for stream in (sys.stdout, sys.stderr):
                stream.reconfigure(write_through=True)  # type: ignore[union-attr]
            os.closerange(3, 1024)
            os.environ.clear()
            os.environ.update(environment)
            reload(failpoints)  # the one module that reads it when it is imported
            code = _run(arguments)
        finally:
            os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    from hub.cli import main as command

    sys.argv[1:] = arguments
    try:
        command(prog_name="fanfare")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    main()
