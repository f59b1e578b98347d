"""What a poller may be told beside its means, and the visitor that it makes of both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from hub.core.budget import Budget
from hub.core.cadence import PollingRules
from hub.core.sites.bounds import SiteBounds
from hub.core.sites.walks import WALKS
from hub.parsing.parser import Parser
from hub.parsing.sanitizing import Sanitizer
from hub.polling.accounts import Accounts
from hub.polling.committer import Committer
from hub.polling.documents import DocumentReader
from hub.polling.fetcher import FeedFetcher
from hub.polling.identity import Identity
from hub.polling.languages import Detector
from hub.polling.schedule import Schedule
from hub.polling.site_documents import SiteDocuments
from hub.polling.site_places import SitePlaces
from hub.polling.sites import SiteReader
from hub.polling.tracker import Tracker
from hub.polling.visitor import Visitor, draw_jitter
from hub.runtime.clock import Clock
from hub.runtime.metrics import Metrics
from protocols.scp.reading.checksums import ChecksumRule
from storage.interface import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerOptions:
    concurrency: int = 64  # feeds visited at the same time
    identity: Identity = field(default_factory=Identity)
    hub_url: str = ""  # that documents of sites name
    budget: Budget = field(default_factory=Budget)
    jitter: Callable[[], float] = draw_jitter  # from -1 to 1
    metrics: Metrics = field(default_factory=Metrics)
    sanitizer: Sanitizer | None = None  # of what is stored; None: stored as it came
    tracker: Tracker | None = None  # None: there are no track queries
    detector: Detector | None = None  # of languages; None: none is guessed
    site_bounds: SiteBounds = field(default_factory=SiteBounds)
    scp_checksum: ChecksumRule = ChecksumRule.LENIENT
    is_in_hand: Callable[[str], bool] = lambda url: False
    """Whether a URL's answer was brought, so that its server is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitorMeans:
    """What a visitor needs that is no option."""

    storage: Storage
    fetcher: FeedFetcher
    parser: Parser
    clock: Clock
    rules: PollingRules
    accounts: Accounts
    schedule: Schedule
    site_places: SitePlaces

    def create(self, options: PollerOptions) -> Visitor:
        return Visitor(
            feeds=self.storage.feeds,
            fetcher=self.fetcher,
            reader=DocumentReader(
                parser=self.parser, clock=self.clock, metrics=options.metrics
            ),
            committer=Committer(
                log=self.storage.log,
                clock=self.clock,
                metrics=options.metrics,
                sanitizer=options.sanitizer,
                tracker=options.tracker,
                detector=options.detector,
            ),
            rules=self.rules,
            identity=options.identity,
            outlook=self.accounts.outlook,
            jitter=options.jitter,
            sites=self._sites(options),
        )

    def _sites(self, options: PollerOptions) -> SiteReader:
        return SiteReader(
            store=self.storage.sites,
            clock=self.clock,
            walks=WALKS,
            fetch=self.fetcher.fetch,
            wait=self._wait_for_host,
            documents=SiteDocuments(storage=self.storage, hub_url=options.hub_url),
            parser=self.parser,
            bounds=options.site_bounds,
            checksum=options.scp_checksum,
            places=self.site_places,
        )

    async def _wait_for_host(self, url: str) -> None:
        """Before each further request of a visit, by the same pace as visits."""
        wait = self.schedule.turn_of(url)
        if wait > 0:
            await asyncio.sleep(wait)
