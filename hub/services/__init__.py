"""Use cases: what web/ asks of the hub.

The API and the pages ask the same methods; they know the records of storage, not its
contract. There is one module for each noun, and one for its lists where they
are many. Arguments are checked here, results are frozen, and the errors are
`protocols.protocol_errors.InvalidValue`, `storage.errors.StorageError` and those of
`hub.services.service_errors`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hub.publishing.openfeeder_analytics import Analytics
from hub.publishing.output_readers import OutputReaders
from hub.runtime.clock import Clock
from hub.services.account_reports import AccountReportService
from hub.services.account_subscriptions import SubscriptionService, SuperfeedrService
from hub.services.audit_trail import AuditTrail
from hub.services.callback_trials import CallbackTrialService
from hub.services.committed_entries import CommittedEntryService
from hub.services.connection_reports import ConnectionService
from hub.services.database_jobs import DatabaseJobs
from hub.services.delivery_lists import DeliveryListService
from hub.services.delivery_reports import DeliveryReportService
from hub.services.entry_reports import EntryReportService
from hub.services.entry_retrieval import RedeliveryService, RetrievalService
from hub.services.entry_search import SearchService
from hub.services.event_subscriptions import EventSubscriptionService
from hub.services.feed_documents import FeedDocumentService
from hub.services.feed_exports import FeedExportService
from hub.services.feed_imports import FeedImportService
from hub.services.feed_registration import FeedService
from hub.services.feed_reports import FeedReportService
from hub.services.hub_conditions import HubConditions
from hub.services.hub_health import HealthService, MetricsService
from hub.services.hub_series import HubSeries
from hub.services.list_watching import ListWatchService
from hub.services.live_access import LiveService
from hub.services.open_hub_requests import WebSubService
from hub.services.openfeeder_documents import OpenFeederService
from hub.services.operator_sessions import SessionService
from hub.services.opml_lists import FeedListService
from hub.services.output_reports import OutputReportService
from hub.services.planned_actions import PlanService
from hub.services.playground import PlaygroundService
from hub.services.public_pages import PublicService
from hub.services.publisher_notices import HintService, PublishingService
from hub.services.push_callbacks import PushCallbackService
from hub.services.push_hub_reports import PushHubReportService
from hub.services.reader_pages import ReaderService
from hub.services.selected_feeds import SelectedFeedService
from hub.services.selected_subscriptions import SelectedSubscriptionService
from hub.services.served_collections import CollectionService
from hub.services.token_authentication import TokenService
from hub.services.topic_addresses import TrackTopics
from hub.services.undelivered_records import UndeliveredService
from hub.settings import SettingReport

__all__ = [
    "AccountReportService",
    "AuditTrail",
    "CallbackTrialService",
    "CollectionService",
    "CommittedEntryService",
    "ConnectionService",
    "DeliveryListService",
    "DeliveryReportService",
    "EntryReportService",
    "EventSubscriptionService",
    "FeedDocumentService",
    "FeedExportService",
    "FeedImportService",
    "FeedListService",
    "FeedReportService",
    "FeedService",
    "HealthService",
    "HintService",
    "HubSeries",
    "ListWatchService",
    "LiveService",
    "MetricsService",
    "OpenFeederService",
    "OutputReportService",
    "PlanService",
    "PlaygroundService",
    "PublicService",
    "PublishingService",
    "PushCallbackService",
    "PushHubReportService",
    "ReaderService",
    "RedeliveryService",
    "RetrievalService",
    "SearchService",
    "SelectedFeedService",
    "SelectedSubscriptionService",
    "Services",
    "SessionService",
    "SubscriptionService",
    "SuperfeedrService",
    "TokenService",
    "TrackTopics",
    "UndeliveredService",
    "WebSubService",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """All services that web/ is given."""

    clock: Clock
    audit: AuditTrail
    feeds: FeedService
    feed_reports: FeedReportService
    selected_feeds: SelectedFeedService
    committed_entries: CommittedEntryService
    entry_reports: EntryReportService
    feed_imports: FeedImportService
    feed_exports: FeedExportService
    feed_documents: FeedDocumentService
    lists: FeedListService
    list_watches: ListWatchService
    subscriptions: SubscriptionService
    selected_subscriptions: SelectedSubscriptionService
    account_reports: AccountReportService
    event_subscriptions: EventSubscriptionService
    delivery_lists: DeliveryListService
    delivery_reports: DeliveryReportService
    trials: CallbackTrialService
    undelivered: UndeliveredService
    plans: PlanService
    operations: HealthService
    conditions: HubConditions
    database_jobs: DatabaseJobs
    tokens: TokenService
    sessions: SessionService
    websub: WebSubService
    playground: PlaygroundService
    metrics: MetricsService
    series: HubSeries
    readers: ReaderService
    live: LiveService
    connections: ConnectionService
    retrieval: RetrievalService
    search: SearchService
    redeliveries: RedeliveryService
    superfeedr: SuperfeedrService
    public: PublicService
    publishing: PublishingService
    collections: CollectionService
    openfeeder: OpenFeederService
    outputs: OutputReportService
    output_readers: OutputReaders
    hints: HintService
    upstream: PushCallbackService
    push_hub_reports: PushHubReportService
    analytics: Analytics
    settings: tuple[SettingReport, ...]
