"""Shows the progress of long work on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from hub.cli import is_terminal, say, say_in_place
from hub.core.byte_sizes import byte_size
from hub.core.durations import duration

TELL_SECONDS: Final = 2.0
"""Least time between two lines where standard error is no terminal."""
REDRAW_SECONDS: Final = 0.1
BAR: Final = 20


class Progress:
    """The progress of work in parts: how many are done, and when the rest will be.

    At a terminal it is one line that is overwritten, elsewhere a line now and then.
    """

    def __init__(
        self,
        total: int,
        what: str = "feeds",
        monotonic: Callable[[], float] = time.monotonic,
        amount: Callable[[int], str] = "{:,}".format,
    ) -> None:
        """Take how many parts of ``what`` there are; ``amount`` writes their number."""
        self._total = total
        self._what = what
        self._amount = amount
        self._monotonic = monotonic
        self._begun = self._told = monotonic()
        self.done = 0

    def add(self, count: int, note: str = "") -> None:
        """Count more parts as done. ``note``: what came of all so far."""
        self.done += count
        now = self._monotonic()
        pause = REDRAW_SECONDS if is_terminal(err=True) else TELL_SECONDS
        if self.done >= self._total:
            say_in_place("")
        elif now - self._told >= pause:
            self._told = now
            self._tell(now, note)

    def _tell(self, now: float, note: str) -> None:
        left = (self._total - self.done) * (now - self._begun) / self.done
        told = f"{self._amount(self.done)} of {self._amount(self._total)} {self._what}"
        parts = [told.rstrip(), note, f"{duration(left)} left"]
        line = ", ".join(filter(None, parts))
        if is_terminal(err=True):
            filled = BAR * self.done // self._total
            say_in_place(f"[{'#' * filled}{'.' * (BAR - filled)}] {line}")
        else:
            say(line, err=True)


class CopyProgress:
    """Shows how many bytes of how many are copied, once their total is known.

    ``what`` and ``amount`` are for other things than bytes: their name, and how to
    write a number of them.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        what: str = "",
        amount: Callable[[int], str] = byte_size,
    ) -> None:
        self._monotonic = monotonic
        self._what = what
        self._amount = amount
        self._progress: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if not total:
            return
        if self._progress is None:
            self._progress = Progress(total, self._what, self._monotonic, self._amount)
        if done > self._progress.done:
            self._progress.add(done - self._progress.done)


@contextmanager
def waiting(
    for_what: str, every: float = 1.0, look: Callable[[], str] = lambda: ""
) -> Iterator[None]:
    """Within the block a terminal shows what is waited for, and for how long already.

    ``look`` is called ``every`` so many seconds; what it returns is shown as well.
    """
    if not is_terminal(err=True):
        yield
        return
    ended = threading.Event()
    showing = threading.Thread(
        target=_show_waiting, args=(for_what, every, look, ended), daemon=True
    )
    showing.start()
    try:
        yield
    finally:
        ended.set()
        showing.join()
        say_in_place("")


def _show_waiting(
    for_what: str, every: float, look: Callable[[], str], ended: threading.Event
) -> None:
    begun = time.monotonic()
    while not ended.wait(every):
        seen = look()
        passed = duration(round(time.monotonic() - begun))
        if not ended.is_set():
            say_in_place(f"{for_what}: {', '.join(filter(None, (seen, passed)))}")
