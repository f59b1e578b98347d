"""Nothing waits for whoever reads the log."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Iterator

import pytest
import structlog

from hub.runtime.logs import MOST_WAITING, LogOutput, configure_logs
from tests.support.restored_logs import restored_logs
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def logging_is_restored() -> Iterator[None]:
    with restored_logs():
        yield


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Both ends, of as small a one as there is."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4_096)
    yield reading, writing
    for each in (reading, writing):
        try:
            os.close(each)
        except OSError:
            continue  # a test has closed it


@pytest.fixture
def output(pipe: tuple[int, int]) -> LogOutput:
    return log_to(pipe[1])


def log_to(descriptor: int) -> LogOutput:
    """As `configure_logs` does it with stderr."""
    configure_logs("info", "json")
    root = logging.getLogger()
    output = LogOutput(descriptor)
    output.setFormatter(root.handlers[0].formatter)
    root.handlers[:] = [output]
    return output


async def read_until(descriptor: int, end: bytes) -> bytes:
    os.set_blocking(descriptor, False)
    found = bytearray()

    def is_there() -> bool:
        try:
            found.extend(os.read(descriptor, 2**20))
        except BlockingIOError:
            return False
        return end in found

    await eventually(is_there)
    return bytes(found)


async def test_lines_come_in_order_also_after_a_reader_that_stood_still(
    pipe: tuple[int, int], output: LogOutput
) -> None:
    log = structlog.get_logger()
    for number in range(200):
        log.info("counted", number=number, text="x" * (number * 40))
    log.info("ended")
    lines = await read_until(pipe[0], b'"ended"')
    numbers = [f'"number": {number},'.encode() for number in range(200)]
    places = [lines.index(each) for each in numbers]
    assert places == sorted(places)
    assert b"log_lines_lost" not in lines


async def test_what_is_too_much_to_keep_is_lost_and_counted(
    pipe: tuple[int, int], output: LogOutput
) -> None:
    log = structlog.get_logger()
    text = "x" * 60_000
    for _ in range(2 * MOST_WAITING // len(text)):
        log.info("filled", text=text)
    log.info("filled", text=text)
    os.set_blocking(pipe[0], False)

    def is_empty() -> bool:
        try:
            os.read(pipe[0], 2**20)
        except BlockingIOError:
            return output._is_drained.is_set()
        return False

    await eventually(is_empty)
    log.info("went_on")
    told = await read_until(pipe[0], b"log_lines_lost")
    assert b'"went_on"' in told
    assert b'"count": ' in told


def test_a_disk_that_is_full_is_no_trouble_of_who_logs() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        log_to(full.fileno())
        for _ in range(3):
            structlog.get_logger().info("went_on", text="x" * 100)


async def test_nor_is_a_reader_that_is_gone(
    pipe: tuple[int, int], output: LogOutput
) -> None:
    os.close(pipe[0])
    for length in (1, 9_000):
        structlog.get_logger().info("went_on", text="x" * length)
    await eventually(output._is_drained.is_set)


async def test_a_line_that_cannot_be_rendered_is_lost_and_counted(
    pipe: tuple[int, int], output: LogOutput
) -> None:
    output.handle(
        logging.LogRecord("others", logging.INFO, "", 0, "%d", ("none",), None)
    )
    structlog.get_logger().info("went_on")
    told = await read_until(pipe[0], b'"log_lines_lost"')
    assert b'"went_on"' in told
    assert b'"count": 1' in told


async def test_what_no_thread_could_write_comes_with_a_later_line(
    pipe: tuple[int, int], output: LogOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    log = structlog.get_logger()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        log.info("waited", text="x" * 9_000)
    log.info("came_later", text="x" * 9_000)
    told = await read_until(pipe[0], b'"came_later"')
    assert b'"waited"' in told


def test_without_stderr_there_are_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    configure_logs("info", "console")
    structlog.get_logger().info("went_on")
