"""Use cases: what web/ and cli/ may ask of the hub, and nothing else.

One module per noun. Arguments are checked here, results are frozen, and the errors
are `protocols.errors.InvalidValue`, `storage.errors.StorageError` and those of
`hub.services.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .deliveries import DeliveryService
from .feeds import FeedService
from .front import FrontPageService
from .lists import ListService
from .live import LiveService
from .metrics import MetricsService
from .operations import OperationsService
from .subscriptions import SubscriptionService
from .tokens import TokenService
from .websub import WebSubService

__all__ = [
    "DeliveryService",
    "FeedService",
    "FrontPageService",
    "ListService",
    "LiveService",
    "MetricsService",
    "OperationsService",
    "Services",
    "SubscriptionService",
    "TokenService",
    "WebSubService",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    feeds: FeedService
    lists: ListService
    subscriptions: SubscriptionService
    deliveries: DeliveryService
    operations: OperationsService
    tokens: TokenService
    websub: WebSubService
    metrics: MetricsService
    front: FrontPageService
    live: LiveService
