"""A feed whose ids and all else change with every poll: told up to a day's limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

from msgspec import structs
from msgspec.structs import replace

from hub.core.fetched import ParseOutcome
from hub.core.news.decide import decide
from hub.core.news.decision import Decision
from hub.core.schedule.poll_period import PollingRules
from hub.core.status.findings import FindingKind, findings
from protocols.model import Entry, Link, Text
from storage.records import FetchCommit, FetchTarget, PollReason, RecordKind
from tests.support.documents import a_document
from tests.support.fetch_targets import START, a_target, an_answer

RULES = PollingRules(entries_of_day=25)
MORNING = START.replace(hour=6)


def an_unlike_entry(number: int) -> Entry:
    """Nothing of which is alike another's."""
    return Entry(
        key=f"id {number}",
        id=f"id {number}",
        title=f"title {number}",
        links=(Link(href=f"https://feed.example/{number}/{number}"),),
        content=Text(value=f"content {number}"),
    )


@dataclass
class EndlessFeed:
    """Ten entries a poll."""

    rules: PollingRules = RULES
    target: FetchTarget = field(default_factory=a_target)
    numbers: count[int] = field(default_factory=count)

    def poll(self, hours: float, entries: list[Entry] | None = None) -> FetchCommit:
        entries = entries or [an_unlike_entry(next(self.numbers)) for _ in range(10)]
        document = a_document(*entries)
        fetched = an_answer(200, repr(entries).encode(), at=at(hours))
        decision = Decision(
            target=self.target,
            fetched=fetched,
            understood=ParseOutcome(feed=document),
            rules=self.rules,
            jitter=0.0,
            reason=PollReason.PLANNED,
        )
        commit = decide(decision)
        feed = replace(self.target.feed, polling=commit.polling, format="rss")
        seen = self.target.seen if commit.seen is None else commit.seen
        self.target = replace(self.target, feed=feed, seen=seen)
        return commit


def at(hours: float) -> object:
    return MORNING + timedelta(hours=hours)


def told(commit: FetchCommit) -> int:
    return sum(
        len(record.entries)
        for record in commit.records
        if record.kind is RecordKind.ENTRIES
    )


def test_new_entries_are_told_until_a_day_has_had_as_many_as_it_may() -> None:
    feed = EndlessFeed()
    polls = [feed.poll(hours) for hours in range(6)]
    assert [told(each) for each in polls] == [0, 10, 10, 5, 0, 0]
    assert [len(each.entries) for each in polls] == [10, 10, 10, 5, 0, 0]
    assert told(feed.poll(24)) == 10


def test_the_status_says_how_many_wait_and_so_does_the_report() -> None:
    feed = EndlessFeed()
    *_, last = [feed.poll(hours) for hours in range(4)]
    assert last.polling.waiting == 5
    assert "5 over the daily limit of entries" in last.polling.message
    (record,) = last.records
    assert "5 over the daily limit" in record.status.http
    kinds = [each.kind for each in findings(feed.target.feed, at(4))]  # type: ignore[arg-type]
    assert kinds == [FindingKind.FLOODING]


def test_what_waits_and_is_still_there_is_told_the_next_day() -> None:
    feed = EndlessFeed()
    for hours in range(3):
        feed.poll(hours)
    entries = [an_unlike_entry(number) for number in range(1_000, 1_010)]
    assert told(feed.poll(3, entries)) == 5
    waiting = feed.poll(4, entries)
    assert (told(waiting), waiting.polling.waiting) == (0, 5)
    # the same bytes are read again
    assert (waiting.polling.body_hash, waiting.polling.validators) == ("", None)
    assert (told(feed.poll(24, entries)), feed.target.feed.polling.waiting) == (5, 0)
    assert told(feed.poll(25, entries)) == 0


def test_a_first_document_has_no_limit_also_where_a_push_came_before_it() -> None:
    """Else what is news to nobody would be told the next day."""
    feed = EndlessFeed()
    feed.poll(0)
    polling = replace(feed.target.feed.polling, last_success=None)
    feed.target = replace(feed.target, feed=replace(feed.target.feed, polling=polling))
    entries = [an_unlike_entry(number) for number in range(1_000, 1_040)]
    first = feed.poll(1, entries)
    assert (told(first), len(first.entries), first.polling.waiting) == (0, 40, 0)
    assert told(feed.poll(24, entries)) == 0


LARGE = PollingRules(bytes_of_day=100_000)


def a_long_entry(number: int, version: str = "") -> Entry:
    """Of somewhat more than 30,000 bytes."""
    text = Text(value=f"content {number} {version} " + "x" * 30_000)
    return structs.replace(an_unlike_entry(number), content=text)


def test_new_entries_are_kept_until_a_day_has_had_as_many_bytes_as_it_may() -> None:
    feed = EndlessFeed(rules=LARGE)
    feed.poll(0)
    entries = [a_long_entry(number) for number in range(1_000, 1_010)]

    assert told(feed.poll(1, entries)) == 4  # the last of them passes the limit
    waiting = feed.poll(2, entries)

    assert (told(waiting), len(waiting.entries), waiting.polling.waiting) == (0, 0, 6)
    assert 120_000 < waiting.polling.bytes_of_day < 125_000
    assert "6 over the daily limit of bytes" in waiting.polling.message
    (finding,) = findings(feed.target.feed, at(2))  # type: ignore[arg-type]
    assert "0.1 MB" in finding.what
    assert "FANFARE_BYTES_OF_DAY" in finding.suggestion
    assert told(feed.poll(24, entries)) == 4
    assert told(feed.poll(48, entries)) == 2


def test_entries_that_change_count_and_stay_as_they_were_once_the_day_is_full() -> None:
    feed = EndlessFeed(rules=LARGE)
    first = [a_long_entry(number) for number in range(6)]
    feed.poll(0, first)
    changed = [a_long_entry(number, "again") for number in range(6)]

    assert len(feed.poll(1, changed).entries) == 4
    waiting = feed.poll(2, changed)
    assert (len(waiting.entries), waiting.polling.waiting) == (0, 2)

    last = feed.poll(24, changed)
    assert [each.key for each in last.entries] == ["id 4", "id 5"]
    assert last.polling.waiting == 0


def test_an_entry_larger_than_a_day_is_taken_whole() -> None:
    feed = EndlessFeed(rules=PollingRules(bytes_of_day=10))
    feed.poll(0)
    entries = [a_long_entry(1_000)]
    assert told(feed.poll(1, entries)) == 1
    assert told(feed.poll(24, [*entries, a_long_entry(1_001)])) == 1
