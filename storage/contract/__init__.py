"""What every engine offers. No SQL and no driver type crosses these protocols.

Every writing method is one transaction: it returns when it is durable, or raises
`WriteFailed` and has changed nothing. Cancelling a waiting caller never cancels its
transaction. Time is an argument: an engine reads no clock. Lists are short pages in
key order. A read waits for a server that is away (`storage.read_patience`). Any method
may raise `StorageClosed`; writing ones `StorageBusy`,
`WriteFailed`, `StorageFull` and `OutcomeUnknown`.

An unknown outcome is resolved by asking. An engine that can be lost sight of numbers
its writes, in a lane for each kind, and keeps the last number of each lane with what
came of it, in the same transaction: so it can tell whether the last one was stored,
once it answers again. It asks by itself for as long as its caller may wait; then it
raises `OutcomeUnknown`, and the caller goes on from what is stored:

- A flush of deliveries has a number. It is handed in again as it is, until it is
  answered: if it was stored, nothing changes, and the answer is that of the first time.
- A fetch is decided anew, from its target as it is then: if the commit was stored, that
  has another version, and there is nothing new.
- All else may be done once more, or is found done. What was claimed is claimed again
  when its lease is over.

A database may have several nodes, each of which has opened it. SQLite is a cluster of
one: its writer runs one unit of work after the other, which is more than what follows
asks for.

AUDIENCE: whoever decides who gets a record holds it until that is committed, so that a
record is committed before such a decision or after it, never beside it. Otherwise who
subscribes, or has caught up, "from now on" lacks the record that is just being written
by another node, which nobody delivers either.

The order of locks is the same everywhere: feeds by id, then AUDIENCE, then the rest.
"""

from __future__ import annotations

from typing import Final

from storage.contract.audit import AuditStore
from storage.contract.bulk_plans import BulkPlanStore
from storage.contract.control import ControlStore
from storage.contract.deliveries import DeliveryStore
from storage.contract.events import EventStore
from storage.contract.feeds import FeedStatisticsStore, FeedStore, PushStore, SiteStore
from storage.contract.list_watches import ListWatchStore
from storage.contract.log import EntryStore, LogStore, SearchStore
from storage.contract.membership import MembershipStore
from storage.contract.operations import BackUp, Storage
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

AUDIENCE: Final = frozenset(
    {
        "log.commit",
        "log.trim",
        "events.publish",
        "feeds.edit",
        "feeds.set_state",
        "subscriptions.add",
        "subscriptions.edit",
        "subscriptions.pause",
        "subscriptions.resume",
        "verifications.subscribe",
        "tracking.add",
        "tracking.retire",
        "deliveries.claim_chunks",
        "deliveries.flush",
        "deliveries.retry_dead_letter",
        "deliveries.replay",
        "deliveries.discard_retry",
    }
)
"""Calls that hold AUDIENCE (``store.method``). One that finds that it decides nothing
of the kind, such as a commit without records, or a flush that neither opens nor closes
a retry, need not."""

__all__ = [
    "AUDIENCE",
    "AuditStore",
    "BackUp",
    "BulkPlanStore",
    "ControlStore",
    "DeliveryStore",
    "DigestStore",
    "EntryStore",
    "EventStore",
    "FeedSelectionStore",
    "FeedStatisticsStore",
    "FeedStore",
    "ListWatchStore",
    "ListingStore",
    "LogStore",
    "MembershipStore",
    "PageListStore",
    "PageStore",
    "PlaygroundStore",
    "PublicStore",
    "PushStore",
    "SearchStore",
    "SeriesStore",
    "SessionStore",
    "SiteStore",
    "Storage",
    "SubscriptionSelectionStore",
    "SubscriptionStore",
    "TokenStore",
    "TrackStore",
    "VerificationStore",
]
