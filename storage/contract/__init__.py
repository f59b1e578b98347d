"""What every engine offers. No SQL and no driver type crosses these protocols.

Every writing method is one transaction: it returns when it is durable, or raises
`WriteFailed` and has changed nothing. Cancelling a waiting caller never cancels its
transaction. Time is an argument: an engine reads no clock. Lists are short pages in
key order. Any method may raise `StorageClosed`; writing ones `StorageBusy`,
`WriteFailed` and `StorageFull`.
"""

from __future__ import annotations

from storage.contract.bulk_plans import BulkPlanStore
from storage.contract.deliveries import DeliveryStore
from storage.contract.events import EventStore
from storage.contract.feeds import FeedStatisticsStore, FeedStore, PushStore, SiteStore
from storage.contract.list_watches import ListWatchStore
from storage.contract.log import EntryStore, LogStore, SearchStore
from storage.contract.operations import Storage
from storage.contract.publishing import PageListStore, PageStore, PublicStore
from storage.contract.selections import (
    FeedSelectionStore,
    SubscriptionSelectionStore,
)
from storage.contract.sessions import SessionStore
from storage.contract.subscriptions import (
    DigestStore,
    ListingStore,
    SubscriptionStore,
    TokenStore,
    TrackStore,
    VerificationStore,
)

__all__ = [
    "BulkPlanStore",
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
    "PageListStore",
    "PageStore",
    "PublicStore",
    "PushStore",
    "SearchStore",
    "SessionStore",
    "SiteStore",
    "Storage",
    "SubscriptionSelectionStore",
    "SubscriptionStore",
    "TokenStore",
    "TrackStore",
    "VerificationStore",
]
