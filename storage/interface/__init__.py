"""What every engine offers. No SQL and no driver type crosses these protocols.

Every writing method is one transaction: it returns when it is durable, or raises
`WriteFailed` and has changed nothing. Cancelling a waiting caller never cancels its
transaction. Time is an argument: an engine reads no clock. Lists are short pages in
key order. Any method may raise `StorageClosed`; writing ones `StorageBusy`,
`WriteFailed` and `StorageFull`.
"""

from __future__ import annotations

from storage.interface.deliveries import DeliveryStore
from storage.interface.digests import DigestStore
from storage.interface.engine import Storage
from storage.interface.entries import EntryStore
from storage.interface.feeds import FeedStore
from storage.interface.listings import ListingStore
from storage.interface.log import LogStore
from storage.interface.publishing import PageListStore, PageStore, PublicStore
from storage.interface.pushes import PushStore
from storage.interface.search import SearchStore
from storage.interface.sites import SiteStore
from storage.interface.standings import StandingStore
from storage.interface.subscriptions import SubscriptionStore
from storage.interface.tokens import TokenStore
from storage.interface.tracking import TrackStore
from storage.interface.verifications import VerificationStore

__all__ = [
    "DeliveryStore",
    "DigestStore",
    "EntryStore",
    "FeedStore",
    "ListingStore",
    "LogStore",
    "PageListStore",
    "PageStore",
    "PublicStore",
    "PushStore",
    "SearchStore",
    "SiteStore",
    "StandingStore",
    "Storage",
    "SubscriptionStore",
    "TokenStore",
    "TrackStore",
    "VerificationStore",
]
