"""A terminal, in which a command of ``fanfare`` runs in this very process."""

from __future__ import annotations

import os
import sys
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field

import pytest

from hub.cli import main


@dataclass
class Terminal:
    """A terminal. ``shown``: what has been written to it, as it came."""

    shown: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        return self.shown.decode()


@contextmanager
def terminal(typed: str = "") -> Iterator[Terminal]:
    """Make standard output and error a terminal; with ``typed`` standard input, too."""
    reader, writer = os.openpty()
    tty.setraw(writer)
    keyboard = os.fdopen(os.dup(writer), encoding="utf-8")
    os.write(reader, typed.encode())
    stdin = sys.stdin
    if typed:
        sys.stdin = keyboard
    found = Terminal()
    reading = threading.Thread(target=_read, args=(reader, found.shown))
    reading.start()
    try:
        with (
            os.fdopen(writer, "w", encoding="utf-8") as stream,
            redirect_stdout(stream),
            redirect_stderr(stream),
        ):
            assert sys.stdout.isatty()
            yield found
    finally:
        sys.stdin = stdin
        keyboard.close()
        reading.join()
        os.close(reader)


def run_in_terminal(*arguments: str, typed: str = "") -> tuple[int, str]:
    """Run a command; return its exit code and what was shown."""
    with terminal(typed) as shown, pytest.raises(SystemExit) as ended:
        main(list(arguments), prog_name="fanfare")
    code = ended.value.code
    return (code if isinstance(code, int) else int(code is not None)), shown.text


def _read(reader: int, into: bytearray) -> None:
    while True:
        try:
            piece = os.read(reader, 65_536)
        except OSError:  # nobody has it open for writing any more
            return
        if not piece:
            return
        into += piece
