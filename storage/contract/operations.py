"""An opened database, and operations on it as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from storage.contract.audit import AuditStore
from storage.contract.bulk_plans import BulkPlanStore
from storage.contract.claims import ClaimStore
from storage.contract.control import ControlStore
from storage.contract.deliveries import DeliveryStore
from storage.contract.events import EventStore
from storage.contract.feeds import FeedStatisticsStore, FeedStore, PushStore, SiteStore
from storage.contract.list_watches import ListWatchStore
from storage.contract.log import EntryStore, LogStore, SearchStore
from storage.contract.membership import MembershipStore
from storage.contract.publishing import PageListStore, PageStore, PublicStore
from storage.contract.selections import (
    FeedSelectionStore,
    SubscriptionSelectionStore,
)
from storage.contract.series import SeriesStore
from storage.contract.sessions import SessionStore
from storage.contract.stored_runs import PlaygroundStore
from storage.contract.subscriptions import (
    DigestStore,
    ListingStore,
    SubscriptionStore,
    TokenStore,
    TrackStore,
    VerificationStore,
)
from storage.records import (
    Backlog,
    DatabaseStatus,
    DiskSample,
    FeedId,
    OnProgress,
    WriteFaults,
)


class BackUp(Protocol):
    """Makes a consistent copy that starts a new epoch when it is first opened.

    The copy appears under its name once it is whole. Cancelling the call abandons the
    copy.
    """

    async def __call__(self, destination: Path, progress: OnProgress = ...) -> None: ...


class Storage(Protocol):
    """An opened database. One process owns a SQLite file at a time."""

    @property
    def feeds(self) -> FeedStore: ...
    @property
    def membership(self) -> MembershipStore: ...
    @property
    def claims(self) -> ClaimStore: ...
    @property
    def control(self) -> ControlStore: ...
    @property
    def log(self) -> LogStore: ...
    @property
    def events(self) -> EventStore: ...
    @property
    def entries(self) -> EntryStore: ...
    @property
    def search(self) -> SearchStore: ...
    @property
    def subscriptions(self) -> SubscriptionStore: ...
    @property
    def digests(self) -> DigestStore: ...
    @property
    def listings(self) -> ListingStore: ...
    @property
    def verifications(self) -> VerificationStore: ...
    @property
    def deliveries(self) -> DeliveryStore: ...
    @property
    def tokens(self) -> TokenStore: ...
    @property
    def sessions(self) -> SessionStore: ...
    @property
    def tracking(self) -> TrackStore: ...
    @property
    def public(self) -> PublicStore: ...
    @property
    def feed_statistics(self) -> FeedStatisticsStore: ...
    @property
    def pushes(self) -> PushStore: ...
    @property
    def sites(self) -> SiteStore: ...
    @property
    def pages(self) -> PageStore: ...
    @property
    def page_list(self) -> PageListStore: ...
    @property
    def feed_selections(self) -> FeedSelectionStore: ...
    @property
    def subscription_selections(self) -> SubscriptionSelectionStore: ...
    @property
    def plans(self) -> BulkPlanStore: ...
    @property
    def list_watches(self) -> ListWatchStore: ...
    @property
    def audit(self) -> AuditStore: ...
    @property
    def series(self) -> SeriesStore: ...
    @property
    def playground(self) -> PlaygroundStore: ...

    async def read_ahead(self) -> AbstractContextManager[None]:
        """For a task that does again and again what reads nearly the same: read at
        once all that it read within the last block.

        Returns the block, within which this task's reads may be answered by these. What
        others commit meanwhile is seen in the next one.
        """
        ...

    async def status(self) -> DatabaseStatus: ...

    async def backlog(self, under_way: Collection[FeedId] = ()) -> Backlog:
        """What waits to be done. The few feeds ``under_way`` do not count as due."""
        ...

    def write_error(self) -> str:
        """Why writes currently fail ("" when they do not); for readiness."""
        ...

    def write_faults(self) -> WriteFaults: ...

    async def check(self) -> None:
        """Make a tiny durable write; raises what a real write would."""
        ...

    async def usage(self) -> Mapping[str, int]:
        """Approximate bytes by purpose: ``entries`` with the log, ``search``, ``seen``,
        ``deliveries``, ``other``, and ``free``. The cost does not depend on how much is
        stored."""
        ...

    async def note_disk(self, sample: DiskSample, kept_from: datetime) -> None:
        """Keep a sample. Samples from before ``kept_from`` and after the new one are
        deleted."""
        ...

    async def disk_samples(self) -> list[DiskSample]:
        """All kept samples, the oldest first."""
        ...

    async def give_back(self, limit: int) -> int:
        """Give up to ``limit`` free pages back to the disk; returns how many."""
        ...

    async def note_time(self, now: datetime) -> timedelta:
        """Store the time; returns how far the clock has gone back since the latest
        stored time.

        Zero if it has not gone back. If it has, and the first time after an opening,
        every stored time that lies farther ahead than allowed is brought within its
        limit.
        """
        ...

    @property
    def backup(self) -> BackUp | None:
        """None: the engine is backed up by its own tools."""
        ...

    async def find_damage(self) -> tuple[str, ...]:
        """What is wrong with the stored data, a sentence each; reads all of it."""
        ...

    async def close(self) -> None: ...
