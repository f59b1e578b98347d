"""The commit of a fetch, with all processing of its entries before it.

Entries are cleaned, and get a language if they have none. This happens after they are
compared and before they are stored, so that neither causes updates.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import structlog
from msgspec import Struct
from msgspec.structs import replace

from hub.core.durations import duration
from hub.core.status.feed_health import STOP_REASONS
from hub.core.status.freshness import publications
from hub.ingest.entry_sanitizer import Sanitizer
from hub.ingest.tracker import Tracker
from hub.runtime.clock import Clock
from hub.runtime.event_log import EventLog, LogEvent
from hub.runtime.failpoints import failpoint
from hub.runtime.metrics import Metrics
from hub.runtime.offloading import run_in_thread
from protocols.languages import believed, telling_text
from protocols.model import Entry
from protocols.safe_urls import without_query
from protocols.urls import host_name
from storage.contract import LogStore
from storage.errors import StaleQueries
from storage.records import (
    CommitOutcome,
    FetchCommit,
    FetchTarget,
    NotStored,
    Position,
    RecordKind,
)

if TYPE_CHECKING:
    from hub.runtime.telemetry import Traces

EXTRA = "py3langid.langid"
"""The module behind ``pip install 'fanfare-hub[language]'``."""

log = structlog.get_logger()


class Detector(Protocol):
    """Guesses languages. It is used by one thread at a time."""

    def classify(self, text: str) -> tuple[str, float]:
        """The likeliest language, as a code, and how likely it is, 0 to 1."""
        ...


def load_detector(module: str = EXTRA) -> Detector | None:
    """The detector of the extra; None if that is not installed. Takes 1 to 2 s."""
    try:
        extra = importlib.import_module(module)
    except ImportError:
        return None
    detector: Detector = extra.LanguageIdentifier.from_model_file(
        extra.MODEL_FILE, norm_probs=True
    )
    log.info("language_detector_loaded", module=module)
    return detector


async def name_languages(commit: FetchCommit, detector: Detector) -> FetchCommit:
    """The commit, with a language for entries if neither they nor their feed name
    one."""
    if not commit.entries or (commit.head and commit.head.language):
        return commit
    naming = partial(_named, commit.entries, detector)
    return replace(commit, entries=await run_in_thread(naming))


def _named(entries: tuple[Entry, ...], detector: Detector) -> tuple[Entry, ...]:
    return tuple(_name(each, detector) for each in entries)


def _name(entry: Entry, detector: Detector) -> Entry:
    text = "" if entry.language else telling_text(entry)
    language = believed(*detector.classify(text)) if text else ""
    return replace(entry, language=language) if language else entry


MOST_MATCHINGS = 10
"""Times that one commit is matched if track queries keep changing; then the commit
fails."""


class StaleTarget(Exception):
    """The feed has changed since its fetch was decided on: it must be decided anew."""


class AppliedCommit(Struct, frozen=True):
    """What was committed, unless the feed was removed meanwhile, and the feed's version
    after the commit."""

    commit: FetchCommit
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Cleans entries, names languages, matches track queries and commits. A step whose
    part is None is left out."""

    log: LogStore
    clock: Clock
    metrics: Metrics
    sanitizer: Sanitizer | None = None
    tracker: Tracker | None = None
    detector: Detector | None = None
    events: EventLog = field(default_factory=EventLog)
    traces: Traces | None = None

    async def commit(
        self, target: FetchTarget, commit: FetchCommit, fetched_at: datetime
    ) -> AppliedCommit:
        """Commit a fetch, or a step of one, whose first document came at
        ``fetched_at``.

        Raises `StaleTarget` or `StorageError`, and then nothing of it is committed.
        """
        former = target.feed.polling
        commit = replace(commit, version=target.version, former=former)
        with (
            self.traces.committing(commit, fetched_at) if self.traces else nullcontext()
        ):
            # What is new or changed was decided before, from what the publisher sent:
            # switching the sanitizer on or off causes no updates.
            if self.sanitizer is not None and commit.entries:
                entries = await self.sanitizer.sanitize(commit.entries)
                commit = replace(commit, entries=entries)
            if self.detector is not None:
                commit = await name_languages(commit, self.detector)
            outcome = await self._match_and_store(target, commit)
            if outcome is NotStored.STALE:
                raise StaleTarget
        if outcome is NotStored.GONE:
            return AppliedCommit(commit, target.version)
        _tell(target, commit, self.events)
        self._measure(target, commit, outcome.positions)
        return AppliedCommit(commit, outcome.version)

    async def _match_and_store(
        self, target: FetchTarget, commit: FetchCommit
    ) -> CommitOutcome:
        """Match and store; do both again if track queries were added in between."""
        tries = 1
        while True:
            if self.tracker is not None:
                commit = await self.tracker.match(target, commit)
            if commit.records:
                failpoint("before-commit")
            started = self.clock.monotonic()
            try:
                outcome = await self.log.commit(commit)
            except StaleQueries:
                if tries == MOST_MATCHINGS:
                    raise
                tries += 1
                continue
            self.metrics.count_poll(commit, self.clock.monotonic() - started)
            if commit.records:
                failpoint("after-commit")
            return outcome

    def _measure(
        self, target: FetchTarget, commit: FetchCommit, positions: Sequence[Position]
    ) -> None:
        """Measure how fresh the new entries are. The positions of records of track
        queries follow those of the feed."""
        if not commit.records:
            return
        freshness, now = self.metrics.freshness, self.clock.now()
        dates_of_records = publications(target.feed.polling, commit)
        for position, record, dates in zip(
            positions, commit.records, dates_of_records, strict=False
        ):
            entries = record.entries if record.kind is RecordKind.ENTRIES else ()
            freshness.publish(dates, len(entries) - len(dates), now)
            if entries and target.subscribers:
                freshness.expect_delivery(
                    target.feed.id, position, len(entries), self.clock.monotonic()
                )


_NEWS: Final[Mapping[RecordKind, str]] = {
    RecordKind.BASELINE: "was fetched for the first time, with {} {}",
    RecordKind.ENTRIES: "has {} new {}",
    RecordKind.UPDATED: "has {} updated {}",
    RecordKind.DELETED: "has {} deleted {}",
}


def _tell(target: FetchTarget, commit: FetchCommit, events: EventLog) -> None:
    """Log a line for each record of the commit, and one if the feed begins to fail,
    recovers or is given up."""
    feed, url = target.feed.id, without_query(target.feed.url)
    if target.feed.private:  # the path of a private feed may be what opens it
        url = f"a private feed of {host_name(target.feed.url)}"
    for record in commit.records:
        if words := _NEWS.get(record.kind):
            count = len(record.entries)
            said = words.format(count, "entry" if count == 1 else "entries")
            events.tell(LogEvent.NEWS, f"{url} {said}", feed=feed)
    before, after = target.feed.polling, commit.polling
    if commit.state is not None and commit.state.is_stopped:
        why = STOP_REASONS.get(commit.state, commit.state.value)
        sentence = f"{url} is no longer polled: {why}"
        events.tell(LogEvent.FEED_STOPPED, sentence, feed=feed)
    elif after.failures and not before.failures:
        again = _span(commit.at, commit.next_fetch)
        sentence = f"{url} began to fail: {after.error}; polled again in {again}"
        events.tell(LogEvent.FEED_FAILING, sentence, feed=feed)
    elif before.failures and not after.failures:
        since = before.failing_since
        span = f" after {_span(since, commit.at)}" if since else ""
        events.tell(LogEvent.FEED_RECOVERED, f"{url} works again{span}", feed=feed)


def _span(begin: datetime, end: datetime) -> str:
    return duration(max(0.0, round((end - begin).total_seconds())))
