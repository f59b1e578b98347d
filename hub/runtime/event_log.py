"""Log lines about what happens to feeds and callbacks, one sentence each.

A limited number of each kind are logged in a minute. The rest are counted and summed up
in one line at the minute's end, with everything else the hub did: when a network goes
down, ten thousand feeds fail at once. `run` is the background task that does this.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final

import structlog

from hub.runtime.metrics import Metrics
from storage.records import RecordKind

MOST_OF_KIND: Final = 20
"""Lines of one kind that are logged in a minute."""
MINUTE: Final = 60.0

log = structlog.get_logger()


class LogEvent(StrEnum):
    """What a line is about; the value is the text by which further ones are counted."""

    NEWS = "fetches with news"
    FEED_FAILING = "feeds that began to fail"
    FEED_RECOVERED = "feeds that recovered"
    FEED_STOPPED = "feeds that are no longer polled"
    CALLBACK_FAILING = "callbacks that began to fail"
    CALLBACK_RECOVERED = "callbacks that recovered"
    GIVEN_UP = "deliveries given up"
    SUBSCRIPTION_GONE = "subscriptions ended by a 410"


WARNINGS: Final = frozenset(
    {
        LogEvent.FEED_FAILING,
        LogEvent.FEED_STOPPED,
        LogEvent.CALLBACK_FAILING,
        LogEvent.GIVEN_UP,
        LogEvent.SUBSCRIPTION_GONE,
    }
)


class EventLog:
    def __init__(
        self,
        metrics: Metrics | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``metrics``: what is counted of the hub's work."""
        self._metrics = metrics or Metrics()
        self._sleep = sleep
        self._logged: Counter[LogEvent] = Counter()  # in this minute
        self._held_back: Counter[LogEvent] = Counter()
        self._before = self._counts()

    def tell(self, event: LogEvent, sentence: str, **ids: int) -> None:
        """Log the sentence, with the ids of what it is about, or only count it."""
        if self._logged[event] >= MOST_OF_KIND:
            self._held_back[event] += 1
            return
        self._logged[event] += 1
        tell = log.warning if event in WARNINGS else log.info
        tell(sentence, kind=event.name.lower(), **ids)

    async def run(self) -> None:
        """Sum up each minute, until cancelled."""
        while True:
            await self._sleep(MINUTE)
            self.sum_up()

    def sum_up(self) -> None:
        """Log one line that sums up the minute, if more happened than was logged."""
        now = self._counts()
        done = {what: now[what] - self._before[what] for what in now}
        if self._held_back or done["collections"]:
            held_back = ", ".join(
                f"{self._held_back[each]:,} {each}"
                for each in LogEvent
                if self._held_back[each]
            )
            more = f"; not logged one by one: {held_back}" if held_back else ""
            log.info(f"in the last minute: {_sentence(done)}{more}", kind="minute")
        self._before = now
        self._logged.clear()
        self._held_back.clear()

    def _counts(self) -> dict[str, int]:
        polls, deliveries = self._metrics.polls, self._metrics.deliveries
        failed = deliveries["refused"] + deliveries["unanswered"]
        collections = self._metrics.collections
        return {
            "polls": polls["fetched"] + polls["not_modified"] + polls["failed"],
            "failed polls": polls["failed"],
            "new entries": self._metrics.entries[RecordKind.ENTRIES.value],
            "deliveries": deliveries["delivered"] + failed,
            "failed deliveries": failed,
            "collections": collections["delta"] + collections["snapshot"],
        }


def _sentence(done: dict[str, int]) -> str:
    """Like ``312 polls (5 failed), 45 new entries``; counts of zero are left out."""
    parts = [
        _part(done["polls"], "poll", done["failed polls"]),
        _part(done["new entries"], "new entry", many="new entries"),
        _part(done["deliveries"], "delivery", done["failed deliveries"], "deliveries"),
        _part(done["collections"], "collection built", many="collections built"),
    ]
    return ", ".join(filter(None, parts)) or "nothing else"


def _part(count: int, one: str, failed: int = 0, many: str = "") -> str:
    if not count:
        return ""
    of_which = f" ({failed:,} failed)" if failed else ""
    return f"{count:,} {one if count == 1 else many or one + 's'}{of_which}"
