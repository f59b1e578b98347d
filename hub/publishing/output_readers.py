"""Who has read what the hub publishes, in the last hours.

Requests are counted by output and reader, in memory, hour by hour for a day. Programs
that read for search and language models are recognized by their User-Agent; all others
count as one reader. Nothing else is kept about readers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from hub.runtime.clock import Clock
from protocols.openfeeder.write.bot_requests import find_bot

HOURS: Final = 24
OTHERS: Final = ""
"""The name for all readers that are not recognized."""


class Output(StrEnum):
    """Something that the hub publishes for everybody, and that programs request."""

    OPML = "opml"
    TOPICS = "topics"
    SITEMAP = "sitemap"
    COLLECTIONS = "collections"
    OPENFEEDER = "openfeeder"


_PATHS: Final[Mapping[str, Output]] = {
    "/myPublicFeeds.opml": Output.OPML,
    "/sitemap.xml": Output.SITEMAP,
    "/openfeeder": Output.OPENFEEDER,
    "/.well-known/openfeeder.json": Output.OPENFEEDER,
}


def output_of(path: str) -> Output | None:
    """The output at a path of the hub; None for other paths."""
    if path.startswith("/scp/"):
        return Output.COLLECTIONS
    if path.startswith("/topics/") and path.endswith((".atom", ".json")):
        return Output.TOPICS
    return _PATHS.get(path)


@dataclass(slots=True)
class _Hour:
    begun: datetime
    counts: Counter[tuple[Output, str]] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderCount:
    """Answered requests of one reader for one output; ``reader`` "": all unknown ones.

    ``hour`` counts the requests of the current hour and the one before.
    """

    output: Output
    reader: str
    hour: int
    day: int


class OutputReaders:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.since = clock.now()
        self._hours: deque[_Hour] = deque(maxlen=HOURS)

    def note(self, output: Output, user_agent: str) -> None:
        """Count one answered request."""
        bot = find_bot(user_agent)
        self._hour().counts[output, bot.name if bot else OTHERS] += 1

    def counts(self) -> list[ReaderCount]:
        """The counts by output and reader, the busiest reader of each output first."""
        now = self._clock.now()
        day, lately = Counter[tuple[Output, str]](), Counter[tuple[Output, str]]()
        for each in self._hours:
            age = now - each.begun
            if age < timedelta(hours=HOURS):
                day.update(each.counts)
            if age < timedelta(hours=2):
                lately.update(each.counts)
        found = [
            ReaderCount(
                output=output, reader=reader, hour=lately[output, reader], day=n
            )
            for (output, reader), n in day.items()
        ]
        order = list(Output)
        return sorted(
            found, key=lambda it: (order.index(it.output), -it.day, it.reader)
        )

    def _hour(self) -> _Hour:
        begun = self._clock.now().replace(minute=0, second=0, microsecond=0)
        if not self._hours or self._hours[-1].begun != begun:
            self._hours.append(_Hour(begun))
        return self._hours[-1]
