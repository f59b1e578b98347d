"""New entries, matched against the track queries before they are committed.

The queries are kept in memory, in step with those in storage. A few short entries are
matched against a few queries at once; any more are matched in a thread, beside the
event loop. Without queries nothing is done.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import partial

import structlog
from msgspec.structs import replace

from hub.core.news.entry_diff import MOST_ENTRIES
from hub.core.news.track_matching import QueryIndex, WordShares, matching_names
from hub.runtime.metrics import Metrics
from hub.runtime.offloading import run_in_thread
from protocols.model import Entry, Feed
from protocols.protocol_errors import InvalidValue
from protocols.track import Subject, parse_query, subject_of
from storage.contract import TrackStore
from storage.packing import unpack
from storage.records import (
    ControlEvent,
    DecisionsMissed,
    FeedId,
    FetchCommit,
    FetchTarget,
    Matched,
    MatchWrite,
    QueriesCame,
    QueriesWent,
    RecordKind,
    TrackQuery,
)

FEW_ENTRIES = 3
FEW_BYTES = 16 * 1024
FEW_QUERIES = 1_000
"""If queries, entries and texts are at most so many, they are matched on the event
loop, which takes up to some milliseconds."""
LEARNT_ENTRIES = 500
LARGEST_LEARNT = 16 * 1024
"""Packed bytes of an entry from which words are learnt. How common words are is learnt
from the entries stored last, before the queries are read; this takes about half a
second for so many entries of 400 words."""
PAGE = 500
"""Queries that are read from the database at once."""

log = structlog.get_logger()


class Tracker:
    """All track queries. `note` and `match` may be called at any time."""

    def __init__(self, store: TrackStore, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._shares = WordShares()
        self._index: QueryIndex[FeedId] = QueryIndex(self._shares.share_of)
        self._version = 0
        self._noted: set[FeedId] | None = None
        """While all are read: those that came or went meanwhile."""
        self._missed = self._heeded = 0  # decisions that nobody could read
        self._loading = asyncio.Lock()
        self._lock = threading.Lock()
        """Held while queries are looked up or change, but never while an entry is
        matched: the event loop waits for it as well."""

    def __len__(self) -> int:
        return len(self._index)

    async def load(self) -> None:
        """Read the stored queries, and forget all others. `note` must already be called
        for later ones. Raises `StorageError`."""
        missed = self._missed
        self._noted = noted = set[FeedId]()
        try:
            await self._load(noted)
        finally:
            self._noted = None
        self._heeded = missed

    async def _load_missed(self) -> None:
        """Read all anew if something was missed since they were read."""
        async with self._loading:
            if self._heeded != self._missed:
                await self.load()

    async def _load(self, noted: Set[FeedId]) -> None:
        version = await self._store.version()
        last, found = FeedId(0), set[FeedId]()
        while page := await self._store.page(after=last, limit=PAGE):
            if not last and not len(self):
                await self._learn()
            for each in page:
                found.add(each.feed_id)
                if each.feed_id not in noted:
                    self._add(each)
            last = page[-1].feed_id
        self._remove(self._index.names - found - noted)
        self._version = max(version, self._version)

    async def _learn(self) -> None:
        """Learn how common words are. Queries are indexed under the rarest words that
        they require, and after a restart only the lengths of words are known."""
        bodies = await self._store.sample(LEARNT_ENTRIES, LARGEST_LEARNT)
        words = await run_in_thread(partial(_words_of, bodies))
        with self._lock:
            for each in reversed(words):
                self._shares.observe(each)

    def note(self, event: ControlEvent) -> None:
        """Note an added or removed query that the control log tells of."""
        match event:
            case QueriesCame(version, queries):
                self._note_ids(each.feed_id for each in queries)
                for each in queries:
                    self._add(each)
                self._version = max(version, self._version)
            case QueriesWent(ids):
                self._note_ids(ids)
                self._remove(ids)
            case DecisionsMissed():
                self._missed += 1
            case _:
                pass

    def _note_ids(self, ids: Iterable[FeedId]) -> None:
        if self._noted is not None:
            self._noted.update(ids)

    def _remove(self, ids: Iterable[FeedId]) -> None:
        with self._lock:
            for feed_id in ids:
                self._index.remove(feed_id)

    def _add(self, stored: TrackQuery) -> None:
        try:
            query = parse_query(stored.query)
        except InvalidValue as error:  # another version could read it
            log.warning("query_unreadable", feed=stored.feed_id, error=str(error))
            return
        with self._lock:
            self._index.add(stored.feed_id, query)

    def waits_under(self, feed_id: FeedId) -> frozenset[str]:
        """The index keys of a query: only entries with one of them are matched against
        it."""
        return self._index.keys_of(feed_id)

    async def match(self, target: FetchTarget, commit: FetchCommit) -> FetchCommit:
        """The commit, with what the queries find in its new entries. Entries of a first
        fetch and unlisted ones are not matched.

        Matches of a query whose owner may not read the feed are left out at the commit.
        """
        if commit.polling.unlisted:
            return commit
        if not any(each.kind is RecordKind.ENTRIES for each in commit.records):
            return commit
        if self._heeded != self._missed:
            await self._load_missed()
        if not len(self._index):
            return replace(commit, matched=Matched(version=self._version))
        news = _news(commit)
        if not news:
            return commit
        matching = partial(self._matched, target, commit, news)
        size = sum(map(_text_size, news))
        is_quick = len(news) <= FEW_ENTRIES and size <= FEW_BYTES
        if is_quick and len(self) <= FEW_QUERIES:
            return replace(commit, matched=matching())
        return replace(commit, matched=await run_in_thread(matching, size))

    def _matched(
        self, target: FetchTarget, commit: FetchCommit, news: Sequence[Entry]
    ) -> Matched:
        version = self._version  # read first: later queries may miss entries
        found: dict[FeedId, list[str]] = {}
        for key, subject in _subjects(target, commit, news):
            with self._lock:
                candidates = self._index.candidates(subject)
                self._shares.observe(subject.words)
            for name in matching_names(subject, candidates):
                found.setdefault(name, []).append(key)
        self._metrics.tracking.add("entries", len(news))
        self._metrics.tracking.add("matches", sum(map(len, found.values())))
        return Matched(
            version=version,
            matches=tuple(
                MatchWrite(feed_id, tuple(keys[first : first + MOST_ENTRIES]))
                for feed_id, keys in sorted(found.items())
                for first in range(0, len(keys), MOST_ENTRIES)
            ),
        )


def _news(commit: FetchCommit) -> list[Entry]:
    keys = {
        key
        for record in commit.records
        if record.kind is RecordKind.ENTRIES
        for key, _ in record.entries
    }
    if not keys:
        return []
    return [each for each in commit.entries if each.key in keys and not each.unlisted]


def _subjects(
    target: FetchTarget, commit: FetchCommit, news: Sequence[Entry]
) -> Iterator[tuple[str, Subject]]:
    feed = commit.head or Feed()
    status = commit.records[-1].status
    for each in news:
        subject = subject_of(
            each,
            feed,
            feed_url=target.feed.url,
            popularity=status.popularity or 0.0,
            porn_rank=status.porn_rank or 0.0,
            bozo_rank=status.bozo_rank or 0.0,
        )
        yield each.key, subject


def _text_size(entry: Entry) -> int:
    """About how many characters of an entry are matched."""
    texts = (entry.summary, entry.content)
    return len(entry.title) + sum(len(text.value) for text in texts if text)


def _words_of(bodies: Sequence[bytes]) -> list[frozenset[str]]:
    """The words of each entry, as a track query sees them."""
    entries = (unpack(body, Entry) for body in bodies)
    return [subject_of(each, Feed(), feed_url="").words for each in entries]
