"""The server that tests bring with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Event

from tests.support.postgres_server import OTHER_SERVER

PROGRAM = """
from tests.support.postgres_server import shared_server
print(shared_server().directory, flush=True)
input()
"""


def test_it_ends_with_the_process_that_needs_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={
            **{k: value for k, value in os.environ.items() if k != OTHER_SERVER},
            "PYTHONPATH": str(Path(__file__).parents[3]),
        },
    )
    with process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        server = int((directory / "data/postmaster.pid").read_text().split()[0])
        assert Path(f"/proc/{server}").exists()

        process.kill()
        process.wait()

        waiting = Event()
        while directory.exists():  # the process beside it does that
            waiting.wait(0.02)
        assert not Path(f"/proc/{server}").exists()
