"""What was published, and when and how it arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from hub.demo.samples import FeedKind, SampleEntry

Announce = Callable[["Arrival"], None]


class Way(StrEnum):
    WEBHOOK = "webhook"
    WEBSOCKET = "websocket"
    SSE = "sse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An entry that arrived in one way; ``delay`` is in seconds since it was
    published."""

    way: Way
    entry: SampleEntry
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The arrivals of one way. ``median`` and ``slowest`` are None if there are
    none."""

    way: Way
    came: dict[FeedKind, int]
    missing: int
    median: float | None
    slowest: float | None


class Arrivals:
    """Notes what was published and what arrived; announces each first arrival."""

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._published: dict[str, tuple[SampleEntry, float]] = {}
        self._came: dict[tuple[Way, str], Arrival] = {}
        self._complete = asyncio.Event()

    def publish(self, entry: SampleEntry, now: float) -> None:
        self._published[entry.id] = entry, now
        self._complete.clear()

    def arrive(self, way: Way, entry_id: str, now: float) -> None:
        """Note an arrival, unless it is a repeated one or of an unknown entry.

        Entries that are older than the demonstration are unknown.
        """
        if entry_id not in self._published or (way, entry_id) in self._came:
            return
        entry, since = self._published[entry_id]
        arrival = Arrival(way=way, entry=entry, delay=now - since)
        self._came[way, entry_id] = arrival
        self._announce(arrival)
        if self.is_complete:
            self._complete.set()

    async def wait_complete(self) -> None:
        """Wait until every published entry has arrived in every way."""
        await self._complete.wait()

    @property
    def published(self) -> int:
        return len(self._published)

    @property
    def is_complete(self) -> bool:
        """Whether something was published, and all of it has arrived in every way."""
        return 0 < len(self._published) * len(Way) == len(self._came)

    def summaries(self) -> list[Summary]:
        return [self._summary(way) for way in Way]

    def _summary(self, way: Way) -> Summary:
        came = [each for (by, _), each in self._came.items() if by is way]
        delays = [each.delay for each in came]
        return Summary(
            way=way,
            came={
                kind: sum(each.entry.kind is kind for each in came) for kind in FeedKind
            },
            missing=self.published - len(came),
            median=median(delays) if delays else None,
            slowest=max(delays, default=None),
        )
