"""One feed, polled by two hubs: one reads whole documents, one only what is new."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from hub.core.fetched import ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.news.known_slices import UNNAMED, known_slices
from hub.core.schedule.poll_period import PollingRules
from protocols.feeds import ParseContext, parse
from protocols.feeds.lenient import parse_leniently
from protocols.model import ParsedFeed
from protocols.protocol_errors import FeedError, MalformedDocument
from storage.records import FetchCommit, FetchTarget, PollReason
from tests.support.fetch_targets import START, a_target, an_answer

URL = "https://feed.example/feed"


def understand(body: bytes, context: ParseContext) -> ParseOutcome:
    """Parse a document as the hub does, leniently if need be."""
    try:
        try:
            return ParseOutcome(feed=parse(body, context))
        except MalformedDocument:
            return ParseOutcome(feed=parse_leniently(body, context))
    except FeedError as error:
        return ParseOutcome(error=error)


@dataclass
class Reader:
    """A feed, in the state in which storage would have it after each fetch."""

    is_incremental: bool
    reader: bytes = UNNAMED
    target: FetchTarget = field(default_factory=a_target)
    at: datetime = START

    def context(self, url: str = URL) -> ParseContext:
        known = known_slices(self.target.slices, self.target.seen, self.reader)
        return ParseContext(
            url=url, now=self.at, known=known if self.is_incremental else None
        )

    def fetch(self, body: bytes, url: str = URL) -> tuple[ParseOutcome, FetchCommit]:
        understood = understand(body, self.context(url))
        commit = decide(
            Decision(
                target=self.target,
                fetched=an_answer(200, body, at=self.at, url=url),
                understood=understood,
                rules=PollingRules(),
                jitter=0.0,
                reason=PollReason.PLANNED,
                reader=self.reader,
            )
        )
        self._apply(commit)
        self.at += timedelta(hours=1)
        return understood, commit

    def read(self, body: bytes, url: str = URL) -> ParsedFeed:
        """Fetch a document that can be read."""
        understood, _ = self.fetch(body, url)
        assert understood.feed is not None
        return understood.feed

    def _apply(self, commit: FetchCommit) -> None:
        feed = self.target.feed
        self.target = replace(
            self.target,
            feed=replace(
                feed,
                polling=commit.polling,
                state=commit.state or feed.state,
                title=feed.title if commit.title is None else commit.title,
                format=feed.format if commit.format is None else commit.format,
            ),
            seen=self.target.seen if commit.seen is None else commit.seen,
            slices=self.target.slices if commit.slices is None else commit.slices,
            inventory=self.target.inventory
            if commit.inventory is None
            else commit.inventory,
        )


@dataclass
class TwoReaders:
    """Two readers that fetch the same documents; what they commit must be the same."""

    whole: Reader = field(default_factory=lambda: Reader(is_incremental=False))
    new_only: Reader = field(default_factory=lambda: Reader(is_incremental=True))

    def fetch(self, body: bytes, url: str = URL) -> ParsedFeed | None:
        """Fetch with both; return what the second one read of the document."""
        whole, whole_commit = self.whole.fetch(body, url)
        new, new_commit = self.new_only.fetch(body, url)
        _compare(whole, new)
        assert replace(new_commit, slices=None) == replace(whole_commit, slices=None)
        return new.feed


def _compare(whole: ParseOutcome, new: ParseOutcome) -> None:
    assert str(new.error) == str(whole.error)
    if whole.feed is None or new.feed is None:
        assert whole.feed is new.feed
        return
    assert new.feed.feed == whole.feed.feed
    assert new.feed.hints == whole.feed.hints
    assert new.feed.deletions == whole.feed.deletions
    assert new.feed.entry_count == whole.feed.entry_count
    keys = new.feed.outline.keys if new.feed.outline else (0,) * whole.feed.entry_count
    read = tuple(
        entry for key, entry in zip(keys, whole.feed.entries, strict=True) if not key
    )
    assert new.feed.entries == read


def last(*documents: bytes) -> ParsedFeed:
    """What is read of the last one of a feed's documents."""
    readers = TwoReaders()
    for document in documents:
        parsed = readers.fetch(document)
    assert parsed is not None
    return parsed


def titles_read(parsed: ParsedFeed) -> list[str]:
    return [entry.title for entry in parsed.entries]
