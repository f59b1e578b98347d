"""``scripts/test``: all tests in lanes beside each other, then the floors of coverage.

Much of a test is waiting, for a disk, a hub or a moment, so nine lanes keep two cores
busy. Tests of whole hubs run on each engine. Tests are traced, which makes them half as
fast, only as far as the floors need it: in some lanes, and there as
`tests.support.tracing` says. What a lane prints is in ``build/NAME.txt``.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

WAITING: Final = ("tests/e2e", "tests/conformance/websub")
HARDENING: Final = (
    "tests/etiquette",
    "tests/simulation",
    "tests/soak",
    "tests/hardening",
    "tests/hub/simulation",
)
FORMATS: Final = ("tests/protocols", "tests/storage")
SURFACE: Final = ("tests/hub/web", "tests/hub/cli")
SERVICES: Final = (
    "tests/hub/services",
    "tests/hub/publishing",
    "tests/hub/push",
    "tests/hub/search",
)
ENGINES: Final = ("tests/conformance",)
TREE: Final = (
    "tests/benchmarks",
    "tests/fuzzing",
    "tests/scripts",
    "tests/test_docs.py",
    "tests/test_house.py",
    "tests/test_packaging.py",
    "tests/test_workflows.py",
)
"""What is about the tree and its scripts rather than the hub."""
BROWSER: Final = ("tests/browser",)

SLOWEST: Final = 15
STOPPING: Final = 10.0
"""Seconds that lanes have to end by themselves when they are told to stop."""
PR_SET_CHILD_SUBREAPER: Final = 36
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of its own is made in it
LEAST_MEMORY: Final = 4 << 30
"""Bytes that are free there: several times what tests that run have at once."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One call of pytest."""

    name: str
    arguments: tuple[str, ...]
    is_traced: bool = False
    are_imports_traced: bool = False  # too: once is enough
    engine: str = "sqlite"  # of the hubs that it starts: `tests.support.chosen_engine`


@dataclass(frozen=True, slots=True)
class LaneProgress:
    """What a lane's output says of where it is: percent, and the newest test."""

    percent: int
    test: str

    def __str__(self) -> str:
        return f"{self.percent:3} %  {self.test}"


def ignoring(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"--ignore={path}" for path in paths)


APART: Final = (
    *(*WAITING, *FORMATS, *HARDENING, *SURFACE),
    *(*SERVICES, *ENGINES, *TREE, *BROWSER),
)
"""What has a lane of its own; the first lane has the rest."""
LANES: Final = (
    Lane("hub", ("tests", *ignoring(APART)), is_traced=True, are_imports_traced=True),
    Lane("services", SERVICES, is_traced=True),
    Lane("surface", SURFACE, is_traced=True),
    Lane("engines", (*ENGINES, *TREE, *ignoring(WAITING))),
    Lane("formats", FORMATS, is_traced=True),
    Lane("waiting", WAITING),
    Lane("postgres", ("tests/e2e",), engine="postgresql"),
    Lane("hardening", HARDENING),
    Lane("browser", BROWSER),
)


def main() -> int:
    """Status 0 if every lane passes and both floors are met, 130 if it was stopped."""
    Path("build").mkdir(exist_ok=True)
    adopt_orphans()
    call("-m", "coverage", "erase")
    with files_in_memory():
        try:
            failed = asyncio.run(run_lanes(LANES, Path("build"), every=10.0))
        except asyncio.CancelledError:
            print("stopped", file=sys.stderr)
            return 130
        finally:
            kill_descendants()
    outputs = {lane.name: output_of(lane, Path("build")) for lane in LANES}
    print_outcome(outputs, failed)
    return 1 if failed or not floors_are_met() else 0


def call(*arguments: str) -> int:
    """The status of Python with these arguments."""
    sys.stdout.flush()
    return subprocess.run([sys.executable, *arguments], check=False).returncode  # noqa: S603


@contextmanager
def files_in_memory() -> Iterator[None]:
    """Where memory can hold the tests' files, it does: to have them on a disk costs a
    fifth more, and as much again in waiting."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < LEAST_MEMORY:
        yield
        return
    with TemporaryDirectory(
        prefix="fanfare-tests-", dir=MEMORY, ignore_cleanup_errors=True
    ) as directory:
        Path(directory).chmod(0o755)  # a server of a test is another user's
        os.environ["TMPDIR"] = directory
        yield


def floors_are_met() -> bool:
    call("-m", "coverage", "combine", "--quiet")
    print("the pure core, every branch:")
    report = ("-m", "coverage", "report")
    core = call(*report, "--include=protocols/*,hub/core/*", "--fail-under=100")
    print("everything:")
    return not call(*report, "--fail-under=90") and not core


async def run_lanes(
    lanes: Sequence[Lane], directory: Path, every: float
) -> frozenset[str]:
    """The names of the lanes that failed. Prints a line for each lane every so many
    seconds. SIGINT, SIGTERM and SIGHUP end the lanes; raises CancelledError then."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - for mypy: a coroutine runs in a task
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(each, task.cancel)
    statuses: dict[str, int] = {}
    async with asyncio.TaskGroup() as group:
        reporting = group.create_task(
            report_progress(lanes, directory, statuses, every)
        )
        async with asyncio.TaskGroup() as running:
            for lane in lanes:
                running.create_task(run_lane(lane, directory, statuses))
        reporting.cancel()
    return frozenset(name for name, status in statuses.items() if status)


async def run_lane(lane: Lane, directory: Path, statuses: dict[str, int]) -> None:
    with path_of(lane, directory).open("wb") as output:
        statuses[lane.name] = await run_tests(lane, output.fileno())


async def run_tests(lane: Lane, output: int) -> int:
    """In a session of its own, so that Ctrl-C reaches it only through `run_lanes`."""
    arguments = ["-v", "--durations=30", "-p", "no:cacheprovider", *lane.arguments]
    arguments[:0] = ["-o", "tmp_path_retention_policy=failed"]  # they are in memory
    environment = {**os.environ, "FANFARE_TEST_ENGINE": lane.engine}
    # Else each run compiles all tests anew, and each of some hundred hubs the hub.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if lane.are_imports_traced:
        arguments[:0] = ["-p", "tests.support.traced_imports"]
    if lane.is_traced:
        arguments[:0] = ["-p", "tests.support.tracing"]
        environment["COVERAGE_FILE"] = f".coverage.{lane.name}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        await stop(process)
        raise


async def stop(process: asyncio.subprocess.Process) -> None:
    """As by Ctrl-C: pytest ends what its tests have started. Killed if it does not."""
    process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(STOPPING):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def report_progress(
    lanes: Sequence[Lane], directory: Path, statuses: dict[str, int], every: float
) -> None:
    began = monotonic()
    while True:
        await asyncio.sleep(every)
        seconds = round(monotonic() - began)
        for lane in lanes:
            if lane.name in statuses:
                said = "failed" if statuses[lane.name] else "passed"
            else:
                said = str(progress_of(output_of(lane, directory)))
            print(f"{seconds:4} s  {lane.name:8} {said}", flush=True)


def path_of(lane: Lane, directory: Path) -> Path:
    return directory / f"{lane.name}.txt"


def output_of(lane: Lane, directory: Path) -> str:
    path = path_of(lane, directory)
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def progress_of(output: str) -> LaneProgress:
    """Of the output of ``pytest -v``, which names a test before it runs."""
    percents = re.findall(r"\[ *(\d+)%\]$", output, re.MULTILINE)
    tests = re.findall(r"^tests/\S+::.*?(?= PASSED| FAILED|$)", output, re.MULTILINE)
    percent = int(percents[-1]) if percents else 0
    return LaneProgress(percent, tests[-1][:100] if tests else "collecting")


def slowest_of(outputs: Sequence[str]) -> list[tuple[float, str]]:
    """Seconds and name of the slowest tests, longest first."""
    line = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(tests/.*)$", re.MULTILINE)
    found = [(float(s), test) for each in outputs for s, test in line.findall(each)]
    return sorted(found, reverse=True)[:SLOWEST]


def print_outcome(outputs: dict[str, str], failed: frozenset[str]) -> None:
    for name, output in outputs.items():
        lines = output.rstrip().splitlines() or ["no output"]
        if name in failed:
            print(f"{name} failed (build/{name}.txt):")
            print("\n".join(failures_of(lines)))
        else:
            print(f"{name}: {lines[-1].strip('= ')}")
    print("slowest:")
    for seconds, test in slowest_of(list(outputs.values())):
        print(f"{seconds:7.2f} s  {test}")


def failures_of(lines: Sequence[str]) -> Sequence[str]:
    """From the first failure on; of a lane that was killed, its last lines."""
    for number, line in enumerate(lines):
        if re.match(r"=+ (FAILURES|ERRORS) =+$", line):
            return lines[number:]
    return lines[-50:]


def adopt_orphans() -> None:
    """What tests start becomes this process's child when a test dies (Linux), so that
    `kill_descendants` finds it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """Until there are none: the children of who is killed become this process's own."""
    while children := list(children_of(os.getpid())):
        for child, state in children:
            if state != "Z":
                print(f"killed process {child}, which a test left", file=sys.stderr)
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def children_of(parent: int) -> Iterator[tuple[int, str]]:
    """Ids and states, as proc(5) has them; none where there is no ``/proc``."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            _name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue  # it has ended meanwhile
        state, parent_of_it = rest.split()[:2]
        if int(parent_of_it) == parent:
            yield int(stat.parent.name), state


if __name__ == "__main__":
    sys.exit(main())
