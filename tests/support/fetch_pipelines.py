"""Fetch pipelines for visits one by one, without a poller."""

from __future__ import annotations

from hub.core.schedule.poll_period import PlanningContext, PollingRules
from hub.ingest.committer import Committer, Detector
from hub.ingest.document_parser import DocumentReader, Parser
from hub.ingest.fetch_pipeline import FetchPipeline
from hub.ingest.fetcher import FeedFetcher, FetcherIdentity
from hub.ingest.tracker import Tracker
from hub.runtime.metrics import Metrics
from storage.contract import FeedStore, LogStore
from tests.support.clock import ManualClock


def a_pipeline(
    feeds: FeedStore,
    log: LogStore,
    fetcher: FeedFetcher,
    parser: Parser,
    clock: ManualClock,
    *,
    tracker: Tracker | None = None,
    detector: Detector | None = None,
) -> FetchPipeline:
    """A pipeline that draws no jitter and reads no sites."""
    metrics = Metrics()
    return FetchPipeline(
        feeds=feeds,
        fetcher=fetcher,
        reader=DocumentReader(parser=parser, clock=clock, metrics=metrics),
        committer=Committer(
            log=log, clock=clock, metrics=metrics, tracker=tracker, detector=detector
        ),
        rules=PollingRules(),
        identity=FetcherIdentity(),
        planning_context=PlanningContext,
        jitter=lambda: 0.0,
        wait_for_host=_wait_for_nothing,
    )


async def _wait_for_nothing(url: str) -> None:
    """Do not wait, as for hosts that are exempt."""
