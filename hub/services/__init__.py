"""Use cases: what web/ asks of the hub where a rule lives.

Lists and single rows web/ reads by the storage contract itself. One module per noun.
Arguments are checked here, results are frozen, and the errors are
`protocols.errors.InvalidValue`, `storage.errors.StorageError` and those of
`hub.services.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hub.openfeeder.analytics import Analytics
from hub.runtime.clock import Clock
from storage.contract import Storage

from .collections import CollectionService
from .feed_reports import FeedReportService
from .feeds import FeedService
from .front import FrontPageService
from .hints import HintService
from .lists import ListService
from .live import LiveService
from .metrics import MetricsService
from .openfeeder import OpenFeederService
from .operations import OperationsService
from .public import PublicService
from .publishing import PublishingService
from .replays import ReplayService
from .retrieval import RetrievalService
from .search import SearchService
from .subscriptions import SubscriptionService
from .superfeedr import SuperfeedrService
from .tokens import TokenService
from .tracking import TrackTopics
from .upstream import UpstreamService
from .websub import WebSubService

__all__ = [
    "CollectionService",
    "FeedReportService",
    "FeedService",
    "FrontPageService",
    "HintService",
    "ListService",
    "LiveService",
    "MetricsService",
    "OpenFeederService",
    "OperationsService",
    "PublicService",
    "PublishingService",
    "ReplayService",
    "RetrievalService",
    "SearchService",
    "Services",
    "SubscriptionService",
    "SuperfeedrService",
    "TokenService",
    "TrackTopics",
    "UpstreamService",
    "WebSubService",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All that web/ is given."""

    storage: Storage
    clock: Clock
    feeds: FeedService
    feed_reports: FeedReportService
    lists: ListService
    subscriptions: SubscriptionService
    operations: OperationsService
    tokens: TokenService
    tracks: TrackTopics
    websub: WebSubService
    metrics: MetricsService
    front: FrontPageService
    live: LiveService
    retrieval: RetrievalService
    search: SearchService
    replays: ReplayService
    superfeedr: SuperfeedrService
    public: PublicService
    publishing: PublishingService
    collections: CollectionService
    openfeeder: OpenFeederService
    hints: HintService
    upstream: UpstreamService
    analytics: Analytics
