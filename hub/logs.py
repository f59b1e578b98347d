"""Log lines: structlog over the standard library, for people or as JSON, on stderr.

Lines of libraries pass through the same end, so that all look alike.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog

QUIET = (
    "uvicorn",
    "uvicorn.error",
    "uvicorn.access",
    "apscheduler",
    "asyncio",
    "aiosqlite",  # which would tell what is asked of the database
)
"""Libraries of which only warnings are of interest."""


def configure_logs(level: str, format: str, stream: TextIO | None = None) -> None:
    """Set up logging for the whole process; ``format`` is ``console`` or ``json``."""
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
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(format, is_terminal=out.isatty()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


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
        structlog.dev.ConsoleRenderer(
            colors=is_terminal, exception_formatter=structlog.dev.plain_traceback
        )
    ]
