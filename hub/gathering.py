"""What may lag behind the log waits for a quiet moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from storage.records import Position, Record, RecordKind

LOOK_SECONDS: Final = 1.0
LIMIT: Final = 500
"""Records that are read at a look."""
MUCH_NEWS: Final = 200
MUCH: Final = 20
"""Records at a look from which on it is worth waiting: of which some are news, or none:
those of first documents, which are news to nobody, and of feeds in error."""
NEWS_SECONDS: Final = 10.0
OTHER_SECONDS: Final = 300.0
"""How long either may wait, at most."""

_NEWS: Final = frozenset({RecordKind.ENTRIES, RecordKind.UPDATED, RecordKind.DELETED})


class ReadableLog(Protocol):
    """What is needed of `storage.interface.LogStore`."""

    async def records(self, *, after: Position, limit: int) -> list[Record]: ...


async def gather(
    log: ReadableLog,
    after: Position,
    seconds: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Wait so many seconds for more to come after a position, and longer while much
    does: thousands of feeds that are imported are first to be there, and then found.

    Raises `StorageError`.
    """
    await sleep(seconds)
    waited, has_news = seconds, False
    while records := await log.records(after=after, limit=LIMIT):
        has_news = has_news or any(each.kind in _NEWS for each in records)
        much, most = (MUCH_NEWS, NEWS_SECONDS) if has_news else (MUCH, OTHER_SECONDS)
        if len(records) <= much or waited >= most:
            return
        await sleep(LOOK_SECONDS)
        waited += LOOK_SECONDS
        after = records[-1].position
