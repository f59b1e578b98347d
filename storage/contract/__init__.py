"""What every engine offers. No SQL and no driver type crosses these protocols.

Every writing method is one transaction: it returns once the transaction is durable, or
raises `WriteFailed` and has changed nothing. Cancelling a waiting caller never cancels
its transaction. Time is an argument: an engine reads no clock. Lists are short pages in
key order. A read waits for a server that is away (`storage.read_patience`). Any method
may raise `StorageClosed`; writing methods also raise `StorageBusy`, `WriteFailed`,
`StorageFull` and `OutcomeUnknown`.

An unknown outcome is resolved by asking. An engine that may lose its connection numbers
its writes, in one lane for each kind of write. It stores the last number of each lane
and the result of that write in the same transaction, so that it can tell, once the
server answers again, whether the last write was stored. The engine asks by itself for
as long as its caller may wait; then it raises `OutcomeUnknown`, and the caller goes on
from what is stored:

- A flush of deliveries has a number. The caller hands it in again, unchanged, until it
  is answered: if it was stored, nothing changes, and the answer is that of the first
  time.
- A fetch is decided anew, from its target as it is then: if the commit was stored, the
  target has another version, and there is nothing new.
- All other writes either may be repeated, or are found to be done. What was claimed is
  claimed again when its lease is over.

Several nodes may have opened one database. SQLite is a cluster of one: its writer runs
one unit of work after the other, which is stricter than what follows requires.

AUDIENCE: a call that decides who gets a record holds this lock until it is committed.
So each record is committed either before such a decision or after it, never at the same
time. Without the lock, a subscriber that subscribes, or has caught up, "from now on"
could miss a record that another node is just committing, and nobody would deliver it.

Locks are taken in the same order everywhere: claims by id, feeds by id, AUDIENCE, then
the rest.
"""

from __future__ import annotations

from typing import Final

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
"""Calls that hold AUDIENCE (``store.method``). A call that turns out to decide nothing
about who gets a record, such as a commit without records, or a flush that neither opens
nor closes a retry, need not hold it."""

__all__ = [
    "AUDIENCE",
    "AuditStore",
    "BackUp",
    "BulkPlanStore",
    "ClaimStore",
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
