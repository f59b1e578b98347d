"""Visits one by one, without a poller."""

from __future__ import annotations

from hub.core.cadence import PollingRules
from hub.core.outlook import Outlook
from hub.parsing.parser import Parser
from hub.polling.committer import Committer
from hub.polling.documents import DocumentReader
from hub.polling.fetcher import FeedFetcher
from hub.polling.identity import Identity
from hub.polling.languages import Detector
from hub.polling.tracker import Tracker
from hub.polling.visitor import Visitor
from hub.runtime.metrics import Metrics
from storage.interface import FeedStore, LogStore
from tests.support.clock import ManualClock


def a_visitor(
    feeds: FeedStore,
    log: LogStore,
    fetcher: FeedFetcher,
    parser: Parser,
    clock: ManualClock,
    *,
    tracker: Tracker | None = None,
    detector: Detector | None = None,
) -> Visitor:
    """One that draws no jitter and reads no sites."""
    metrics = Metrics()
    return Visitor(
        feeds=feeds,
        fetcher=fetcher,
        reader=DocumentReader(parser=parser, clock=clock, metrics=metrics),
        committer=Committer(
            log=log, clock=clock, metrics=metrics, tracker=tracker, detector=detector
        ),
        rules=PollingRules(),
        identity=Identity(),
        outlook=Outlook,
        jitter=lambda: 0.0,
    )
