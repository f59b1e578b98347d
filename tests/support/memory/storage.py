"""The storage interface in plain Python: the model that engines are compared with.

It keeps everything in dicts, forgets it at the end, and is only used by tests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime

from storage.records import (
    Backlog,
    ControlEvent,
    DatabaseStatus,
    DiskSample,
    FeedId,
    FeedState,
    Position,
)

from .audit import MemoryAudit
from .bulk_plans import MemoryBulkPlans
from .claims import MemoryClaims
from .deliveries import MemoryDeliveries
from .entries import MemoryEntries
from .events import MemoryEvents
from .feeds import MemoryFeeds
from .list_watches import MemoryListWatches
from .log import MemoryLog
from .membership import MemoryMembership
from .search import MemorySearch
from .selections import MemoryFeedSelections, MemorySubscriptionSelections
from .series import MemorySeries
from .sessions import MemorySessions
from .sites import MemorySites
from .state import State
from .stored_runs import MemoryPlayground
from .subscriptions import MemorySubscriptions
from .tokens import MemoryTokens
from .verifications import MemoryVerifications


class MemoryControl:
    def __init__(self, state: State) -> None:
        self._state = state

    @contextmanager
    def watch(self, tell: Callable[[ControlEvent], None]) -> Iterator[None]:
        self._state.watching.append(tell)
        try:
            yield
        finally:
            self._state.watching.remove(tell)


class MemoryStorage:
    backup = None  # there is no file to copy

    def __init__(self, state: State | None = None) -> None:
        self._state = state or State()
        self._disk: list[DiskSample] = []
        self.feeds = MemoryFeeds(self._state)
        self.membership = MemoryMembership(self._state)
        self.control = MemoryControl(self._state)
        self.log = MemoryLog(self._state)
        self.entries = MemoryEntries(self._state)
        self.events = MemoryEvents(self._state)
        self.sites = MemorySites(self._state)
        self.search = MemorySearch(self._state)
        self.subscriptions = MemorySubscriptions(self._state)
        self.deliveries = MemoryDeliveries(self._state)
        self.feed_selections = MemoryFeedSelections(self._state)
        self.subscription_selections = MemorySubscriptionSelections(self._state)
        self.plans = MemoryBulkPlans(self._state)
        self.list_watches = MemoryListWatches()
        self.tokens = MemoryTokens()
        self.sessions = MemorySessions(self.tokens)
        self.verifications = MemoryVerifications(self._state)
        self.claims = MemoryClaims(self._state, self.verifications)
        self.audit = MemoryAudit()
        self.series = MemorySeries()
        self.playground = MemoryPlayground()

    async def read_ahead(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def status(self) -> DatabaseStatus:
        return DatabaseStatus(
            engine="memory",
            location="",
            version=1,
            latest=1,
            epoch=self._state.epoch,
            log_end=Position(self._state.log_end),
            size_bytes=0,
            tail=Position(self._state.tail),
        )

    async def backlog(self, under_way: Collection[FeedId] = ()) -> Backlog:
        state = self._state
        stored = [each.stored for each in state.feeds.values()]
        return Backlog(
            feeds=sum(each.state.is_listed for each in stored),
            subscriptions=sum(len(state.active(each)) for each in state.feeds),
            fanouts=len(state.fanouts),
            chunks=len(state.chunks),
            retrying=len(state.retries),
            dead_letters=len(state.dead),
            track_queries=sum(each.state is FeedState.TRACK for each in stored),
            oldest_due=await self.feeds.next_due(without=under_way),
            oldest_undelivered=self._oldest_undelivered(),
        )

    def _oldest_undelivered(self) -> datetime | None:
        chunks = (each.position for each in self._state.chunks.values())
        position = min((*self._state.fanouts, *chunks), default=None)
        record = position and self._state.records.get(position)
        return record.at if record else None

    def write_error(self) -> str:
        return ""

    async def check(self) -> None:
        return

    async def usage(self) -> dict[str, int]:
        return {}

    async def note_disk(self, sample: DiskSample, kept_from: datetime) -> None:
        kept = [each for each in self._disk if kept_from <= each.at <= sample.at]
        self._disk = [*kept, sample]

    async def disk_samples(self) -> list[DiskSample]:
        return self._disk

    async def give_back(self, limit: int) -> int:
        return 0

    async def find_damage(self) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        return
