"""Where log lines go: a descriptor whose other end may be full, slow, or gone.

Nothing that logs waits for whoever reads the log: a pager, a stopped terminal, a
collector that is stuck. What cannot be written at once is written by a thread, up to a
limit; what is beyond that is lost, and counted.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections import deque

import structlog

MOST_WAITING = 1024 * 1024
"""Bytes of lines."""
ATOMIC = select.PIPE_BUF
"""Bytes that a pipe which takes any takes at once."""
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
        """What cannot be rendered is lost: who logs it is not to fail of that."""
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
        """At the end of the process: what waits is given a moment."""
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
