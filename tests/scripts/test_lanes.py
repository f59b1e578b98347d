"""``scripts/test``: what it prints meanwhile and at its end, and that it leaves nothing
running when it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from scripts.lanes import failures_of, progress_of, slowest_of

VERBOSE = """\
collected 3 items

tests/hub/test_one.py::test_it_stands[a b] PASSED                        [ 33%]
tests/hub/test_one.py::test_it_falls FAILED                              [ 66%]
tests/hub/test_two.py::test_it_waits """

ENDED = """\
=================================== FAILURES ===================================
____ test_it_falls ____
E   assert False
============================= slowest 30 durations =============================
2.50s call     tests/hub/test_two.py::test_it_waits
0.75s setup    tests/hub/test_one.py::test_it_stands[a b]
========================= 1 failed, 2 passed in 3.30s ==========================
"""

LEAVING = """\
import subprocess, time
from pathlib import Path

def test_that_leaves_a_process_of_another_session_behind():
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path({file!r}).write_text(str(child.pid))
    time.sleep(600)
"""

STOPPED = """\
import asyncio, sys
from pathlib import Path
from scripts.lanes import Lane, adopt_orphans, kill_descendants, run_lanes

adopt_orphans()
try:
    asyncio.run(run_lanes([Lane("one", ({test!r},))], Path({here!r}), 0.05))
finally:
    kill_descendants()
"""


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (VERBOSE, " 66 %  tests/hub/test_two.py::test_it_waits"),
        ("collecting ...", "  0 %  collecting"),
        ("", "  0 %  collecting"),
    ],
)
def test_a_lane_says_its_percent_and_the_test_that_runs(output: str, said: str) -> None:
    assert str(progress_of(output)).rstrip() == said


def test_the_slowest_tests_of_all_lanes_are_told_longest_first() -> None:
    other = "9.00s call     tests/e2e/test_day.py::test_a_day"

    assert slowest_of([ENDED, other]) == [
        (9.0, "tests/e2e/test_day.py::test_a_day"),
        (2.5, "tests/hub/test_two.py::test_it_waits"),
        (0.75, "tests/hub/test_one.py::test_it_stands[a b]"),
    ]


def test_of_a_lane_that_failed_all_is_printed_from_its_first_failure_on() -> None:
    lines = (VERBOSE + "\n" + ENDED).splitlines()

    assert failures_of(lines) == ENDED.splitlines()


def test_of_a_lane_that_was_killed_its_last_lines_are_printed() -> None:
    assert failures_of(["collecting", "Killed"]) == ["collecting", "Killed"]


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_leaves_no_process_behind_when_it_is_stopped(
    tmp_path: Path, number: signal.Signals
) -> None:
    left, test = tmp_path / "left", tmp_path / "test_leaving.py"
    test.write_text(LEAVING.format(file=str(left)))
    source = STOPPED.format(test=str(test), here=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", source], stderr=subprocess.PIPE) as it:
        pid = int(await_text(left))
        it.send_signal(number)
        it.communicate(timeout=30)

    assert not is_running(pid)


def await_text(path: Path) -> str:
    until = monotonic() + 30
    while monotonic() < until:
        if path.exists() and (text := path.read_text()):
            return text
        sleep(0.02)
    raise TimeoutError(f"{path} is not written")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
