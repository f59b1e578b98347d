"""Open files: every connection is one, and by default few are allowed."""

from __future__ import annotations

import resource
from dataclasses import replace

import structlog

from hub.ingest.visit_slots import slow_slots
from hub.settings import Settings

MOST_FILES = 2**20
"""Asked for where there is no limit; Linux takes no more by default."""
RESERVED = 256
"""For the database, the parser, and requests that are no live streams."""

log = structlog.get_logger()


def raise_limit() -> int:
    """Let this process open as many files as it may. How many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # some systems allow less than they say
        return soft
    return wanted


def fit_connections(settings: Settings, files: int) -> Settings:
    """No more live connections than there can be: one that cannot be accepted

    would be in the way of all others, one too many is told to come back.
    """
    polls = settings.poll_concurrency + slow_slots(settings.poll_concurrency)
    used = RESERVED + polls + settings.delivery_concurrency
    room = max(files - used, files // 4)
    wanted = settings.stream_connections
    if wanted > room:
        log.warning(
            "stream_connections_limited",
            wanted=wanted,
            connections=room,
            open_files=files,
            hint="raise the hard limit of open files (ulimit -Hn, LimitNOFILE)",
        )
    fitted = replace(settings, stream_connections=min(wanted, room))
    log.info(
        "open_files_allowed", files=files, live_connections=fitted.stream_connections
    )
    return fitted
