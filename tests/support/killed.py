"""Work that is killed (SIGKILL) at each of its steps, one run for each.

Steps are what the interpreter reports of itself: files opened, renamed, linked and
removed; and the progress that the work reports. Each run is a process of its own.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator

_STEPS = ("open", "os.", "sqlite3.connect", "progress")


def killed_at_each_step(
    prepare: Callable[[], None], work: Callable[[Callable[[int, int], None]], object]
) -> Iterator[int]:
    """Prepare, and do the work up to its next step, again and again.

    Yields the step after each death, and ends when the work came to its end. ``work``
    gets the function to report its progress to.
    """
    step = 0
    while True:
        step += 1
        prepare()
        if not _dies(work, step):
            return
        yield step


def _dies(work: Callable[[Callable[[int, int], None]], object], step: int) -> bool:
    child = os.fork()
    if child == 0:
        _work_until(work, step)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the work failed"
    return os.WIFSIGNALED(status)


def _work_until(
    work: Callable[[Callable[[int, int], None]], object], step: int
) -> None:
    left = step

    def count(event: str, _arguments: object = None) -> None:
        nonlocal left
        if event.startswith(_STEPS):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(count)
        work(lambda _done, _total: count("progress"))
        os._exit(0)
    finally:
        os._exit(1)
