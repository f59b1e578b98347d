"""The commit of a fetch, with all that is done to its entries before.

Entries are cleaned, and get a language if they do not say theirs, after they were
compared and before they are stored: so neither makes updates.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import structlog
from msgspec.structs import replace

from hub.core.news.entry_language import believed, telling_text
from hub.ingest.entry_sanitizer import Sanitizer
from hub.ingest.tracker import Tracker
from hub.runtime.clock import Clock
from hub.runtime.failpoints import failpoint
from hub.runtime.metrics import Metrics
from hub.runtime.offloading import run_in_thread
from protocols.model import Entry
from storage.contract import LogStore
from storage.errors import StaleQueries
from storage.records import FetchCommit, FetchTarget

EXTRA = "py3langid.langid"
"""The module behind ``pip install 'fanfare-hub[language]'``."""

log = structlog.get_logger()


class Detector(Protocol):
    """Guesses languages. Used by one thread at a time."""

    def classify(self, text: str) -> tuple[str, float]:
        """The likeliest language, as a code, and how likely it is, 0 to 1."""
        ...


def load_detector(module: str = EXTRA) -> Detector | None:
    """The detector of the extra, or None if that is not installed. Takes 1 to 2 s."""
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
    """The commit with a language for entries whose feed does not say it either."""
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
"""Of one commit with track queries; then it is as if it could not be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Cleans entries, names languages, matches track queries and commits; what is None
    is not done."""

    log: LogStore
    clock: Clock
    metrics: Metrics
    sanitizer: Sanitizer | None = None
    tracker: Tracker | None = None
    detector: Detector | None = None

    async def commit(self, target: FetchTarget, commit: FetchCommit) -> FetchCommit:
        """What was committed, unless the feed has been removed meanwhile.

        Raises `StorageError`.
        """
        if self.sanitizer is not None:
            commit = await _sanitized(commit, self.sanitizer)
        if self.detector is not None:
            commit = await name_languages(commit, self.detector)
        if await self._match_and_store(target, commit):
            _tell(target, commit)
        return commit

    async def _match_and_store(self, target: FetchTarget, commit: FetchCommit) -> bool:
        """Match once more if queries came while the entries were being matched."""
        if self.tracker is None:
            return await self._store(commit)
        for _ in range(MOST_MATCHINGS - 1):
            with suppress(StaleQueries):
                return await self._store(await self.tracker.match(target, commit))
        return await self._store(await self.tracker.match(target, commit))

    async def _store(self, commit: FetchCommit) -> bool:
        """Commit; False if the feed has been removed meanwhile."""
        if commit.records:
            failpoint("before-commit")
        started = self.clock.monotonic()
        positions = await self.log.commit(commit)
        self.metrics.count_poll(commit, self.clock.monotonic() - started)
        if commit.records:
            failpoint("after-commit")
        return positions is not None


async def _sanitized(commit: FetchCommit, sanitizer: Sanitizer) -> FetchCommit:
    """With entries that are safe to show. What is new and what has changed was decided
    by what publishers say, so that switching the setting on or off makes no updates."""
    if not commit.entries:
        return commit
    return replace(commit, entries=await sanitizer.sanitize(commit.entries))


def _tell(target: FetchTarget, commit: FetchCommit) -> None:
    """A line for what readers of the log learn of, and for a feed that is given up."""
    for record in commit.records:
        log.info(
            "feed_fetched",
            feed=target.feed.id,
            status=commit.polling.code,
            kind=record.kind.value,
            entries=len(record.entries),
            error=commit.polling.error,
        )
    if commit.state is not None and commit.state.is_stopped:
        log.warning("feed_stopped", feed=target.feed.id, state=commit.state.value)
