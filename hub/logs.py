"""Log lines: structlog over the standard library, for people or as JSON, on stderr.

Lines of libraries pass through the same end, so that all look alike.
"""

from __future__ import annotations

import logging
import sys
from io import StringIO
from typing import TextIO

import structlog

from hub.log_output import LogOutput

QUIET = (
    "uvicorn",
    "uvicorn.error",
    "uvicorn.access",
    "asyncio",
    "aiosqlite",  # which would tell what is asked of the database
)
"""Libraries of which only warnings are of interest."""


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
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
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
    """Tracebacks are shown without the values of variables: they may be secrets."""
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
    """What others say may neither begin a line of its own nor steer a terminal."""
    for name, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[name] = _escaped(value)
    return event


def _write_traceback(out: TextIO, error: structlog.typing.ExcInfo) -> None:
    """Indented, as an error's message may look like a line of the log."""
    text = StringIO()
    structlog.dev.plain_traceback(text, error)
    for line in text.getvalue().split("\n"):
        out.write(f"\n    {_escaped(line)}" if line else "")


def _escaped(text: str) -> str:
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in text
    )
