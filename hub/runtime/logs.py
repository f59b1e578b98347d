"""Log lines: structlog over the standard library, for people or as JSON, on stderr.

Lines of libraries pass through the same output, so that all look alike. Nothing that
logs waits for the reader of the log (a pager, a stopped terminal, a stuck collector):
lines that cannot be written at once are written by a thread, up to a limit; lines
beyond that are lost, and counted.
"""

from __future__ import annotations

import logging
import os
import select
import sys
import threading
from collections import deque
from io import StringIO
from typing import TextIO

import structlog

MOST_WAITING = 1024 * 1024
"""The most bytes of lines that may wait to be written."""
ATOMIC = select.PIPE_BUF
"""Bytes that a pipe with any room accepts in one piece."""
FAREWELL_SECONDS = 1.0

log = structlog.get_logger()


class LogOutput(logging.Handler):
    """Writes each line whole, in order."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)
        self._state = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._lost = 0
        self._is_drained = threading.Event()
        self._is_drained.set()

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record. One that cannot be rendered is lost: its caller must not
        fail because of it."""
        try:
            text = f"{self.format(record)}\n"
        except Exception:
            with self._state:
                self._lost += 1
            return
        line = text.encode("utf-8", "backslashreplace")
        at_once = self._is_drained.is_set() and len(line) <= ATOMIC
        if not at_once or not self._room.poll(0):
            self._keep(line)
        elif self._writes(line) and self._lost:
            self._tell_of_loss()

    def flush(self) -> None:
        """At the end of the process, give waiting lines a moment to be written."""
        self._is_drained.wait(FAREWELL_SECONDS)

    def _writes(self, line: bytes) -> bool:
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:  # the disk is full, or nobody reads any more
            with self._state:
                self._lost += 1
            return False
        return True

    def _keep(self, line: bytes) -> None:
        with self._state:
            if self._waiting_bytes + len(line) > MOST_WAITING:
                self._lost += 1
                return
            self._waiting.append(line)
            self._waiting_bytes += len(line)
            if not self._is_drained.is_set():
                return
            self._is_drained.clear()
        try:
            threading.Thread(target=self._drain, name="log", daemon=True).start()
        except RuntimeError:  # there is no more of them; a later line has it written
            self._is_drained.set()

    def _drain(self) -> None:
        while True:
            with self._state:
                if not self._waiting:
                    self._is_drained.set()
                    break
                line = self._waiting.popleft()
                self._waiting_bytes -= len(line)
            self._writes(line)

    def _tell_of_loss(self) -> None:
        with self._state:
            lost, self._lost = self._lost, 0
        log.warning("log_lines_lost", count=lost)
        if self._lost:  # and so is what told it
            self._lost += lost


QUIET = (
    "uvicorn",
    "uvicorn.error",
    "uvicorn.access",
    "asyncio",
    "aiosqlite",  # which would tell what is asked of the database
)
"""Libraries of which only warnings are logged."""


def configure_logs(level: str, format: str, stream: TextIO | None = None) -> None:
    """Set up logging for the whole process; ``format`` is ``console`` or ``json``.

    Without ``stream`` lines go to stderr, if there is one, and wait for nobody.
    """
    out = sys.stderr if stream is None else stream
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,  # that of one logger, as below
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = _handler(out, waits=stream is not None)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(format, is_terminal=out is not None and out.isatty()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("apscheduler").setLevel(max(logging.ERROR, root.level))
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _handler(out: TextIO | None, *, waits: bool) -> logging.Handler:
    if out is None:  # closed by who started this; its descriptor may be a file's now
        return logging.NullHandler()
    if waits:
        return logging.StreamHandler(out)
    try:
        return LogOutput(out.fileno())
    except OSError:  # of a test, with no descriptor
        return logging.StreamHandler(out)


def _renderers(format: str, *, is_terminal: bool) -> list[structlog.typing.Processor]:
    """Processors for the format. Tracebacks are shown without the values of variables,
    which may be secrets."""
    if format == "json":
        without_values = structlog.tracebacks.ExceptionDictTransformer(
            show_locals=False
        )
        return [
            structlog.processors.ExceptionRenderer(without_values),
            structlog.processors.JSONRenderer(),
        ]
    return [
        _escape_values,
        structlog.dev.ConsoleRenderer(
            colors=is_terminal, exception_formatter=_write_traceback
        ),
    ]


def _escape_values(
    logger: structlog.typing.WrappedLogger,
    method: str,
    event: structlog.typing.EventDict,
) -> structlog.typing.EventDict:
    """Escape values: text from others may neither start a line of its own nor control a
    terminal."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = _escaped(value)
    return event


def _write_traceback(out: TextIO, error: structlog.typing.ExcInfo) -> None:
    """Write the traceback indented, as an error's message may look like a line of the
    log."""
    text = StringIO()
    structlog.dev.plain_traceback(text, error)
    for line in text.getvalue().split("\n"):
        out.write(f"\n    {_escaped(line)}" if line else "")


def _escaped(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in text
    )
