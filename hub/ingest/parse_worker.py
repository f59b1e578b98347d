"""The parse worker: a process that parses documents for the hub, and may crash on them.

It has little memory and time, knows no secrets, and ends when its standard input does.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from hub.ingest.worker_frames import (
    LENGTH,
    READY,
    Exceeded,
    Malformed,
    Parsed,
    Task,
    decode_task,
    describe,
    encode_result,
)
from hub.runtime import garbage_collection
from protocols.feeds import parse
from protocols.feeds.lenient import parse_leniently
from protocols.model import ParsedFeed
from protocols.protocol_errors import FeedError, MalformedDocument

MEMORY_BYTES = 1 << 30
CPU_SECONDS = 15  # for one document; the hub gives up earlier


def main() -> None:
    serve(read_document)


def serve(read: Callable[[Task], ParsedFeed]) -> None:
    """Answer tasks from standard input with what ``read`` makes of them."""
    garbage_collection.freeze_startup()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the hub to handle
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, target = sys.stdin.buffer, _claim_standard_output()
    target.write(READY)
    target.flush()
    while (task := _read_task(source)) is not None:
        _grant_processor_time()
        target.writelines(answer(task, read))
        target.flush()


def read_document(task: Task) -> ParsedFeed:
    """Parse a document, strictly unless that has failed already, else with all repairs;
    raises FeedError."""
    if task.context.selector:
        return parse(task.body, task.context)  # not a feed, so no repairs
    if not task.is_malformed:
        with suppress(MalformedDocument):  # it may be repairable
            return parse(task.body, task.context)
    return parse_leniently(task.body, task.context)


def answer(task: Task, read: Callable[[Task], ParsedFeed]) -> list[bytes]:
    """The frames with the result of a document, which may be any kind of failure."""
    try:
        return encode_result(Parsed(read(task)))
    except FeedError as error:
        result = describe(error)
    except MemoryError:
        result = Exceeded("the memory to parse the document", MEMORY_BYTES)
    except RecursionError:
        result = Exceeded("the nesting of the document", sys.getrecursionlimit())
    except Exception as error:  # a fault of the parser must not end the worker
        result = Malformed(f"the parser failed on it ({type(error).__name__})")
    return encode_result(result)


def _read_task(source: BinaryIO) -> Task | None:
    order, body = _read_frame(source), _read_frame(source)
    return None if order is None or body is None else decode_task(order, body)


def _read_frame(source: BinaryIO) -> bytes | None:
    """The next frame; ``None`` at the end of input."""
    prefix = source.read(LENGTH.size)
    if len(prefix) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(prefix)
    return source.read(length)


def _claim_standard_output() -> BinaryIO:
    """A handle on the pipe for results only; what libraries print goes to the log."""
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return target


def _grant_processor_time() -> None:
    """Set a limit on processor time: SIGXCPU ends the worker even if the hub is
    gone."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + CPU_SECONDS, hard))


if __name__ == "__main__":
    main()
