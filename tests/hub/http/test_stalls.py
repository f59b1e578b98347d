"""A process that was stopped takes what came in the meantime."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from hub.http.network_errors import TimedOut
from tests.support.one_delivery import HEAD, REQUEST, deliver, open_to

SECONDS = 3.0
"""For an answer; long enough to stop the process in, however slow the machine is."""

both_loops = pytest.mark.parametrize(
    "loop_factory",
    [asyncio.new_event_loop, uvloop.new_event_loop],
    ids=["asyncio", "uvloop"],
)


def wait_until_idle(pid: int) -> None:
    """Until the process waits for events."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "S":
            return
        time.sleep(0.01)
    raise TimeoutError


def test_an_answer_that_came_while_the_process_was_stopped_counts() -> None:
    """Else what was delivered is delivered once more.

    A wait for events that a stop has interrupted ends without having looked at the
    sockets, when it has lasted for as long as it was to: timers come first then.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        command = [sys.executable, "-m", "tests.support.one_delivery", port]
        with subprocess.Popen(
            [*command, f"{SECONDS}"], stdout=subprocess.PIPE, text=True
        ) as hub:
            listener.settimeout(60)
            receiver, _ = listener.accept()
            with receiver:
                assert receiver.recv(65_536) == HEAD
                wait_until_idle(hub.pid)
                hub.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, hub.pid, os.WSTOPPED)
                receiver.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
                time.sleep(SECONDS)  # no event tells that time has passed there
                hub.send_signal(signal.SIGCONT)
                said, _ = hub.communicate(timeout=60)
    assert said == "204\n"


@both_loops
def test_where_nothing_came_the_deadline_holds(
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        asyncio.Runner(loop_factory=loop_factory) as runner,
    ):
        said = runner.run(deliver(listener.getsockname()[1], 0.1))
    assert said == "no answer in time"


async def test_nothing_is_sent_when_no_time_is_left_to_hear_the_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = await open_to(listener.getsockname()[1])
        receiver, _ = listener.accept()
        with pytest.raises(TimedOut, match="no time was left"):
            await connection.exchange(REQUEST, HEAD, asyncio.get_running_loop().time())
        await asyncio.sleep(0)  # it is closed
        with receiver:
            assert receiver.recv(65_536) == b""
