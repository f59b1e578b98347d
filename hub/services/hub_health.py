"""The hub itself: its readiness, its backlog, its metrics."""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

import msgspec

import hub
from hub.core.disk_forecast import DiskForecast
from hub.core.status.freshness import DelaySummary
from hub.runtime.clock import Clock
from hub.runtime.metrics import Histogram, Metrics
from hub.runtime.process_metrics import process_families
from hub.runtime.series_memory import BOUNDS, DelayName, quantile
from hub.services.disk_space import DiskReport, DiskSpace
from hub.services.entry_search import IndexReport, SearchService
from hub.services.hub_conditions import HubCondition, HubConditions
from protocols.prometheus import MetricFamily, MetricKind, MetricSample
from storage.contract import Storage
from storage.records import (
    LISTED_HEALTH,
    Backlog,
    DatabaseStatus,
    FeedHealth,
    FeedId,
    PushCount,
    SubscriptionFilter,
    SubscriptionHealth,
)

DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFreshness:
    """How late new entries are, since the start of the hub.

    ``undated``: entries without a believable date, which are not in ``to_commit``.
    ``live_lag``: seconds that live streams are behind. ``split_rate``: deliveries that
    fan-outs were split into in the last minute, per second.
    """

    to_commit: DelaySummary
    undated: int
    to_delivery: DelaySummary
    live_lag: float
    split_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSubscriptions:
    """Subscriptions that have ended and are still kept, by how they ended.

    ``gone_of_day``: those whose callback answered 410 in the last day.
    """

    gone: int
    ended: int
    gone_of_day: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    version: str
    started_at: datetime
    uptime: float  # seconds
    conditions: tuple[HubCondition, ...]
    feeds: Mapping[FeedHealth, int]
    subscriptions: Mapping[SubscriptionHealth, int]
    ended_subscriptions: EndedSubscriptions
    backlog: Backlog
    database: DatabaseStatus
    freshness: HubFreshness
    disk: DiskReport
    search: IndexReport


class HealthService:
    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        conditions: HubConditions,
        disk: DiskSpace,
        search: SearchService,
        under_way: Callable[[], Collection[FeedId]] = tuple,
        metrics: Metrics | None = None,
    ) -> None:
        """``under_way``: returns the feeds that are being visited."""
        self._storage = storage
        self._clock = clock
        self._conditions = conditions
        self._disk = disk
        self._search = search
        self._under_way = under_way
        self._metrics = metrics or Metrics()
        self._started = clock.monotonic()
        self._started_at = clock.now()

    async def health(self) -> Health:
        backlog = await self._storage.backlog(self._under_way())
        return Health(
            version=hub.__version__,
            started_at=self._started_at,
            uptime=self._clock.monotonic() - self._started,
            conditions=await self._conditions.look(),
            feeds=await _count_feeds(self._storage),
            subscriptions=await _count_subscriptions(self._storage, backlog),
            ended_subscriptions=await self._ended_subscriptions(),
            backlog=backlog,
            database=await self._storage.status(),
            freshness=await self._freshness(),
            disk=await self._disk.report(),
            search=await self._search.report(),
        )

    async def _ended_subscriptions(self) -> EndedSubscriptions:
        gone = SubscriptionFilter(health=(SubscriptionHealth.GONE,))
        ended = SubscriptionFilter(health=(SubscriptionHealth.ENDED,))
        of_day = msgspec.structs.replace(gone, after=self._clock.now() - DAY)
        count = self._storage.subscription_selections.count
        return EndedSubscriptions(
            gone=await count(gone, sys.maxsize),
            ended=await count(ended, sys.maxsize),
            gone_of_day=await count(of_day, sys.maxsize),
        )

    async def _freshness(self) -> HubFreshness:
        oldest = await _oldest_unstreamed(self._storage, self._metrics)
        return HubFreshness(
            to_commit=_summary(
                DelayName.PUBLICATION_TO_COMMIT, self._metrics.publications
            ),
            undated=self._metrics.freshness.undated,
            to_delivery=_summary(
                DelayName.COMMIT_TO_DELIVERY, self._metrics.first_deliveries
            ),
            live_lag=age_of(oldest, self._clock),
            split_rate=self._metrics.split_rate.per_second(self._clock.monotonic()),
        )


def _summary(name: DelayName, measured: Histogram) -> DelaySummary:
    """All delays since the start of the hub, reckoned as plots reckon them."""
    counts, bounds = measured.counts, BOUNDS[name]
    return DelaySummary(
        entries=measured.total,
        p50=quantile(counts, bounds, 0.5),
        p99=quantile(counts, bounds, 0.99),
    )


_Health = TypeVar("_Health", FeedHealth, SubscriptionHealth)
_UNWELL = (
    SubscriptionHealth.SLOW,
    SubscriptionHealth.FAILING,
    SubscriptionHealth.PAUSED,
)
FRESH_SECONDS = 1.0
"""Seconds between two queries of the database, however many scrapers there are."""


@dataclass(frozen=True, slots=True)
class HubBacklog:
    """What the database knows about waiting work, and about the health of feeds and
    subscriptions."""

    backlog: Backlog
    oldest_unstreamed: datetime | None
    feeds: Mapping[FeedHealth, int]
    subscriptions: Mapping[SubscriptionHealth, int]


class MetricsService:
    def __init__(
        self,
        storage: Storage,
        metrics: Metrics,
        clock: Clock,
        disk: DiskSpace,
        under_way: Callable[[], Collection[FeedId]] = tuple,
    ) -> None:
        """``under_way``: returns the feeds that are being visited."""
        self._storage = storage
        self._metrics = metrics
        self._clock = clock
        self._disk = disk
        self._under_way = under_way
        self._asked = asyncio.Lock()
        self._waiting: tuple[float, HubBacklog] | None = None

    async def families(self) -> list[MetricFamily]:
        """All metrics. Raises `StorageError`."""
        waiting = await self.waiting()
        database = await self._storage.status()
        return [
            _gauge(
                "fanfare_info",
                "1, with the version of the hub as a label.",
                1,
                version=hub.__version__,
            ),
            *self._metrics.families(),
            *self._families_of(waiting),
            await self._upstream(),
            _gauge(
                "fanfare_log_head",
                "Position of the last record of the log.",
                database.log_end,
            ),
            *_disk_families(await self._disk.report(), self._clock.now()),
            *process_families(),
            MetricFamily(
                name="fanfare_database_bytes",
                kind=MetricKind.GAUGE,
                help="Size of the database, and of the write-ahead log beside it.",
                samples=(
                    MetricSample(
                        value=database.size_bytes, labels={"file": "database"}
                    ),
                    MetricSample(value=database.wal_bytes, labels={"file": "wal"}),
                ),
            ),
        ]

    async def _upstream(self) -> MetricFamily:
        """Metrics of other people's hubs, summed up. There are many hubs, and only the
        operator may see which they are; the API lists them."""
        counts = {
            what: count
            for hub in await self._storage.pushes.hubs(0)
            for what, count in hub.counts
        }
        return MetricFamily(
            name="fanfare_upstream_total",
            kind=MetricKind.COUNTER,
            help="Other people's hubs: subscriptions requested to lapsed; pushes"
            " delivered, forged, rejected; new entries brought first by them, late,"
            " foreign (of no feed they are for), missed (found by a poll).",
            samples=tuple(
                MetricSample(value=counts.get(what, 0), labels={"what": what.value})
                for what in PushCount
            ),
        )

    async def waiting(self) -> HubBacklog:
        """The backlog, at most a second old. Raises `StorageError`."""
        async with self._asked:
            now = self._clock.monotonic()
            if self._waiting is None or now - self._waiting[0] >= FRESH_SECONDS:
                backlog = await self._storage.backlog(self._under_way())
                oldest = await _oldest_unstreamed(self._storage, self._metrics)
                waiting = HubBacklog(
                    backlog,
                    oldest,
                    await _count_feeds(self._storage),
                    await _count_subscriptions(self._storage, backlog),
                )
                self._waiting = now, waiting
            return self._waiting[1]

    def _families_of(self, waiting: HubBacklog) -> list[MetricFamily]:
        backlog = waiting.backlog
        return [
            _gauge("fanfare_feeds", "Feeds, without removed ones.", backlog.feeds),
            _by_state(
                "fanfare_feed_states",
                "Feeds by state.",
                waiting.feeds,
            ),
            _gauge(
                "fanfare_subscriptions", "Active subscriptions.", backlog.subscriptions
            ),
            _by_state(
                "fanfare_subscription_states",
                "Active subscriptions by state.",
                waiting.subscriptions,
            ),
            _gauge("fanfare_track_queries", "Track queries.", backlog.track_queries),
            MetricFamily(
                name="fanfare_backlog",
                kind=MetricKind.GAUGE,
                help="What is waiting: records not yet split (fanouts), chunks of up to"
                " 500 deliveries, retrying subscriptions, dead letters; the last two"
                " also under their former names, so do not add up the stages.",
                samples=tuple(
                    MetricSample(value=value, labels={"stage": stage})
                    for stage, value in (
                        ("fanouts", backlog.fanouts),
                        ("chunks", backlog.chunks),
                        ("retrying", backlog.retrying),
                        ("dead_letters", backlog.dead_letters),
                        ("stragglers", backlog.retrying),  # a former name
                        ("dead", backlog.dead_letters),  # a former name
                    )
                ),
            ),
            _gauge(
                "fanfare_delivery_lag_seconds",
                "Age of the oldest record that is still in its first deliveries; 0 if"
                " there is none.",
                age_of(backlog.oldest_undelivered, self._clock),
            ),
            _gauge(
                "fanfare_live_lag_seconds",
                "Age of the oldest record that live connections were not given yet; 0"
                " without a lag.",
                age_of(waiting.oldest_unstreamed, self._clock),
            ),
            _gauge(
                "fanfare_oldest_due_feed_seconds",
                "How long the feed that is due longest has been due; those that are"
                " being visited are not.",
                age_of(backlog.oldest_due, self._clock),
            ),
        ]


def _disk_families(disk: DiskReport, now: datetime) -> list[MetricFamily]:
    return [
        MetricFamily(
            name="fanfare_disk_bytes",
            kind=MetricKind.GAUGE,
            help="About how many bytes on disk are for what, estimated from a few rows"
            " of each table; entries with the log, free pages of the database, and"
            " collections beside it.",
            samples=tuple(
                MetricSample(value=size, labels={"purpose": purpose})
                for purpose, size in disk.purposes.items()
            ),
        ),
        _gauge(
            "fanfare_disk_free_bytes",
            "Free space on the disk of the database.",
            disk.free,
        ),
        _gauge(
            "fanfare_disk_limit_bytes",
            "Size of the database at which the oldest entries go; 0: none.",
            disk.limit,
        ),
        _gauge(
            "fanfare_disk_growth_bytes",
            "By how much the database grows in a day, at the rate of the last one; NaN:"
            " not known yet.",
            math.nan if disk.forecast is None else disk.forecast.growth,
        ),
        _gauge(
            "fanfare_disk_limit_seconds",
            "Until the database reaches its limit, at that rate; +Inf: not foreseen.",
            _seconds_until(disk.forecast, lambda forecast: forecast.limit_at, now),
        ),
        _gauge(
            "fanfare_disk_full_seconds",
            "Until the disk is full, at the rate of its last day; +Inf: not foreseen.",
            _seconds_until(disk.forecast, lambda forecast: forecast.full_at, now),
        ),
    ]


def _seconds_until(
    forecast: DiskForecast | None,
    moment_of: Callable[[DiskForecast], datetime | None],
    now: datetime,
) -> float:
    if forecast is None:
        return math.nan
    moment = moment_of(forecast)
    return math.inf if moment is None else max(0.0, (moment - now).total_seconds())


async def _oldest_unstreamed(storage: Storage, metrics: Metrics) -> datetime | None:
    """The time of the first record that live connections were not given yet; None if
    they have all."""
    position = metrics.live_position
    if position is None or position >= (await storage.log.end()).position:
        return None
    records = await storage.log.records(after=position, limit=1)
    return records[0].at if records else None


def age_of(moment: datetime | None, clock: Clock) -> float:
    """The age of a moment in seconds; 0 for None, or if the clock went back."""
    if moment is None:
        return 0.0
    return max(0.0, (clock.now() - moment).total_seconds())


async def _count_feeds(storage: Storage) -> Mapping[FeedHealth, int]:
    """How many feeds have each health; removed feeds are not counted."""
    totals: Counter[FeedHealth] = Counter()
    for each in await storage.feed_selections.counts():
        totals[each.health] += each.total
    return {each: totals[each] for each in LISTED_HEALTH}


async def _count_subscriptions(
    storage: Storage, backlog: Backlog
) -> Mapping[SubscriptionHealth, int]:
    """How many active subscriptions have each health."""
    counted = await storage.subscription_selections.counts()
    unwell = {each: counted.get(each, 0) for each in _UNWELL}
    well = max(0, backlog.subscriptions - sum(unwell.values()))
    return {SubscriptionHealth.OK: well, **unwell}


def _by_state(name: str, help: str, counts: Mapping[_Health, int]) -> MetricFamily:
    samples = tuple(
        MetricSample(value=count, labels={"state": state.value})
        for state, count in counts.items()
    )
    return MetricFamily(name=name, kind=MetricKind.GAUGE, help=help, samples=samples)


def _gauge(name: str, help: str, value: float, **labels: str) -> MetricFamily:
    sample = MetricSample(value=value, labels=labels)
    return MetricFamily(name=name, kind=MetricKind.GAUGE, help=help, samples=(sample,))
