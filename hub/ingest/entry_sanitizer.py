"""Cleaning of entries in a process that may be killed, so that no entry harms the
hub."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import structlog
from msgspec import msgpack

from hub.ingest.document_parser import WorkerParser
from hub.runtime.background import AsyncResource
from hub.runtime.offloading import run_by_size, run_in_thread
from protocols.feeds import ParseContext
from protocols.html import disarm
from protocols.model import Entry
from protocols.protocol_errors import FeedError

log = structlog.get_logger(__name__)

WORKER_MODULE = "hub.ingest.sanitizing_worker"
_MOST_WAITING = 5_000  # more than there are fetches at the same time
_CONTEXT = ParseContext(url="", now=datetime(1970, 1, 1, tzinfo=UTC))


class Sanitizer(Protocol):
    """The interface behind which entries become safe to show."""

    async def sanitize(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The cleaned entries, as many and in the same order; never fails."""
        ...


class WorkerSanitizer(AsyncResource):
    """A `Sanitizer` with at most two worker processes, started when needed.

    Entries that take a worker more than ``seconds``, or crash it, are disarmed instead:
    they show their markup as text. One such entry does not affect the others. Use it as
    an async context manager.
    """

    def __init__(self, *, seconds: float = 5.0, module: str = WORKER_MODULE) -> None:
        self._worker = WorkerParser(
            workers=2,
            seconds=seconds,
            waiting=_MOST_WAITING,
            inline_bytes=-1,
            module=module,
        )

    async def aclose(self) -> None:
        """Kill the workers; see `AsyncResource`."""
        await self._worker.aclose()

    async def sanitize(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """See `Sanitizer`. If cleaning fails, the entry with the most tags is tried
        apart from the others: it may be the only one at fault."""
        cleaned = await self._clean(entries)
        if cleaned is None and len(entries) > 1:
            worst = await run_in_thread(partial(_worst_of, entries))
            before, after = entries[:worst], entries[worst + 1 :]
            others = await self._clean(before + after)
            if others is not None:
                return *others[:worst], disarm(entries[worst]), *others[worst:]
        if cleaned is None:
            return await run_in_thread(lambda: tuple(map(disarm, entries)))
        return cleaned

    async def _clean(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
        """The cleaned entries; ``None`` if the worker did not survive them."""
        reason = "the worker lost some"
        try:
            encoding = partial(msgpack.encode, entries)
            encoded = await run_by_size(encoding, 0, len(entries))
            parsed = await self._worker.parse(encoded, _CONTEXT)
            if [each.key for each in parsed.entries] == [each.key for each in entries]:
                return parsed.entries
        except FeedError as error:
            reason = str(error)
        log.warning("entries_not_cleaned", entries=len(entries), error=reason)
        return None


def _worst_of(entries: tuple[Entry, ...]) -> int:
    return entries.index(max(entries, key=_count_tags))


def _count_tags(entry: Entry) -> int:
    texts = (entry.content, entry.summary, *(each.content for each in entry.objects))
    return sum(text.value.count("<") for text in texts if text)
