"""What the hub counts about itself while it works; `/metrics` shows it.

Counting is an addition in memory, so it may be done for every delivery. What the
database knows (backlog, due feeds) is not counted but read when somebody looks: see
`hub.services.hub_health`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from typing import Final

from hub.runtime.callback_durations import CallbackDurations
from hub.runtime.freshness_meter import FreshnessMeter, MinuteRate
from protocols.prometheus import (
    MetricFamily,
    MetricKind,
    MetricSample,
    histogram_samples,
)
from storage.records import DeliveryFlush, FetchCommit, Position, RecordKind

LATENCY_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
DELAY_BOUNDS = (
    *(1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0),
    *(7_200.0, 10_800.0, 21_600.0, 43_200.0, 86_400.0, 259_200.0),
)
FIRST_BOUNDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
    *(300.0, 1_800.0, 3_600.0, 21_600.0),
)
ANSWER_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)


class DocumentReading(StrEnum):
    """How a document was read."""

    FULL = "full"
    INCREMENTAL = "incremental"  # only the entries that were not known
    UNCHANGED = "unchanged"  # not at all: its bytes are those of the last one
    UNREADABLE = "unreadable"


class Tally:
    """A number for each value of one label. As a gauge it may go down."""

    def __init__(
        self,
        name: str,
        help: str,
        label: str,
        values: Iterable[str],
        kind: MetricKind = MetricKind.COUNTER,
    ) -> None:
        self.name = name
        self._help = help
        self._label = label
        self._kind = kind
        self._numbers: dict[str, int] = dict.fromkeys(values, 0)

    def add(self, value: str, count: int = 1) -> None:
        """Add to the number of a label value. Raises `KeyError` for other values: they
        are few, and known beforehand."""
        self._numbers[value] += count

    def __getitem__(self, value: str) -> int:
        return self._numbers[value]

    @property
    def total(self) -> int:
        return sum(self._numbers.values())

    def family(self) -> MetricFamily:
        return MetricFamily(
            name=self.name,
            kind=self._kind,
            help=self._help,
            samples=tuple(
                MetricSample(value=number, labels={self._label: value})
                for value, number in self._numbers.items()
            ),
        )


class Gauge:
    """A number that may go up and down."""

    def __init__(self, name: str, help: str) -> None:
        self.name = name
        self.value = 0.0
        self._help = help

    def family(self) -> MetricFamily:
        sample = MetricSample(value=self.value, labels={})
        return MetricFamily(
            name=self.name, kind=MetricKind.GAUGE, help=self._help, samples=(sample,)
        )


class Histogram:
    """How often something took how many seconds."""

    def __init__(
        self,
        name: str,
        help: str,
        bounds: tuple[float, ...],
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._help = help
        self._bounds = bounds
        self._labels = labels or {}
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    @property
    def counts(self) -> tuple[int, ...]:
        """Observations in each bucket alone, not cumulative."""
        return tuple(self._counts)

    @property
    def total(self) -> int:
        """How many observations there were."""
        return sum(self._counts)

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def family(self) -> MetricFamily:
        return MetricFamily(
            name=self.name,
            kind=MetricKind.HISTOGRAM,
            help=self._help,
            samples=histogram_samples(
                self._bounds, self._counts, self._total, self._labels
            ),
        )


class RequestArea(StrEnum):
    """A part of the hub's surface."""

    API = "api"
    PAGES = "pages"
    HUB = "hub"
    SUPERFEEDR = "superfeedr"
    STREAM = "stream"
    PUBLISHING = "publishing"
    MONITORING = "monitoring"
    OTHER = "other"


class RequestMeter:
    """Requests to the hub, in each area: counts by status class, and durations."""

    CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")

    def __init__(self) -> None:
        self._answers = {
            (area, answer): 0 for area in RequestArea for answer in self.CLASSES
        }
        self._seconds = {
            area: Histogram(
                "fanfare_http_request_seconds",
                "From a request to the head of its answer; long polls wait as long as"
                " they are asked to.",
                LATENCY_BOUNDS,
                {"area": area},
            )
            for area in RequestArea
        }

    @property
    def total(self) -> int:
        return sum(self._answers.values())

    def count(self, area: RequestArea, status: int, seconds: float) -> None:
        self._answers[area, f"{status // 100}xx"] += 1
        self._seconds[area].observe(seconds)

    def families(self) -> list[MetricFamily]:
        first, *others = [each.family() for each in self._seconds.values()]
        together = (first.samples, *(each.samples for each in others))
        return [
            MetricFamily(
                name="fanfare_http_requests_total",
                kind=MetricKind.COUNTER,
                help="Requests to the hub, by area (hub: WebSub and pings) and the"
                " class of the answer; websockets are not counted.",
                samples=tuple(
                    MetricSample(value=number, labels={"area": area, "answer": answer})
                    for (area, answer), number in self._answers.items()
                ),
            ),
            replace(first, samples=tuple(chain.from_iterable(together))),
        ]


class Metrics:
    """All that is counted. One for each hub, handed to the parts that count."""

    def __init__(self) -> None:
        self.polls = Tally(
            "fanfare_polls_total",
            "Polls of feeds by outcome: fetched, not_modified (304), failed (no"
            " answer, an error status, or not a feed).",
            "outcome",
            ("fetched", "not_modified", "failed"),
        )
        self.slow_polls = Tally(
            "fanfare_slow_polls",
            "Visits to publishers that are slow to answer: under_way, in slots of"
            " their own, or waiting for one.",
            "state",
            ("under_way", "waiting"),
            MetricKind.GAUGE,
        )
        self.documents = Tally(
            "fanfare_documents_total",
            "Documents fetched, by how they were read: full, incremental (only"
            " unknown entries), unchanged (not at all, because they were byte for byte"
            " the last one), unreadable.",
            "reading",
            [reading.value for reading in DocumentReading],
        )
        self.entries = Tally(
            "fanfare_entries_total",
            "Entries written to the log, by kind of record; entries are the new ones;"
            " error, recovered, content and event have none.",
            "kind",
            [kind.value for kind in RecordKind],
        )
        self.tracking = Tally(
            "fanfare_tracking_total",
            "New entries matched against track queries, and matches found.",
            "what",
            ("entries", "matches"),
        )
        self.deliveries = Tally(
            "fanfare_deliveries_total",
            "Requests to callbacks by outcome: delivered (2xx), refused (any other"
            " status), unanswered.",
            "outcome",
            ("delivered", "refused", "unanswered"),
        )
        self.endings = Tally(
            "fanfare_deliveries_ended_total",
            "Deliveries that are no longer tried: given_up (now a dead letter), or"
            " gone (410).",
            "reason",
            ("given_up", "gone"),
        )
        self.connections = Tally(
            "fanfare_connections",
            "Open live connections; stream and poll are those of Superfeedr's API.",
            "transport",
            ("websocket", "sse", "stream", "poll"),
            MetricKind.GAUGE,
        )
        self.live_reads = Tally(
            "fanfare_live_reads_total",
            "Lookups for live clients that connect or resume (topics, and pages of"
            " the log); from memory, because others asked for the same.",
            "from",
            ("database", "memory"),
        )
        self.live_messages = Tally(
            "fanfare_live_messages_total",
            "Notifications written to live connections: pushed as they came, or"
            " replayed to clients that resumed.",
            "how",
            ("pushed", "replayed"),
        )
        self.live_resuming = Gauge(
            "fanfare_live_resuming",
            "Live connections that have resumed and are still being sent what they"
            " missed; they get new records after that.",
        )
        self.live_position: Position | None = None
        """The position up to which live connections got the log; None: no stream."""

        self.limited = Tally(
            "fanfare_requests_limited_total",
            "Requests refused with 429: too many requests by token or address, too"
            " many live connections, too many open pages that move.",
            "limit",
            (
                *("token", "address", "live_of_address", "live_of_account"),
                "pages_of_account",
            ),
        )
        self.watched_pages = Gauge(
            "fanfare_watched_pages", "Open pages that are sent what changes on them."
        )
        self.requests = RequestMeter()
        self.pushes = 0
        """Accepted pushes of other hubs; `fanfare_upstream_total` keeps them."""

        self.collections = Tally(
            "fanfare_collections_total",
            "Collections built for crawlers, by type.",
            "type",
            ("delta", "snapshot"),
        )
        self.backups = Tally(
            "fanfare_backups_total",
            "Backups by outcome, scheduled or requested.",
            "outcome",
            ("done", "failed"),
        )
        self.backup_time = Gauge(
            "fanfare_backup_timestamp_seconds",
            "Start of the last good backup, as Unix time; 0 if none is known.",
        )
        self.backup_bytes = Gauge("fanfare_backup_bytes", "Size of that backup.")
        self.commits = Histogram(
            "fanfare_commit_seconds",
            "Time until the result of a fetch, or of deliveries, was durable.",
            LATENCY_BOUNDS,
        )
        self.acknowledgements = Histogram(
            "fanfare_acknowledgement_seconds",
            "Age of the oldest of the acknowledgements written together, when they were"
            " durable: a crash before that repeats them.",
            LATENCY_BOUNDS,
        )
        self.answers = Histogram(
            "fanfare_delivery_seconds",
            "Time that callbacks took to answer.",
            ANSWER_BOUNDS,
        )
        self.publications = Histogram(
            "fanfare_publication_to_commit_seconds",
            "From the date of a new entry to its commit, for believable dates.",
            DELAY_BOUNDS,
        )
        self.first_deliveries = Histogram(
            "fanfare_commit_to_delivery_seconds",
            "From the commit to the first 2xx of a callback of its feed; records"
            " without subscribers are not included.",
            FIRST_BOUNDS,
        )
        self.freshness = FreshnessMeter(self.publications, self.first_deliveries)
        self.callback_durations = CallbackDurations()
        self.split = Tally(
            "fanfare_split_total",
            "Chunks that fan-outs were split into, and deliveries in them.",
            "what",
            ("chunks", "deliveries"),
        )
        self.split_rate = MinuteRate()  # of deliveries

    def count_poll(self, commit: FetchCommit, seconds: float) -> None:
        """Count a fetch whose findings took so many seconds to become durable."""
        is_unmodified = commit.polling.code == 304
        known = "not_modified" if is_unmodified else "fetched"
        self.polls.add("failed" if commit.polling.error else known)
        for record in commit.records:
            self.entries.add(record.kind.value, len(record.entries))
        self.commits.observe(seconds)

    def count_split(self, deliveries: int, now: float) -> None:
        """Count a claimed chunk of so many deliveries; ``now`` is monotonic."""
        self.split.add("chunks")
        self.split.add("deliveries", deliveries)
        self.split_rate.add(deliveries, now)

    def count_deliveries(self, flush: DeliveryFlush, seconds: float) -> None:
        """Count outcomes of deliveries once they are durable."""
        for outcome in flush.outcomes:
            if 200 <= outcome.status < 300:
                self._count_answer(outcome.status, outcome.milliseconds)
        for attempt in flush.attempts:
            self._count_answer(attempt.status, attempt.milliseconds)
        self.endings.add("given_up", len(flush.given_up))
        self.endings.add("gone", len(flush.ended))
        self.commits.observe(seconds)

    def families(self) -> list[MetricFamily]:
        counted = (
            self.polls,
            self.slow_polls,
            self.documents,
            self.entries,
            self.tracking,
            self.deliveries,
            self.endings,
            self.connections,
            self.live_reads,
            self.live_messages,
            self.live_resuming,
            self.limited,
            self.watched_pages,
            self.collections,
            self.backups,
            self.backup_time,
            self.backup_bytes,
            self.commits,
            self.acknowledgements,
            self.answers,
            self.publications,
            self.first_deliveries,
            self.split,
        )
        return [*(each.family() for each in counted), *self.requests.families()]

    def _count_answer(self, status: int, milliseconds: int) -> None:
        if status:
            is_delivered = 200 <= status < 300
            self.deliveries.add("delivered" if is_delivered else "refused")
            self.answers.observe(milliseconds / 1000)
        else:
            self.deliveries.add("unanswered")
